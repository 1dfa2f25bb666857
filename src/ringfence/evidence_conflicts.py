"""Which cells can't all have been allowed: the smallest conflict sets.

A set M of cells that no expert visited is in conflict if allowing it, beside the cells they did
visit, would let some group of experts be beaten. Larger sets than a conflict set are in conflict
too, so the minimal ones say everything. x belongs to a minimal one exactly if it is pivotal for
some set S: S is in conflict and S without x is not.

In worlds without chance the search is exact. A path with few entries into unvisited cells gives
a set to try. Where the set is in conflict without x, a cell next to x is put into S for good or
left out for good, and both halves are searched. What makes this quick:

- a cell that would be in conflict beside the ones already in S is left out;
- if only goals pay (`is_goal_task`), S is minimal, its path simple and x on it, then the path
  gains something by passing x: no stretch of it around x has an equally short replacement
  through visited cells and cells already in S. `Stretches` looks for a stretch that has none.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ringfence.evidence_moves import (
    NEVER,
    Case,
    Index,
    Mask,
    Moves,
    can_wait,
    is_goal_task,
    moves_of,
    successors,
)

Cells = frozenset[int]
#: Entries that a table looks ahead: conflict sets are rarely larger, and tables grow with it.
AHEAD = 6


@dataclass(eq=False)
class Conflicts:
    """What is known of each cell x [S].

    size: the size of the smallest minimal conflict set with x, 0 if there is none; exact: whether
    that is certain (if not, size is an upper bound, and a 0 means that none was found);
    witness: such a set.
    """

    size: NDArray[np.intp]
    exact: Mask
    witness: dict[int, Cells] = field(default_factory=dict)

    def add(self, found: Cells) -> None:
        for x in found:
            if not 0 < self.size[x] <= len(found):
                self.size[x] = len(found)
                self.witness[x] = found


def smallest_conflicts(cases: Sequence[Case], allowed: Mask, effort: int) -> Conflicts:
    """The smallest conflict sets of all cells, in worlds without chance.

    allowed [S]: the visited cells; effort: how often the search for one cell may branch before
    its size is left as a bound.
    """
    size = np.zeros(len(allowed), dtype=np.intp)
    conflicts = Conflicts(size, np.ones(len(allowed), dtype=bool))
    if cases:
        _Search(cases, allowed, conflicts, effort).run()
    return conflicts


class _Search:
    """The search for every cell's smallest conflict set, one cell after the other.

    `closed` are the cells that can't be in a minimal conflict set of more than one cell: proven
    ones, and those already known to be in none. `moves` are what a beating path can use.
    """

    def __init__(
        self, cases: Sequence[Case], allowed: Mask, conflicts: Conflicts, effort: int
    ) -> None:
        self.allowed, self.conflicts, self.effort = allowed, conflicts, effort
        self.moves = moves_of(cases)
        self.closed = np.zeros(len(allowed), dtype=bool)
        self.stretches = stretches_of(cases)
        # A path with the fewest entries enters no cell twice, if waiting or cutting a loop out
        # costs nothing. Otherwise entries may exceed cells, and sizes are upper bounds.
        self.counts_cells = all(is_goal_task(c.mdp) or can_wait(c.mdp) for c in cases)

    def run(self) -> None:
        self._close_proven()
        self._close_useless()
        if not self.moves.size:
            return
        F, B = self.moves.tables(self.allowed, self.closed, AHEAD)
        entries = self.moves.entries(F, B)
        fewest = self.moves.per_cell(entries)
        open_cells = np.flatnonzero(~self.allowed & ~self.closed)
        order = open_cells[np.argsort(fewest[open_cells], kind="stable")]
        for x in order:
            if not 0 < self.conflicts.size[x] <= fewest[x]:
                self._try_path(int(x), F, B, entries)
        for x in order:
            if not 0 < self.conflicts.size[x] <= fewest[x]:
                self._settle(int(x))
            if not self.counts_cells and self.conflicts.size[x] > 2:
                self.conflicts.exact[x] = False

    def _close_proven(self) -> None:
        """Cells that are in conflict alone. They are in no other minimal set."""
        unvisited = np.flatnonzero(~self.allowed)
        sets = np.repeat(self.allowed[None], len(unvisited), axis=0)
        sets[np.arange(len(unvisited)), unvisited] = True
        ...

    def _close_useless(self) -> None:
        """Cells that no beating path passes, or none for a reason. Closing some closes more."""
        while True:
            everywhere = ~self.closed
            F, B = self.moves.tables(everywhere, self.closed, 0)
            self.moves = self.moves.restricted(self.moves.entries(F, B) < NEVER)
