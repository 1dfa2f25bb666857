"""A class of constraints as a game names it: "table", "linear", "mlp" or "speed <= ?".

table       one value per cell, where the features are a world's cells
linear      any half-space over the features; on a world with finitely many points a ball of
            them (LinearClass), else an inequality with all its numbers to be learned
mlp         a small network of the features
"... ? ..." an inequality, with ? for each number that is to be learned
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringfence.constraints.classes import ConstraintClass, LinearClass, TableClass, with_constant
from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.template import Template, linear_template, parse_template
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint, Feature

TABLE, LINEAR, NETWORK = "table", "linear", "mlp"


@dataclass(frozen=True, eq=False)
class Family:
    """The class: convex over a finite world, a template of inequalities, or networks (neither).

    on: the features that a linear constraint or a network may use (empty: all).
    """

    text: str
    features: tuple[Feature, ...]
    on: tuple[str, ...] = ()
    convex: ConstraintClass | None = None
    template: Template | None = None

    @property
    def is_network(self) -> bool:
        return self.convex is None and self.template is None

    @property
    def used(self) -> list[str]:
        """The names of the features that constraints of the class depend on."""
        if self.template is None:
            return list(self.on) or [f.name for f in self.features]
        rows = np.vstack([self.template.weights, self.template.basis])
        return [f.name for f, column in zip(self.features, rows.T, strict=True) if column.any()]

    def parameters(self, c: Constraint) -> dict[str, float]:
        """What was learned, by name; nothing for tables and networks."""
        if self.template is None or not isinstance(c, LinearConstraint):
            return {}
        theta = self.template.theta_of(c)
        names = self.template.names
        return {} if theta is None else dict(zip(names, map(float, theta), strict=True))

    def error(self, c: Constraint, true: Constraint) -> float | None:
        """|theta - theta*|, where the class holds both."""
        values = [np.array(list(self.parameters(x).values())) for x in (c, true)]
        if self.template is None or not all(len(v) for v in values):
            return None
        return self.template.error(*values)


def make_family(
    text: str,
    on: Sequence[str],
    features: tuple[Feature, ...],
    shape: tuple[int, ...] | None,
    points: Array | None,
) -> Family:
    """The class of that text.

    shape: of the table, where features are cells; points [n, d]: all that features can be, in a
    finite world.
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
    if text == TABLE:
        if shape is None:
            raise InvalidInput(
                "[game] constraint: a table needs features that are cells, and "
                f"{', '.join(names)} are not; use an inequality such as '{names[0]} <= ?', "
                f"{LINEAR!r} or {NETWORK!r}"
            )
        return Family(text, features, convex=TableClass(features, shape))
    if text == NETWORK:
        return Family(text, features, tuple(on))
    if text == LINEAR:
        if points is not None and not on:
            bound = float(np.linalg.norm(with_constant(points), axis=1).max())
            return Family(text, features, convex=LinearClass(features, 1.0, bound))
        template = linear_template(features, on or names)
        return Family(text, features, tuple(on), template=template)
    return Family(text, features, template=parse_template(text, features))
