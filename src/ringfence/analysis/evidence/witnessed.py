"""Labels of cells from demonstrations and from policies that beat them (`sampled.py` says what they
mean)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ringfence.analysis.evidence.moves import Mask
from ringfence.analysis.evidence.result import ALLOWED, IMPLICATED, PROVEN, UNKNOWN
from ringfence.analysis.evidence.sampled import Conflict, SampledEvidence, cells_of
from ringfence.analysis.evidence.witnesses import (
    ERROR,
    Claim,
    Shown,
    Tried,
    claims,
    returns_of,
    statements,
)
from ringfence.constraints.cell_grid import Grid
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Feature, Trajectory

#: Of a cell's sides: how far around a demonstrated step a constraint is taken to be the same, at
#: most. With 0.5, 20 policies that were to do with fewer cells came upon 2 false sets of 39 (cells
#: of 0.5 m, discs of 0.3 to 0.9 m, 1% slack: tests/analysis/test_narrowing.py), with 0.25 and 0.1
#: none of 64. A witness that wins within visited cells shows where that is too far: it is then half
#: of what that witness needed. (Among discs of 0.3 m, cells of 0.1 m: with 0.25 a false set of 31,
#: now none of 41.)
REACH = 0.25
#: Who was no farther from demonstrated steps than this was where demonstrators were.
THERE = 0.01
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
    ways = [
        _Way(one, claim, *_away(grid, visited, near, claim.episodes))
        for one in tried
        for claim in claims(
            groups[one.task], one, told[one.task], len(tried), slack, ERROR / len(groups)
        )
        # What demonstrators spend, they may spend from some starts alone.
        if budget == 0 or not claim.start
    ]
    reach = min([REACH, *(w.farthest / 2 for w in ways if THERE < w.farthest < np.inf)])
    found: list[list[Conflict]] = [[] for _ in groups]
    doubts: dict[int, str] = {}
    for way in ways:
        k, claim = way.one.task, way.claim
        conflict = _conflict(grid, way, reach, told[k].task, budget == 0)
        if conflict is None:
            doubts.setdefault(
                k,
                f"{told[k].task}: {way.one.name} earns at least {claim.least:.4g} within cells "
                f"that demonstrators visited, which is more than their constraint can allow "
                f"({claim.bar:.4g}): {COARSE}",
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


@dataclass(frozen=True, eq=False)
class _Way:
    """Where a witness was: of each step the cell at [n], and away [n], how far from any
    demonstrated step, in a cell's sides; inf in cells that no demonstrator visited."""

    one: Tried
    claim: Claim
    at: NDArray[np.intp]
    away: Array

    @property
    def farthest(self) -> float:
        return float(self.away.max())


def _away(
    grid: Grid, visited: Mask, near: cKDTree, episodes: Sequence[Trajectory]
) -> tuple[NDArray[np.intp], Array]:
    points = np.concatenate([t.features for t in episodes])
    at = cells_of(grid, points)
    away = np.full(len(at), np.inf)
    away[visited[at]] = near.query(_scaled(grid, points[visited[at]]), p=np.inf)[0]
    return at, away


def _conflict(grid: Grid, way: _Way, reach: float, task: str, strict: bool) -> Conflict | None:
    """The cells of a witness that can't all be allowed; None if it was nowhere but where
    demonstrators were."""
    at, claim, new = way.at, way.claim, way.away > reach
    border = np.unique(at[new & np.isfinite(way.away)])
    own = np.unique(at[new]) if strict else np.unique(at)
    if not len(own):
        return None
    count = np.bincount(at, minlength=int(own.max()) + 1)[own] / len(claim.episodes)
    best = claim.episodes[int(returns_of(claim.episodes).argmax())].features
    step = max(1, -(-len(best) // DRAWN))
    return Conflict(
        cells=tuple(map(int, own)),
        border=tuple(map(int, border)) if strict else (),
        visits=tuple(map(float, count)),
        task=task,
        witness=way.one.name,
        least=claim.least,
        bar=claim.bar,
        path=best[::step][:, list(grid.columns)],
        start=claim.start,
    )


def minimal(conflicts: Sequence[Conflict]) -> tuple[Conflict, ...]:
    """Without those that hold all cells of another one, smallest first."""
    kept: list[Conflict] = []
    for c in sorted(conflicts, key=lambda c: (len(c.cells), c.cells)):
        if not any(set(other.cells) <= set(c.cells) for other in kept):
            kept.append(c)
    return tuple(kept)
