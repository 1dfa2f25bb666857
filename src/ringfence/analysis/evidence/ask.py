"""Which demonstration to ask for next, where cells are of continuous features.

Nothing plans over such cells, so be optimistic and simple: a demonstrator who has no reason not to
goes straight. From where demonstrations begin, to a cell that was met or is unknown, how many
unknown cells lie on the straight line? If the demonstrator passes them, they are allowed; if not,
something on the line is forbidden. Lines through cells that are known, or chosen, to be forbidden
are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis.evidence.moves import Mask
from ringfence.analysis.evidence.sampled import SampledEvidence
from ringfence.analysis.evidence.suggest import spread
from ringfence.objects import Array

MOST_STARTS, MOST_GOALS = 20, 500


@dataclass(frozen=True)
class Wish:
    """A demonstration from one cell to another: the unknown cells on the straight line."""

    start: int
    goal: int
    cells: tuple[int, ...]


def wishes(
    evidence: SampledEvidence,
    starts: NDArray[np.intp],
    met: Mask,
    forbidden: Mask,
    most: int,
) -> list[Wish]:
    """The demonstrations that would settle most, each the best to its end; none twice through
    mostly the same cells.

    starts: cells where demonstrations begin; met [S]: cells where demonstrators or learners were:
    nobody is asked to go beyond the box around them; forbidden [S]: by the learned constraint.
    """
    shape = evidence.grid.shape
    blocked = evidence.proven | (evidence.implicated & forbidden)
    at = np.array(np.unravel_index(np.flatnonzero(met), shape))
    every = np.array(np.unravel_index(np.arange(len(met)), shape))
    near = ((every >= at.min(axis=1)[:, None]) & (every <= at.max(axis=1)[:, None])).all(axis=0)
    goals = spread(np.flatnonzero(near & ~blocked & (evidence.unknown | evidence.allowed)),
                   MOST_GOALS)  # fmt: skip
    found = []
    for start in spread(np.unique(starts), MOST_STARTS):
        for goal in goals:
            line = straight(int(start), int(goal), shape)
            if not blocked[line].any():
                cells = tuple(int(x) for x in line if evidence.unknown[x])
                found.append(Wish(int(start), int(goal), cells))
    found.sort(key=lambda wish: -len(wish.cells))
    chosen: list[Wish] = []
    for wish in found:
        if len(chosen) == most or not wish.cells:
            break
        if not any(_mostly(wish.cells, other.cells) for other in chosen):
            chosen.append(wish)
    return chosen


def _mostly(cells: tuple[int, ...], others: tuple[int, ...]) -> bool:
    return 2 * len(set(cells) & set(others)) > len(cells)


def straight(start: int, goal: int, shape: tuple[int, ...]) -> NDArray[np.intp]:
    """The cells on the straight line between the middles of two."""
    ends: Array = np.array([np.unravel_index(cell, shape) for cell in (start, goal)], np.float64)
    count = int(np.abs(ends[1] - ends[0]).max()) + 1
    steps = np.rint(np.linspace(ends[0], ends[1], count)).astype(np.intp)
    return np.asarray(np.ravel_multi_index(tuple(steps.T), shape), np.intp)
