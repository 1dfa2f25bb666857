"""Drawings of runs on continuous worlds as inline SVG: from above, distributions, budgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringfence.constraints.linear import LinearConstraint
from ringfence.objects import Array, Constraint
from ringfence.report.charts import nice_ticks, tick_texts
from ringfence.report.control_read import (
    ControlRun,
    box,
    edges,
    parameter_words,
    true_parameters,
)
from ringfence.report.markup import Markup, short, tag

WIDTH, HEIGHT = 640, 460
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 14, 40
MARGIN = 1.0  # metres around the paths
BINS = 48
POINTS = 200  # of a path, at most


class Plane:
    """A box of numbers on the drawing, with its axes."""

    def __init__(self, low: Array, high: Array, names: tuple[str, str]) -> None:
        self.low, self.high, self.names = low, np.maximum(high, low + 1e-9), names

    def place(self, points: Array) -> Array:
        """points [n, 2] -> places on the drawing [n, 2]."""
        share = (points - self.low) / (self.high - self.low)
        size = np.array([WIDTH - LEFT - RIGHT, -(HEIGHT - TOP - BOTTOM)])
        places: Array = np.array([LEFT, HEIGHT - BOTTOM]) + share * size
        return places

    def path(self, points: Array, closed: bool = False) -> str:
        steps = [f"{short(x)} {short(y)}" for x, y in self.place(points)]
        return "M" + "L".join(steps) + ("Z" if closed else "")

    def axes(self) -> list[Markup]:
        """Grid lines with numbers, and what is on them."""
        parts = []
        for n, name in enumerate(self.names):
            ticks = nice_ticks(float(self.low[n]), float(self.high[n]))
            for value, words in zip(ticks, tick_texts(ticks), strict=True):
                if not self.low[n] <= value <= self.high[n]:
                    continue
                ends = np.array([self.low, self.high])
                ends[:, n] = value
                (x1, y1), (x2, y2) = self.place(ends)
                parts.append(tag("line", class_="gridline", x1=x1, x2=x2, y1=y1, y2=y2))
                at: dict[str, Any] = (
                    {"x": x1, "y": HEIGHT - BOTTOM + 16, "text_anchor": "middle"}
                    if n == 0
                    else {"x": LEFT - 6, "y": y1 + 4, "text_anchor": "end"}
                )
                parts.append(tag("text", words, class_="tick", **at))
            at = (
                {"x": (LEFT + WIDTH - RIGHT) / 2, "y": HEIGHT - 6, "text_anchor": "middle"}
                if n == 0
                else {"x": LEFT, "y": TOP - 2, "text_anchor": "start"}
            )
            parts.append(tag("text", name, class_="tick", **at))
        return parts

    def upright(self, value: float, **attributes: object) -> Markup | None:
        """A line at a value of the first number."""
        if not self.low[0] <= value <= self.high[0]:
            return None
        ends = np.array([[value, self.low[1]], [value, self.high[1]]])
        return tag("path", d=self.path(ends), **attributes)


def drawing(parts: Sequence[Any], label: str) -> Markup:
    clip = tag(
        "clipPath",
        tag("rect", x=LEFT, y=TOP, width=WIDTH - LEFT - RIGHT, height=HEIGHT - TOP - BOTTOM),
        id="inside",
    )
    return tag(
        "svg",
        tag("defs", clip),
        *parts,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=label,
    )


def shown(n: int, run: ControlRun) -> dict[str, Any]:
    """Attributes of a part that belongs to iteration n + 1."""
    return {"data_i": n + 1, "class_": None if n + 1 == run.summary["selected"] else "off"}


def from_above(run: ControlRun, xy: tuple[int, int]) -> Markup:
    """Experts' and learners' paths, the learned edge of each iteration and the true one."""
    every = [*run.experts, *(t for group in run.learners for t in group)]
    low, high = box([t[:, xy] for t in every], MARGIN)
    units = tuple(f"{run.features[n].name}, {run.features[n].unit}" for n in xy)
    plane = Plane(low, high, (units[0], units[1]))
    inside = [_paths(plane, run.experts, xy, "expert")]
    for n, group in enumerate(run.learners):
        found = edges(run.learned[n], xy, low, high)
        drawn = [tag("path", class_="main", d=plane.path(line)) for line in found]
        inside.append(
            tag(
                "g",
                _paths(plane, group, xy, "learner"),
                tag("g", drawn, class_="series bound"),
                **shown(n, run),
            )
        )
    for line in [] if run.truth is None else edges(run.truth, xy, low, high):
        d = plane.path(line)
        inside.append(tag("path", class_="outline truth", stroke_dasharray="3 5", d=d))
    clipped = tag("g", *inside, clip_path="url(#inside)")
    return drawing([*plane.axes(), clipped], "Paths from above, experts and learners")


def _paths(plane: Plane, group: Sequence[Array], xy: tuple[int, int], kind: str) -> Markup:
    lines = [
        tag("path", class_="thin", style="opacity:.6", d=plane.path(t[:: _every(t)][:, xy]))
        for t in group
    ]
    return tag("g", *lines, class_=f"series {kind}")


def _every(t: Array) -> int:
    return max(1, len(t) // POINTS)


def distribution(run: ControlRun, column: int) -> Markup:
    """How often experts and each iteration's learners have which value of one feature."""
    groups = [run.experts, *run.learners]
    values = [np.concatenate([t[:, column] for t in g]) if g else np.zeros(0) for g in groups]
    known = np.concatenate(values)
    low, high = np.quantile(known, [0.0, 0.995])
    bins = np.linspace(low, max(high, low + 1e-9), BINS + 1)
    shares = [np.histogram(v, bins)[0] / max(1, len(v)) for v in values]
    feature = run.features[column]
    top = float(max(s.max() for s in shares))
    plane = Plane(np.array([bins[0], 0.0]), np.array([bins[-1], 1.05 * top]),
                  (f"{feature.name}, {feature.unit}", "share of steps"))  # fmt: skip
    parts: list[Any] = [tag("g", _outline(plane, bins, shares[0]), class_="series expert")]
    for n, share in enumerate(shares[1:]):
        level = edge_on(run.learned[n], column)
        line = None if level is None else plane.upright(level, class_="main")
        parts.append(
            tag(
                "g",
                tag("g", _outline(plane, bins, share), class_="series learner"),
                tag("g", line, class_="series bound"),
                **shown(n, run),
            )
        )
    true = None if run.truth is None else edge_on(run.truth, column)
    if true is not None:
        parts.append(plane.upright(true, class_="outline truth", stroke_dasharray="3 5"))
    return drawing([*plane.axes(), *parts], f"Distribution of {feature.name}")


def edge_on(c: Constraint, column: int) -> float | None:
    """The value of one feature at which raw = 0, whatever the scale of c.

    None if there is no such value: another class, or one that other features enter.
    """
    if not isinstance(c, LinearConstraint) or np.flatnonzero(c.weights).tolist() != [column]:
        return None
    return float(c.offset / c.weights[column])


def _outline(plane: Plane, bins: Array, share: Array) -> list[Markup]:
    points = np.column_stack([np.repeat(bins, 2), [0.0, *np.repeat(share, 2), 0.0]])
    return [
        tag("path", class_="band", d=plane.path(points, closed=True)),
        tag("path", class_="main", d=plane.path(points)),
    ]


def budgets(run: ControlRun) -> Markup:
    """(parameter, budget): what the demonstrations leave open."""
    pairs = np.array([[p["parameter"], p["budget"]] for p in run.summary["budget_curve"]])
    ((name, learned),) = run.best["constraint"]["parameters"].items()
    low, high = pairs.min(axis=0), pairs.max(axis=0)
    room = 0.03 * (high[0] - low[0])  # beside what was learned, which may lie outside the curve
    low[0], high[0] = min(low[0], learned - room), max(high[0], learned + room)
    across = f"{parameter_words(name)} in {run.summary['class']}"
    corner = np.array([high[0], 1.05 * high[1]])
    plane = Plane(np.array([low[0], 0.0]), corner, (across, "budget: cost of an episode"))
    parts: list[Any] = [
        tag("g", tag("path", class_="main", d=plane.path(pairs)), class_="series expert"),
    ]
    parts.append(tag("g", plane.upright(learned, class_="main"), class_="series bound"))
    true = true_parameters(run.summary).get(name)
    if true is not None:
        parts.append(plane.upright(true, class_="outline truth", stroke_dasharray="3 5"))
    return drawing([*plane.axes(), *parts], "Pairs of parameter and budget")
