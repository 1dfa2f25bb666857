"""Labels of cells of continuous features as inline SVG: on a plane or along a line, with witnesses
that walk over them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis.evidence import ALLOWED, IMPLICATED, LABELS, PROVEN, UNKNOWN
from ringfence.analysis.evidence.sampled import Conflict, SampledEvidence
from ringfence.objects import Array, Constraint
from ringfence.report.draw.geometry import edges, limits
from ringfence.report.draw.svg_cells import moving_dot
from ringfence.report.draw.svg_plane import TRUTH, Plane, same_scale
from ringfence.report.markup import Child, Markup, tag
from ringfence.report.read import Run

#: Where cells lie over each other (a third feature), the one with more to say is drawn.
RANK = np.array([1, 3, 2, 0])  # of allowed, proven, implicated, unknown
DOT = 7.0
AROUND = 1  # cells around all that have a label


def label_map(run: Run, evidence: SampledEvidence) -> Markup:
    """All labels, with the selected constraint's edge and the true one."""
    plane = _plane(evidence)
    parts: list[Child] = [*_tints(plane, evidence, drawn_labels(evidence))]
    parts += _lines(plane, evidence, run.learned[run.selected - 1], "series bound")
    if run.truth is not None:
        parts += _lines(plane, evidence, run.truth, None)
    name = "Evidence of each cell: green allowed, dark proven, grey implicated, blank unknown."
    return plane.drawing(parts, name, "evidence-plane")


def witness_map(evidence: SampledEvidence, conflict: Conflict, n: int) -> Markup:
    """The cells of a conflict, and the witness walking: no script is needed."""
    plane = _plane(evidence, conflict.path)
    own = np.full(len(evidence.labels), UNKNOWN)
    own[evidence.allowed] = ALLOWED
    own[list(conflict.cells)] = PROVEN if len(conflict.cells) == 1 else IMPLICATED
    path = _over_time(conflict.path) if conflict.path.shape[1] == 1 else conflict.path[:, :2]
    line = tag("g", tag("path", class_="main", d=plane.path(path)), class_="series learner")
    dot = moving_dot(plane.place(path), len(path), DOT)
    parts = [*_tints(plane, evidence, _flat(evidence, own)), line, dot]
    return plane.drawing(parts, f"A witness on {conflict.task}, seen from above", f"witness-{n}")


def drawn_labels(evidence: SampledEvidence) -> NDArray[np.int8]:
    """The labels [across, up] that are drawn; up is 1 along a line."""
    return _flat(evidence, evidence.labels)


def _flat(evidence: SampledEvidence, labels: NDArray[np.generic]) -> NDArray[np.int8]:
    shape = evidence.grid.shape
    if len(shape) == 1:
        return np.asarray(labels.astype(np.int8)[:, None])
    rank = RANK[labels.astype(int)].reshape(*shape[:2], -1).max(axis=2)
    return np.asarray(np.argsort(RANK)[rank], np.int8)


def _over_time(path: Array) -> Array:
    """A feature's course [t, 1] as (feature, share of the episode) [t, 2]."""
    return np.column_stack([path[:, 0], np.linspace(0, 1, len(path))])


def _plane(evidence: SampledEvidence, path: Array | None = None) -> Plane:
    """A box around the cells that have a label, and around a path."""
    grid, own = evidence.grid, evidence.over
    at = np.argwhere(drawn_labels(evidence) != UNKNOWN)
    first, last = at.min(axis=0) - AROUND, at.max(axis=0) + 1 + AROUND
    names = [f"{f.name}, {f.unit}" for f in own[:2]]
    if len(own) == 1:
        low, high = (np.array([grid.low[0] + n[0] * grid.size[0]]) for n in (first, last))
        if path is not None:
            low, high = np.minimum(low, path.min(axis=0)), np.maximum(high, path.max(axis=0))
        ends = np.append(low, 0.0), np.append(high, 1.0)
        return Plane(*ends, (names[0], "share of the episode"))
    low, high = (grid.low[:2] + n * grid.size[:2] for n in (first, last))
    if path is not None:
        low, high = np.minimum(low, path.min(axis=0)[:2]), np.maximum(high, path.max(axis=0)[:2])
    if own[0].unit == own[1].unit:
        low, high = same_scale(low, high)
    return Plane(low, high, (names[0], names[1]))


def _tints(plane: Plane, evidence: SampledEvidence, labels: NDArray[np.int8]) -> Iterator[Markup]:
    """A rectangle for each row of neighbours with the same label."""
    grid = evidence.grid
    for up in range(labels.shape[1]):
        row = labels[:, up]
        cuts = np.flatnonzero(np.diff(row)) + 1
        for a, b in zip([0, *cuts], [*cuts, len(row)], strict=True):
            if row[a] == UNKNOWN:
                continue
            x = grid.low[0] + grid.size[0] * np.array([a, b])
            y = np.array([0.0, 1.0])
            if len(grid.shape) > 1:
                y = grid.low[1] + grid.size[1] * np.array([up, up + 1])
            (left, bottom), (right, top) = plane.place(np.column_stack([x, y])).tolist()
            box = {"x": left, "y": top, "width": right - left, "height": bottom - top}
            yield tag("rect", class_=f"tint {LABELS[row[a]]}", **box)


def _lines(plane: Plane, evidence: SampledEvidence, c: Constraint, kind: str | None) -> list[Child]:
    """Where a constraint's edge runs; kind: None for the truth's look."""
    columns = evidence.grid.columns
    look = TRUTH if kind is None else {"class_": "main"}
    if len(columns) == 1:
        found = limits(c, columns[0], float(plane.low[0]), float(plane.high[0]))
        drawn: list[Child] = [plane.upright(value, **look) for value in found]
    else:
        lines = edges(c, (columns[0], columns[1]), plane.low, plane.high)
        drawn = [tag("path", d=plane.path(line), **look) for line in lines]
    return drawn if kind is None else [tag("g", drawn, class_=kind)]
