"""Where lines run: borders of cells, edges and levels of constraints, lanes of paths.

The page's SVG and matplotlib's pictures both draw what these functions find.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from contourpy import contour_generator
from numpy.typing import NDArray

from ringfence.constraints.cell_grid import CellConstraint
from ringfence.constraints.conjunction import Conjunction
from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.table import TableConstraint
from ringfence.objects import Array, Constraint
from ringfence.report.cells import Bools, on_floor
from ringfence.worlds.sim.floor import CELL, Layout

Segment = tuple[tuple[int, int], tuple[int, int]]

#: Paths over cells are drawn beside each other, within this share of a cell around its middle.
LANES = 0.62
GOLDEN = 0.618033988749895
GRID = 161  # points along each side, between which a network's edge is drawn
FINE = 8  # points per side of a cell, between which a level is drawn


def borders(region: Bools) -> list[Segment]:
    """The border of a set of cells, as segments between corners (row, col)."""
    padded, found = np.pad(region, 1), []
    for r, c in np.ndindex(region.shape[0] + 1, region.shape[1] + 1):
        if padded[r, c + 1] != padded[r + 1, c + 1]:
            found.append(((r, c), (r, c + 1)))
        if padded[r + 1, c] != padded[r + 1, c + 1]:
            found.append(((r, c), (r + 1, c)))
    return found


def lane(cells: NDArray[np.generic] | Sequence[Sequence[int]], n: int) -> Array:
    """The n-th path through the middles of cells [t, 2], shifted so that paths don't hide."""
    shift = [(n * GOLDEN**power % 1 - 0.5) * LANES for power in (2, 1)]
    return np.asarray(np.asarray(cells, np.float64) + 0.5 + np.array(shift))


def thinned(points: Array, most: int) -> Array:
    """At most so many points of a path, its last one among them."""
    step = max(1, -(-len(points) // most))
    return np.concatenate([points[:-1:step], points[-1:]])


def levels(c: Constraint, layout: Layout, level: float) -> list[Array]:
    """Where the cost of a constraint on (x, y) is `level`, as lines of places (row, col)."""
    rows, cols = layout.shape
    x = np.linspace(-cols * CELL / 2, cols * CELL / 2, FINE * cols + 1)
    y = np.linspace(-rows * CELL / 2, rows * CELL / 2, FINE * rows + 1)
    points = np.stack(np.meshgrid(x, y), axis=-1)
    cost = c.cost(points.reshape(-1, 2)).reshape(len(y), len(x))
    return [on_floor(layout, line) for line in _contour(x, y, cost, level)]


def edges(c: Constraint, xy: tuple[int, int], low: Array, high: Array) -> list[Array]:
    """The lines raw = 0 in a box in x and y, points [n, 2] each; of several limits at once, of each
    into which no other feature enters."""
    if isinstance(c, Conjunction):
        return [line for part in c.parts for line in edges(part, xy, low, high)]
    if isinstance(c, LinearConstraint):
        return _straight(c, xy, low, high)
    if isinstance(c, TableConstraint):
        return []
    if isinstance(c, CellConstraint):
        return _cell_edges(c, xy)
    across, up = np.linspace(low, high, GRID).T
    raw = alone(c, xy, np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2))
    return [] if raw is None else _contour(across, up, raw.reshape(GRID, GRID), 0.0)


def alone(c: Constraint, columns: Sequence[int], points: Array) -> Array | None:
    """raw at points [n, k] of some columns, or None where other features matter to it."""
    wide = np.zeros((2, len(points), len(c.features)))
    wide[1] = 1.0  # other features, at other values
    wide[:, :, columns] = points
    raw, elsewhere = (c.raw(p) for p in wide)
    return raw if np.array_equal(raw, elsewhere) else None


def _contour(x: Array, y: Array, z: Array, level: float) -> list[Array]:
    lines = cast(list[Array], contour_generator(x, y, z).lines(level))
    return [np.asarray(line) for line in lines]


def _cell_edges(c: CellConstraint, xy: tuple[int, int]) -> list[Array]:
    """The border of the forbidden cells, in the units of the features."""
    if sorted(c.grid.columns) != sorted(xy):
        return []
    order = [c.grid.columns.index(column) for column in xy]
    edges = [c.grid.edges(axis) for axis in order]
    corners = borders(c.forbidden.transpose(order))
    return [np.array([[edges[0][i], edges[1][j]] for i, j in line]) for line in corners]


def _straight(c: LinearConstraint, xy: tuple[int, int], low: Array, high: Array) -> list[Array]:
    others = [w for n, w in enumerate(c.weights) if n not in xy]
    a, b = float(c.weights[xy[0]]), float(c.weights[xy[1]])
    if any(others) or a == b == 0:
        return []
    if abs(b) >= abs(a):
        x = np.array([low[0], high[0]])
        return [np.column_stack([x, (c.offset - a * x) / b])]
    y = np.array([low[1], high[1]])
    return [np.column_stack([(c.offset - b * y) / a, y])]


def limits(c: Constraint, column: int, low: float, high: float) -> list[float]:
    """The values of one feature at which raw = 0; of several limits at once, those of each into
    which no other feature enters.

    A linear constraint's value is exact, and may lie outside [low, high].
    """
    if isinstance(c, Conjunction):
        return [value for part in c.parts for value in limits(part, column, low, high)]
    if isinstance(c, LinearConstraint):
        on = np.flatnonzero(c.weights).tolist()
        return [float(c.offset / c.weights[column])] if on == [column] else []
    if isinstance(c, TableConstraint):  # of cells, which have a map
        return []
    if isinstance(c, CellConstraint):
        if c.grid.columns != (column,):
            return []
        inner = c.grid.edges(0)[1:-1]
        return [float(x) for x in inner[np.diff(c.forbidden)]]
    at = np.linspace(low, high, GRID)
    raw = alone(c, [column], at[:, None])
    if raw is None:
        return []
    turns = np.flatnonzero(np.diff(raw > 0))
    share = raw[turns] / (raw[turns] - raw[turns + 1])
    return [float(x) for x in at[turns] + share * (at[turns + 1] - at[turns])]


def box(paths: Sequence[Array], margin: float) -> tuple[Array, Array]:
    """Corners (low, high) around points [n, 2]."""
    points = np.concatenate(list(paths))
    return points.min(axis=0) - margin, points.max(axis=0) + margin
