"""Labels of cells from demonstrations and from policies that beat them (`sampled.py` says what they
mean)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.spatial import cKDTree

from ringfence.analysis.evidence.moves import Mask
from ringfence.analysis.evidence.result import ALLOWED, IMPLICATED, PROVEN, UNKNOWN
from ringfence.analysis.evidence.sampled import Conflict, SampledEvidence, cells_of
from ringfence.analysis.evidence.witnesses import (
    Shown,
    Statement,
    Tried,
    beats,
    least_return,
    returns_of,
    statements,
)
from ringfence.constraints.cell_grid import Grid
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Feature

#: Of a cell's sides: how far around a demonstrated step a constraint is taken to be the same. With
#: 0.5, 20 policies that were to do with fewer cells came upon 2 false sets of 39 (cells of 0.5 m,
#: discs of 0.3 to 0.9 m, 1% slack: tests/analysis/test_narrowing.py), with 0.25 and 0.1 none of 64.
REACH = 0.25
#: Points of a witness's path that are kept, for pictures.
DRAWN = 200

COARSE = (
    "the class lacks a feature, the cells are too coarse or the demonstrators are not optimal, and "
    "nothing is proven from this task"
)


def label(
    grid: Grid,
    features: tuple[Feature, ...],
    groups: Sequence[Shown],
    tried: Sequence[Tried],
    *,
    slack: float = 0.0,
    budget: float | None = 0.0,
) -> SampledEvidence:
    """What demonstrations and the policies that were tried determine about each cell.

    slack in [0, 1): the share of the best return that demonstrators may have missed; budget: the
    cost that one of their episodes may have had, None where nobody says.
    """
    if not 0 <= slack < 1:
        raise InvalidInput(f"evidence: the slack must be at least 0 and below 1, got {slack}")
    shown = np.concatenate([t.features for group in groups for t in group.episodes])
    visited = np.zeros(int(np.prod(grid.shape)), np.bool_)
    visited[cells_of(grid, shown)] = True
    told = statements(groups, tried, slack)
    near = cKDTree(_scaled(grid, shown))
    found: list[list[Conflict]] = [[] for _ in groups]
    doubts: dict[int, str] = {}
    for one in tried:
        k = one.task
        least = least_return(one, groups[k].horizon, len(tried))
        if not (told[k].testifies and beats(least, told[k])):
            continue
        conflict = _conflict(grid, visited, near, one, least, told[k], budget == 0)
        if conflict is None:
            doubts.setdefault(
                k,
                f"{told[k].task}: {one.name} earns at least {least:.4g} within cells that "
                f"demonstrators visited, which is more than their constraint can allow "
                f"({told[k].bar:.4g}): {COARSE}",
            )
        else:
            found[k].append(conflict)
    conflicts = minimal([c for k, own in enumerate(found) if k not in doubts for c in own])
    m = np.zeros(len(visited), np.intp)
    for c in sorted(conflicts, key=lambda c: -len(c.cells)):
        m[list(c.cells)] = len(c.cells)
    m[visited] = 0
    alone = (m == 1) & (budget == 0)
    return SampledEvidence(
        grid=grid,
        features=features,
        labels=np.select([visited, alone, m > 0], [ALLOWED, PROVEN, IMPLICATED], UNKNOWN).astype(
            np.int8
        ),
        m=m,
        conflicts=conflicts,
        statements=told,
        doubts=(*doubts.values(), *_coarse(conflicts)),
        slack=slack,
        budget=budget,
        candidates=len(tried),
        episodes=max((len(one.episodes) for one in tried), default=0),
    )


def _coarse(conflicts: Sequence[Conflict]) -> Iterator[str]:
    """Conflicts of visited cells alone: one of them is forbidden in part."""
    tasks = sorted({c.task for c in conflicts if c.cells == c.border})
    if tasks:
        yield (
            f"{', '.join(tasks)}: demonstrators are beaten within cells that they visited, in "
            "parts where they were not. The cells are too coarse to say where: choose smaller "
            "ones ([analysis] cells)"
        )


def _scaled(grid: Grid, phi: Array) -> Array:
    """The cells' features in units of a cell's sides, [n, k]."""
    return np.asarray(phi[:, list(grid.columns)] / grid.size)


def _conflict(
    grid: Grid,
    visited: Mask,
    near: cKDTree,
    one: Tried,
    least: float,
    statement: Statement,
    strict: bool,
) -> Conflict | None:
    """The cells of a witness that can't all be allowed; None if it was nowhere but where
    demonstrators were."""
    points = one.points
    at = cells_of(grid, points)
    inside = points[visited[at]]
    away, _ = near.query(_scaled(grid, inside), p=np.inf, distance_upper_bound=REACH)
    border = np.unique(at[visited[at]][away > REACH])
    own = np.unique(at) if not strict else np.union1d(at[~visited[at]], border)
    if not len(own):
        return None
    count = np.bincount(at, minlength=len(visited))[own] / len(one.episodes)
    best = one.episodes[int(returns_of(one.episodes).argmax())].features
    step = max(1, -(-len(best) // DRAWN))
    return Conflict(
        cells=tuple(map(int, own)),
        border=tuple(map(int, border)) if strict else (),
        visits=tuple(map(float, count)),
        task=statement.task,
        witness=one.name,
        least=least,
        bar=statement.bar,
        path=best[::step][:, list(grid.columns)],
    )


def minimal(conflicts: Sequence[Conflict]) -> tuple[Conflict, ...]:
    """Without those that hold all cells of another one, smallest first."""
    kept: list[Conflict] = []
    for c in sorted(conflicts, key=lambda c: (len(c.cells), c.cells)):
        if not any(set(other.cells) <= set(c.cells) for other in kept):
            kept.append(c)
    return tuple(kept)
