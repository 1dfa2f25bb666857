"""A class of constraints as a game names it: "table", "linear", "mlp" or "speed <= ?".

table       one value per cell, where the features are a world's cells; elsewhere, and as
            "table(x, y)" or "table(x by 0.1)", over cells of one to three features
linear      any half-space over the features; on a world with finitely many points a ball of
            them (LinearClass), else an inequality with all its numbers to be learned
mlp         a small network of the features
"... ? ..." an inequality, with ? for each number that is to be learned; several joined by "and",
            limits under a condition ("speed <= ? while altitude <= ?"): constraints/written.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringfence.constraints.cell_grid import MOST_FEATURES, around, read_axes
from ringfence.constraints.classes import ConstraintClass, LinearClass, TableClass, with_constant
from ringfence.constraints.template import Template, linear_template
from ringfence.constraints.units import in_demonstrated_ranges
from ringfence.constraints.written import Form, parse_class
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint, Feature

TABLE, LINEAR, NETWORK = "table", "linear", "mlp"


@dataclass(frozen=True, eq=False)
class Family:
    """The class: convex over a finite world, a form with numbers to be learned, or networks
    (neither).

    on: the features that a linear constraint or a network may use (empty: all).
    """

    text: str
    features: tuple[Feature, ...]
    on: tuple[str, ...] = ()
    convex: ConstraintClass | None = None
    form: Form | None = None

    @property
    def template(self) -> Template | None:
        """The form, where it is a single inequality."""
        return self.form if isinstance(self.form, Template) else None

    @property
    def is_network(self) -> bool:
        return self.convex is None and self.form is None

    @property
    def used(self) -> list[str]:
        """The names of the features that constraints of the class depend on."""
        if self.form is None:
            return list(self.on) or [f.name for f in self.features]
        return self.form.used

    def parameters(self, c: Constraint) -> dict[str, float]:
        """What was learned, by name; nothing for tables and networks."""
        if self.form is None:
            return {}
        theta, names = self.form.theta_of(c), self.form.names
        return {} if theta is None else dict(zip(names, map(float, theta), strict=True))

    def error(self, c: Constraint, true: Constraint) -> float | None:
        """|theta - theta*|, where the class holds both."""
        values = [np.array(list(self.parameters(x).values())) for x in (c, true)]
        if self.form is None or not all(len(v) for v in values):
            return None
        return self.form.error(*values)


def make_family(
    text: str,
    on: Sequence[str],
    features: tuple[Feature, ...],
    shape: tuple[int, ...] | None,
    points: Array | None,
    shown: Array | None = None,
    ranged: bool = False,
) -> Family:
    """The class of that text.

    shape: of the table, where features are cells; points [n, d]: all that features can be, in a
    finite world; shown [n, d]: demonstrated features, around which cells are laid; ranged: raw
    values of inequalities and regions, and sizes of cells that nobody gave, are in units of
    demonstrated ranges.
    """
    names = [f.name for f in features]
    for name in on:
        if name not in names:
            raise InvalidInput(
                f"[game] on: there is no feature {name!r}; features are {', '.join(names)}"
            )
    if on and text not in (LINEAR, NETWORK):
        raise InvalidInput(
            f"[game] on is for {LINEAR!r} and {NETWORK!r}; {text!r} says itself what it is about"
        )
    if text == TABLE and shape is not None:
        return Family(text, features, convex=TableClass(features, shape))
    axes = read_axes(f"table({', '.join(names)})" if text == TABLE else text, features)
    if axes is not None:
        return _cells(text, features, shown if points is None else points, ranged, *axes)
    if text == NETWORK:
        return Family(text, features, tuple(on))
    if text == LINEAR:
        if points is not None and not on:
            bound = float(np.linalg.norm(with_constant(points), axis=1).max())
            return Family(text, features, convex=LinearClass(features, 1.0, bound))
        template = linear_template(features, on or names)
        return Family(text, features, tuple(on), form=template)
    form = parse_class(text, features)
    if ranged and shown is not None:
        form = in_demonstrated_ranges(form, shown)
    return Family(text, features, form=form)


def _cells(
    text: str,
    features: tuple[Feature, ...],
    shown: Array | None,
    ranged: bool,
    columns: list[int],
    sizes: list[float | None],
) -> Family:
    """A table over cells of some features, laid around what was shown. ranged: a size that nobody
    gave is a share of the range in any unit, not a round number in this one."""
    names = [f.name for f in features]
    if len(columns) > MOST_FEATURES:
        raise InvalidInput(
            f"[game] constraint: a table is over at most {MOST_FEATURES} features, not "
            f"{', '.join(names[k] for k in columns)}; name some of them ('table({names[0]}, "
            f"{names[1]})'), or use an inequality such as '{names[0]} <= ?', {LINEAR!r} or "
            f"{NETWORK!r}"
        )
    if shown is None:
        raise InvalidInput(f"class {text!r}: cells are laid around demonstrations; there are none")
    grid = around(shown, columns, sizes, rounded=not ranged)
    used = tuple(names[k] for k in grid.columns)
    return Family(text, features, used, TableClass(features, grid.shape, grid=grid))
