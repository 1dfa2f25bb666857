"""Planes, distributions of one feature and curves of budgets as inline SVG, in the same layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringfence.objects import Array, Constraint, Feature
from ringfence.report.draw.geometry import box, edges, limits, thinned
from ringfence.report.draw.svg_chart import nice_ticks, tick_text, tick_texts
from ringfence.report.markup import Child, Markup, polyline, tag
from ringfence.report.read import Run, true_parameters
from ringfence.report.text import parameter_words

WIDTH, HEIGHT = 640, 460
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 18, 40
MARGIN = 0.08  # around the paths, of their extent
BINS = 48
EXPERTS = 10  # paths of each task that are drawn
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
        return polyline(self.place(points), closed)

    def axes(self) -> list[Markup]:
        """Grid lines with numbers, and what is on them."""
        across = tick_text(self.names[0], (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6)
        return [*self._ticks(0), *self._ticks(1), across,
                tick_text(self.names[1], LEFT, TOP - 6, "start")]  # fmt: skip

    def _ticks(self, n: int) -> list[Markup]:
        parts, ticks = [], nice_ticks(float(self.low[n]), float(self.high[n]))
        for value, words in zip(ticks, tick_texts(ticks), strict=True):
            if not self.low[n] <= value <= self.high[n]:
                continue
            ends = np.array([self.low, self.high])
            ends[:, n] = value
            (x1, y1), (x2, y2) = self.place(ends).tolist()
            parts.append(tag("line", class_="gridline", x1=x1, x2=x2, y1=y1, y2=y2))
            below = (x1, HEIGHT - BOTTOM + 16, "middle")
            parts.append(tick_text(words, *(below if n == 0 else (LEFT - 6, y1 + 4, "end"))))
        return parts

    def upright(self, value: float, **attributes: object) -> Markup | None:
        """A line at a value of the first number."""
        if not self.low[0] <= value <= self.high[0]:
            return None
        ends = np.array([[value, self.low[1]], [value, self.high[1]]])
        return tag("path", d=self.path(ends), **attributes)

    def drawing(self, parts: Sequence[Child], label: str, id_: str) -> Markup:
        """Axes, and the parts within them."""
        size = {"width": WIDTH - LEFT - RIGHT, "height": HEIGHT - TOP - BOTTOM}
        clip = tag("clipPath", tag("rect", x=LEFT, y=TOP, **size), id=f"{id_}-inside")
        return tag(
            "svg",
            tag("defs", clip),
            self.axes(),
            tag("g", *parts, clip_path=f"url(#{id_}-inside)"),
            id=id_,
            class_="plane",
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            role="img",
            aria_label=label,
        )


TRUTH = {"class_": "outline truth", "stroke_dasharray": "3 5", "data_layer": "truth"}


def _layer(run: Run, n: int, name: str, *children: Child, **attributes: object) -> Markup:
    """A part of iteration n + 1; the selected one is shown at first."""
    off = None if n + 1 == run.selected else "off"
    return tag("g", *children, class_=off, data_layer=name, data_i=n + 1, **attributes)


def _title(feature: Feature) -> str:
    return f"{feature.name}, {feature.unit}"


# Two features ------------------------------------------------------------------------------------


def from_above(run: Run, xy: tuple[int, int], id_: str) -> Markup:
    """Experts' and learners' paths, the learned edge of each iteration and the true one."""
    low, high = bounds(run, xy)
    plane = Plane(low, high, (_title(run.features[xy[0]]), _title(run.features[xy[1]])))
    parts: list[Child] = [
        tag("g", _paths(plane, group[:EXPERTS], xy, "expert"), data_layer="paths", data_task=k)
        for k, group in enumerate(run.experts)
    ]
    for n, c in enumerate(run.learned):
        parts += [
            _layer(run, n, "visits", _paths(plane, learner.episodes, xy, "learner"), data_task=k)
            for k, learner in enumerate(run.learners[n])
            if learner is not None
        ]
        lines = [tag("path", class_="main", d=plane.path(e)) for e in edges(c, xy, low, high)]
        parts.append(_layer(run, n, "constraint", tag("g", lines, class_="series bound")))
    found = [] if run.truth is None else edges(run.truth, xy, low, high)
    parts += [tag("path", d=plane.path(line), **TRUTH) for line in found]
    return plane.drawing(parts, "Paths from above, experts and learners", id_)


def bounds(run: Run, xy: tuple[int, int]) -> tuple[Array, Array]:
    """A box around everything that is drawn; of one unit, it is as long along both axes."""
    every = [t[:, xy] for group in run.experts for t in group[:EXPERTS]]
    for learner in (one for row in run.learners for one in row if one is not None):
        every += [t[:, xy] for t in learner.episodes]
    low, high = box(every, 0.0)
    low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
    return (
        same_scale(low, high)
        if run.features[xy[0]].unit == run.features[xy[1]].unit
        else (low, high)
    )


def same_scale(low: Array, high: Array) -> tuple[Array, Array]:
    """A box [2] with room on both sides, so that what is round is drawn round."""
    size = np.array([WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM])
    room = (size * ((high - low) / size).max() - (high - low)) / 2
    return low - room, high + room


def _paths(plane: Plane, group: Sequence[Array], xy: tuple[int, int], kind: str) -> Markup:
    lines = [plane.path(thinned(t[:, xy], POINTS)) for t in group]
    drawn = [tag("path", class_="thin", style="opacity:.6", d=line) for line in lines]
    return tag("g", drawn, class_=f"series {kind}")


# One feature -------------------------------------------------------------------------------------


def distribution(run: Run, column: int, id_: str) -> Markup:
    """How often experts and each iteration's learners have which value of one feature."""
    bins, groups = histograms(run, column)
    top = max(float(share.max()) for shares in groups for share in shares.values())
    low, high = float(bins[0]), float(bins[-1])
    plane = Plane(np.array([low, 0.0]), np.array([high, 1.05 * top]),
                  (_title(run.features[column]), "share of steps"))  # fmt: skip
    parts: list[Child] = [
        tag("g", _outline(plane, bins, share), class_=_shown("series expert", task == "all"),
            data_layer="paths", data_only=task)
        for task, share in groups[0].items()
    ]  # fmt: skip
    for n, c in enumerate(run.learned):
        for task, share in groups[n + 1].items():
            shape = tag("g", _outline(plane, bins, share), class_="series learner")
            off = _shown("", task == "all" and n + 1 == run.selected) or None
            parts.append(tag("g", shape, class_=off, data_layer="visits", data_i=n + 1,
                             data_only=task))  # fmt: skip
        lines = _uprights(plane, c, column, class_="main")
        parts.append(_layer(run, n, "constraint", tag("g", lines, class_="series bound")))
    parts += [] if run.truth is None else _uprights(plane, run.truth, column, **TRUTH)
    return plane.drawing(parts, f"Distribution of {run.features[column].name}", id_)


def _shown(name: str, shown: bool) -> str:
    return name if shown else f"{name} off".strip()


def _uprights(plane: Plane, c: Constraint, column: int, **attributes: object) -> list[Child]:
    found = limits(c, column, float(plane.low[0]), float(plane.high[0]))
    return [plane.upright(value, **attributes) for value in found]


def histograms(run: Run, column: int) -> tuple[Array, list[dict[str, Array]]]:
    """Bins [b + 1], and shares of steps [b] by task ("0", .., and "all"): of the experts, then of
    each iteration's learners."""
    experts = [np.concatenate([t[:, column] for t in group]) for group in run.experts]
    groups = [[(values, np.ones(len(values))) for values in experts]]
    for learners in run.learners:
        known = [one.behaviour for one in learners if one is not None]
        groups.append([(pi.features[:, column], pi.visits) for pi in known])
    values = np.concatenate([values for group in groups for values, _ in group])
    low, high = np.quantile(values, [0.0, 0.995])
    bins = np.linspace(low, max(high, low + 1e-9), BINS + 1)
    return bins, [_by_task(group, bins, len(run.tasks)) for group in groups]


def _by_task(group: Sequence[tuple[Array, Array]], bins: Array, tasks: int) -> dict[str, Array]:
    if not group:
        return {"all": np.zeros(len(bins) - 1)}
    counts = [np.histogram(values, bins, weights=weights)[0] for values, weights in group]
    totals = [float(weights.sum()) or 1.0 for _, weights in group]
    shares = {"all": np.sum(counts, axis=0) / sum(totals)}
    if len(group) == tasks:
        shares |= {str(k): c / t for k, (c, t) in enumerate(zip(counts, totals, strict=True))}
    return shares


def _outline(plane: Plane, bins: Array, share: Array) -> list[Markup]:
    points = np.column_stack([np.repeat(bins, 2), [0.0, *np.repeat(share, 2), 0.0]])
    return [
        tag("path", class_="band", d=plane.path(points, closed=True)),
        tag("path", class_="main", d=plane.path(points)),
    ]


# Budgets -----------------------------------------------------------------------------------------


def budgets(run: Run) -> Markup:
    """(parameter, budget): what the demonstrations leave open."""
    pairs = np.array([[p["parameter"], p["budget"]] for p in run.summary["budget_curve"]])
    ((name, learned),) = run.best["constraint"]["parameters"].items()
    low, high = pairs.min(axis=0), pairs.max(axis=0)
    room = 0.03 * (high[0] - low[0])  # beside what was learned, which may lie outside the curve
    low[0], high[0] = min(low[0], learned - room), max(high[0], learned + room)
    across = f"{parameter_words(name)} in {run.summary['class']}"
    corner = np.array([high[0], 1.05 * high[1]])
    plane = Plane(np.array([low[0], 0.0]), corner, (across, "budget: cost of an episode"))
    parts: list[Child] = [
        tag("g", tag("path", class_="main", d=plane.path(pairs)), class_="series expert"),
        tag("g", plane.upright(learned, class_="main"), class_="series bound"),
    ]
    true = true_parameters(run.summary).get(name)
    if true is not None:
        parts.append(plane.upright(true, **TRUTH))
    return plane.drawing(parts, "Pairs of parameter and budget", "budgets")
