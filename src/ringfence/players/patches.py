"""The player for tables over cells of continuous features: what is forbidden hangs together.

Follow the regularised leader (Algorithms 2 and 3) with a regulariser that knows neighbours:

    c_{i+1} = argmax_c  sum_u g_u c_u - R(c)     over c in [0, 1]^cells, 0 where an expert was,
    R(c)    = idle |c|^2 + sum over neighbours u, v of b |c_u - c_v|,

forbidden where c > 1/2. g_u is 1 where a learner was, in any iteration, and 0 elsewhere: a cell of
the learners' counts once, so nothing depends on how often they came. Only learners count who show
something (objects.telling): where one strays that earns less than the demonstrators, or than others
before it, shows little.

Cells smaller than a step have gaps between steps. Those inside an obstacle are closed by the second
part of R, as an edge costs more than a cell; and where learners merely wandered between the
experts' steps, the edge costs more than is gained. There g_u is little, too: it is 1 only in balls
as wide as a step that no expert entered, because between experts who are no farther apart than that
nothing is to be seen.

The part of the argmax above 1/2 is itself the best set S of cells, that of the largest
sum_{u in S} (g_u - idle) - b |edge of S| (the level sets of a total variation problem solve
these, one for each level), and this is a minimum cut: it is found exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, find_objects, map_coordinates
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow
from scipy.spatial import KDTree

from ringfence.constraints.cell_grid import MOST_FEATURES, CellConstraint, Grid, around
from ringfence.constraints.classes import TableClass
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, J, earns, telling
from ringfence.players.player import Ground, History, payoff_gradient

Mask = NDArray[np.bool_]

#: A learner's point charges all cells whose middles are within so many usual moves of it, so that
#: the charge of a place does not depend on the size of its cells.
REACH = 0.2
#: The gain of a learner's cell between the experts' steps: enough for the corners of a place whose
#: middle is charged in full, as these take no more edge; too little for any place of its own.
BETWEEN = 0.1
#: How often edge and gap may be halved, before they count nothing, until conflicts are explained.
HALVINGS = 4
#: Cuts are of whole numbers, so many to 1.
UNITS = 1000
#: Of a usual move: a cell where nobody gave a size; at most so many over what was demonstrated.
FINE, MOST_ALONG = 0.2, {1: 1000, 2: 160, 3: 20}


@dataclass(frozen=True)
class Config:
    """Tables over cells of continuous features: what is forbidden hangs together.

    edge: what a usual move's length of edge costs, in cells that learners entered, along the width
    of a cell; the higher, the larger must a place be that is forbidden. gap: the radius, in usual
    moves, of balls that no expert entered, which a place is made of. idle: what it costs to forbid
    a cell that nobody entered.
    """

    # Chosen on a point among obstacles (development seed 0, learners of six iterations): with an
    # edge of 0.2 a third of what is forbidden is free, with 0.6 a box is missed at first; gaps of
    # 0.75 and 1 are alike, 0.5 and 0 forbid free places where learners wandered.
    kind: Literal["patches"] = "patches"
    edge: float = 0.4
    gap: float = 0.75
    idle: float = 0.05

    def __post_init__(self) -> None:
        if not (0 <= self.edge < np.inf and 0 <= self.gap < np.inf and 0 <= self.idle < BETWEEN):
            raise InvalidInput(
                f"[player] patches: edge and gap must be at least 0, idle in [0, {BETWEEN}), got "
                f"{self.edge}, {self.gap} and {self.idle}"
            )


def make(config: Config, ground: Ground) -> Patches:
    """For tables; `places` is for other classes."""
    F_c = ground.family.convex
    if not isinstance(F_c, TableClass) or F_c.grid is None or ground.moves is None:
        raise InvalidInput(
            f"[player] kind patches is for tables over cells of continuous features, such as "
            f"'table(x by 0.1)'; for the class {ground.family.text!r} use regression or payoff"
        )
    return Patches(F_c.restricted(ground.experts), ground.T, ground.moves, config)


def places(ground: Ground, columns: Sequence[int]) -> Patches | None:
    """The same over fine cells of some features [k], for players of other classes: what it forbids
    is what they have to explain. None where there are too many features, or steps aren't known."""
    if ground.moves is None or not 1 <= len(columns) <= MOST_FEATURES:
        return None
    points = np.concatenate([pi.features for pi in ground.experts])
    grid = fine_grid(points, columns, ground.moves)
    F_c = TableClass(ground.family.features, grid.shape, grid=grid)
    return Patches(F_c.restricted(ground.experts), ground.T, ground.moves, Config())


def fine_grid(points: Array, columns: Sequence[int], moves: Array) -> Grid:
    """Cells of a fifth of a usual move [d], or as small as there may be."""
    span = np.ptp(points[:, list(columns)], axis=0)
    least = np.where(span > 0, span, 1.0) / MOST_ALONG[len(columns)]
    return around(points, columns, np.maximum(moves[list(columns)] * FINE, least).tolist())


@dataclass(frozen=True, eq=False)
class Patches:
    """T: an episode's length, in which payoffs are measured; moves [d]: the experts' usual move in
    each feature."""

    F_c: TableClass
    T: float
    moves: Array
    config: Config

    def initial(self) -> CellConstraint:
        return CellConstraint(self.F_c.features, self._grid, np.zeros(self.F_c.shape))

    def update(self, experts: Sequence[Behaviour], history: History) -> CellConstraint:
        grid = self._grid
        every = [pair for group in history for pair in zip(group, experts, strict=True)]
        shows = telling(history, [pi_E.reward for pi_E in experts]).ravel()
        heard = [pi for (pi, _), told in zip(every, shows, strict=True) if told]
        points = np.concatenate([pi.features[pi.visits > 0] for pi in heard])
        moves = self.moves[list(grid.columns)]
        met = charged(grid, points, moves)
        none: Mask = np.zeros(grid.shape, np.bool_)
        visited = none if self.F_c.zero is None else self.F_c.zero
        conflicts = [
            pi
            for pi, pi_E in every
            if earns(pi, pi_E.reward, pi_E.reward_se, pi_E.episodes, len(every)) > 0
        ]
        for n in range(HALVINGS + 2):
            part = 0.5**n if n <= HALVINGS else 0.0
            wide = apart(visited, part * self.config.gap, grid.size / units(grid, moves))
            gain = np.where(met, np.where(wide, 1.0, BETWEEN), 0.0) - self.config.idle
            edges = part * self.config.edge * moves / grid.size
            forbidden = best_set(gain, edges, visited)
            c = CellConstraint(self.F_c.features, grid, forbidden.astype(np.float64))
            if all(J(pi, c) > 0 for pi in conflicts):
                break
        return c

    def best_payoff(self, experts: Sequence[Behaviour], learners: Sequence[Behaviour]) -> float:
        g = payoff_gradient(self.F_c, experts, learners, self.T)
        return float(g @ self.F_c.maximise(g))

    @property
    def _grid(self) -> Grid:
        assert self.F_c.grid is not None  # as `make` sees to it
        return self.F_c.grid


def units(grid: Grid, moves: Array) -> Array:
    """In which distances between cells are measured, [k]: usual moves [k] of the grid's columns;
    along one that never moves, cells."""
    return np.where(moves > 0, moves, grid.size)


def apart(visited: Mask, gap: float, size: Array) -> Mask:
    """Cells [shape] in balls of that radius around some cell without a visited one inside.

    size [k]: of a cell, in the radius' units.
    """
    if gap <= 0 or not visited.any():
        return ~visited
    middles = distance_transform_edt(~visited, sampling=size) > gap
    if not middles.any():
        return middles
    return np.asarray((distance_transform_edt(~middles, sampling=size) <= gap) & ~visited)


def charged(grid: Grid, points: Array, moves: Array) -> Mask:
    """Cells [shape] that points [n, d] entered, or came near to."""
    entered: Mask = grid.visits(points, np.ones(len(points))) > 0
    unit = units(grid, moves)
    tree = KDTree(points[:, list(grid.columns)] / unit)
    # Only cells around entered ones can be near.
    (box,) = find_objects(entered.astype(np.int8))
    reach = np.ceil(REACH * unit / grid.size).astype(int)
    low = [max(0, side.start - n) for side, n in zip(box, reach, strict=True)]
    high = [min(m, side.stop + n) for side, n, m in zip(box, reach, grid.shape, strict=True)]
    sides = [np.arange(a, b) for a, b in zip(low, high, strict=True)]
    middles = grid.low + grid.size * (np.stack(np.meshgrid(*sides, indexing="ij"), -1) + 0.5)
    away, _ = tree.query(middles.reshape(-1, len(unit)) / unit, distance_upper_bound=REACH)
    near = np.zeros(grid.shape, np.bool_)
    near[tuple(slice(a, b) for a, b in zip(low, high, strict=True))] = np.isfinite(away).reshape(
        middles.shape[:-1]
    )
    return np.asarray(entered | near)


def edge_distance(c: CellConstraint, moves: Array) -> Callable[[Array], Array]:
    """How far features [n, d] are inside the edge of what c forbids, in usual moves [d] and at most
    one, [n]; < 0 outside. Some cells must be forbidden, and some not."""
    grid, columns = c.grid, list(c.grid.columns)
    size = grid.size / units(grid, moves[columns])
    outside, inside = (
        distance_transform_edt(cells, sampling=size) for cells in (~c.forbidden, c.forbidden)
    )
    # From a middle to the nearest other middle; the edge is half a cell nearer.
    half = size.min() / 2
    heights = np.clip(np.where(c.forbidden, inside - half, half - outside), -1.0, 1.0)

    def distance(phi: Array) -> Array:
        at = (phi[:, columns] - grid.low) / grid.size - 0.5
        return np.asarray(map_coordinates(heights, at.T, order=1, mode="nearest"))

    return distance


def best_set(gain: Array, edges: Array, never: Mask) -> Mask:
    """The set S of cells [shape] outside `never` with the largest sum of its gains [shape] less
    that of its edges, along each axis [k]; of equals the smallest. What lies around the cells is
    not in S."""
    if not ((gain > 0) & ~never).any():
        return np.zeros(gain.shape, np.bool_)
    # No S reaches beyond the box of cells with a gain: cut off there, it gains and has less edge.
    (box,) = find_objects(((gain > 0) & ~never).astype(np.int8))
    found = np.zeros(gain.shape, np.bool_)
    found[box] = _cut(gain[box], edges, never[box])
    return found


def _cut(gain: Array, edges: Array, never: Mask) -> Mask:
    """A minimum cut between a source, whose side is S, and a sink."""
    node = np.cumsum(~never.ravel()).reshape(never.shape) - 1
    node[never] = -1
    n = int((~never).sum())
    own = np.rint(UNITS * gain).astype(np.int64)
    tails, heads, sizes = [], [], []
    for axis, edge in enumerate(edges):
        weight = round(UNITS * float(edge))
        # Around everything lies a rim of cells that are never in S.
        wide = np.pad(node, [(int(a == axis),) * 2 for a in range(node.ndim)], constant_values=-1)
        first, last = (np.delete(wide, end, axis) for end in (-1, 0))
        for a, b in ((first, last), (last, first)):
            inner, rim = (a >= 0) & (b >= 0), (a >= 0) & (b < 0)
            tails.append(a[inner])
            heads.append(b[inner])
            sizes.append(np.full(int(inner.sum()), weight))
            np.subtract.at(own.reshape(-1), np.flatnonzero(~never)[a[rim]], weight)
    mine, source, sink = own[~never], n, n + 1
    at = np.arange(n)
    tails += [np.full(int((mine > 0).sum()), source), at[mine < 0]]
    heads += [at[mine > 0], np.full(int((mine < 0).sum()), sink)]
    sizes += [mine[mine > 0], -mine[mine < 0]]
    arrays = (np.concatenate(part) for part in (sizes, tails, heads))
    capacity, tail, head = arrays
    graph = coo_array((capacity.astype(np.int32), (tail, head)), shape=(n + 2, n + 2)).tocsr()
    left = graph - maximum_flow(graph, source, sink).flow
    left.eliminate_zeros()
    reached = breadth_first_order(left, source, return_predecessors=False)
    chosen = np.zeros(n + 2, np.bool_)
    chosen[reached] = True
    inside = np.zeros(never.shape, np.bool_)
    inside[~never] = chosen[:n]
    return inside
