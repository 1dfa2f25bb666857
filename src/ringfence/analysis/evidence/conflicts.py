"""Which cells can't all have been allowed: the smallest conflict sets.

A set of cells that no expert visited is in conflict if allowing it, beside the cells they did
visit, would let some group of experts be beaten. More cells are in conflict too, so the minimal
conflict sets say everything. x belongs to one exactly if it is pivotal for some set S: S is in
conflict and S without x is not.

In worlds without chance the search is exact. A path with the fewest entries into unvisited cells
gives a set to try. Where that set is in conflict even without x, the cell next to x is put into
S for good, or left out for good, and both halves are searched. What makes this quick: a cell
that is in conflict with what is already in S is left out, and so is everything if no path gains
anything by passing x (`stretches.py`). Whether x is pivotal is a hard question in general; where
the search is cut short, the answer says so.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis.evidence.moves import (
    NEVER,
    Case,
    Index,
    Mask,
    Moves,
    can_wait,
    is_certain,
    is_goal_task,
    moves_of,
    returns_with_chance,
)
from ringfence.analysis.evidence.stretches import stretches_of
from ringfence.objects import Array

Cells = frozenset[int]
#: sets of cells [n, S] -> which of them are in conflict [n]
Beaten = Callable[[Mask], Mask]

#: Entries that a table looks ahead at first: few conflict sets are larger, and time grows with it
#: (10 x 10 maze: 1.2, 0.8, 0.6, 0.7 s for 2, 3, 4, 6 when every cell is settled).
AHEAD = 4
#: Cells of the largest world in which every cell's search is carried through: 15 x 15 cells take
#: about a second, 20 x 20 half a minute and more (random mazes, five paths per start).
LARGE = 256
#: Random orders in which cells are let in, in worlds with chance.
ORDERS = 8


@dataclass(eq=False)
class Conflicts:
    """What is known of each cell x [S].

    size: the size of the smallest minimal conflict set with x, 0 if there is none; exact: whether
    that is certain (if not, size is an upper bound, and 0 means that none was found);
    witness: such a set.
    """

    size: NDArray[np.intp]
    exact: Mask
    witness: dict[int, Cells] = field(default_factory=dict)

    def has(self, x: int, size: int) -> bool:
        """Whether a conflict set of at most this size is known for x."""
        return bool(0 < self.size[x] <= size)

    def add(self, found: Cells) -> None:
        for x in found:
            if not self.has(x, len(found)):
                self.size[x] = len(found)
                self.witness[x] = found


def best_returns(cases: Sequence[Case], sets: Mask) -> Array:
    """V_g of each set of cells, sets [n, S] -> [n, G]: the best return from the group's start of
    a policy that is never outside, -inf if there is none."""
    if not cases:
        return np.empty((len(sets), 0))
    if all(is_certain(case.mdp) for case in cases):
        return moves_of(cases).returns(sets)
    return returns_with_chance(cases, sets)


def beaten_by(cases: Sequence[Case], sets: Mask) -> tuple[Index, Array]:
    """The group that each set in conflict, sets [n, S], would beat most clearly, and its return."""
    if not all(is_certain(case.mdp) for case in cases):
        returns = returns_with_chance(cases, sets)
    else:
        moves = moves_of(cases)
        alive = moves.beating()
        returns = np.full((len(sets), len(cases)), -np.inf)
        returns[:, alive[moves.start]] = moves.restricted(alive).beating_returns(sets)
    most = (returns - [case.bar for case in cases]).argmax(axis=1)
    return most, returns[np.arange(len(sets)), most]


def smallest_conflicts(cases: Sequence[Case], allowed: Mask, effort: int) -> Conflicts:
    """The smallest conflict sets of all cells. allowed [S]: the visited ones.

    effort: how often the search for one cell may branch before its size is left as a bound. In
    worlds with chance sizes above 2 are always bounds, and in worlds of more than LARGE cells
    those that the first look (one path with the fewest entries past each cell) does not settle.
    """
    S = len(allowed)
    conflicts = Conflicts(np.zeros(S, dtype=np.intp), np.ones(S, dtype=bool))
    if cases and all(is_certain(case.mdp) for case in cases):
        _Search(cases, allowed, conflicts, effort).run()
    elif cases:
        _sample(cases, allowed, conflicts)
    return conflicts


@dataclass(frozen=True)
class _Node:
    """The sets with x and all of `inside` and none of `outside`; `bound` is their least size.

    tries: such a set that is in conflict; split: the cell to decide about next, if one is left.
    """

    bound: int
    inside: Cells
    outside: Cells
    tries: Cells
    split: int | None


class _Search:
    """The search for every cell's smallest conflict set, one cell after the other.

    `closed` are the cells that can't be in a minimal conflict set of more than one cell: proven
    ones, and those already known to be in none. `moves` are those of paths that beat a group.
    """

    def __init__(
        self, cases: Sequence[Case], allowed: Mask, conflicts: Conflicts, effort: int
    ) -> None:
        self.allowed, self.conflicts, self.effort = allowed, conflicts, effort
        moves = moves_of(cases)
        self.moves = moves.restricted(moves.beating())
        self.closed = np.zeros(len(allowed), dtype=bool)
        self.thorough = len(allowed) <= LARGE
        self.stretches = stretches_of(cases, allowed) if self.thorough else None
        # A path with the fewest entries enters no cell twice, if to wait in it or to leave a loop
        # out costs nothing. Otherwise there may be more entries than cells.
        self.counts_cells = all(is_goal_task(c.mdp) or can_wait(c.mdp) for c in cases)

    def run(self) -> None:
        self._close_proven()
        self._close_useless()
        if not self.moves.size:
            return
        entries = self.moves.fewest(self.allowed, self.closed, AHEAD)
        least = np.minimum(self.moves.per_cell(entries), AHEAD + 1)
        left = np.flatnonzero(~self.allowed & ~self.closed)
        order = [int(x) for x in left[np.argsort(least[left], kind="stable")]]
        self._first_look([x for x in order if least[x] <= AHEAD], entries)
        for x in order:
            if not self.conflicts.has(x, least[x]):
                if self.thorough:
                    self._settle(x)
                else:
                    self.conflicts.exact[x] = False
            if not self.counts_cells and self.conflicts.size[x] > 2:
                self.conflicts.exact[x] = False

    def _first_look(self, order: Sequence[int], entries: Index) -> None:
        """Try the sets of cells on one path with the fewest entries past each cell."""
        fewest = np.lexsort((entries, self.moves.cell))
        first = np.searchsorted(self.moves.cell[fewest], order)
        best = fewest[first]  # the node of each cell where a path needs the fewest
        for nodes, few in self.moves.parts(AHEAD):
            tables: tuple[Array, Array] | None = None
            number = np.cumsum(nodes) - 1
            for x, node in zip(order, best, strict=True):
                if not nodes[node] or self.conflicts.has(x, int(entries[node])):
                    continue
                F, B = tables = tables or few.tables(self.allowed, self.closed, AHEAD)
                before, after = few.path(F, B, number[node], int(entries[node]), self.allowed)
                self._try(x, self._unvisited([x, *before, *after]))

    def _close_proven(self) -> None:
        """Cells that are in conflict alone. They are in no other minimal set."""
        entries = self.moves.fewest(self.allowed, self.closed, 1)
        alone = ~self.allowed & (self.moves.per_cell(entries) == 1)
        rest = np.flatnonzero(~self.allowed & ~alone)
        if not self.counts_cells and len(rest):
            alone[rest[self.moves.beaten(_each_with(self.allowed, rest))]] = True
        for x in np.flatnonzero(alone):
            self.conflicts.add(frozenset([int(x)]))
        self.closed |= alone

    def _close_useless(self) -> None:
        """Cells that no beating path passes, or none for a gain. Closing some closes more."""
        while self.moves.size:
            entries = self.moves.fewest(~self.closed, self.closed, 0)
            self.moves = self.moves.restricted(entries < NEVER)
            useless = ~self.allowed & ~self.closed
            useless &= self.moves.per_cell(np.zeros(self.moves.size, dtype=np.intp)) == NEVER
            if self.stretches is not None:
                around = self.stretches.replacements(self.allowed)
                for x in np.flatnonzero(~self.allowed & ~self.closed & ~useless):
                    closed = self.closed | useless
                    useless[x] = self.stretches.useful(int(x), closed, around) is None
            if not useless.any():
                return
            self.closed |= useless

    def _settle(self, x: int) -> None:
        """The smallest conflict set with x, or that there is none: best-first branch and bound."""
        moves = self._moves_past(x)
        queue: list[tuple[int, int, int, _Node]] = []
        pushed = branchings = 0
        todo: list[tuple[Cells, Cells]] = [(frozenset(), frozenset())]
        while True:
            for inside, outside in todo:
                node = self._look(moves, x, inside, outside)
                if node is not None:
                    pushed += 1
                    heapq.heappush(queue, (node.bound, -len(inside), pushed, node))
            todo = []
            if not queue or self.conflicts.has(x, queue[0][0]):
                break
            node = heapq.heappop(queue)[-1]
            if self._try(x, node.tries) or node.split is None:
                continue
            if branchings == self.effort:
                self.conflicts.exact[x] = False
                return
            branchings += 1
            y = frozenset([node.split])
            todo = [(node.inside | y, node.outside), (node.inside, node.outside | y)]
        if self.conflicts.size[x] == 0:
            self.closed[x] = True

    def _look(self, moves: Moves, x: int, inside: Cells, outside: Cells) -> _Node | None:
        """The sets with x and `inside` and without `outside`; None if x is pivotal for none."""
        free = _with(self.allowed, inside)
        copies = np.flatnonzero(moves.cell == x)
        around = None if self.stretches is None else self.stretches.replacements(free)
        while True:
            closed = _with(self.closed, outside)
            stretch: list[int] | None = []
            if self.stretches is not None and around is not None:
                stretch = self.stretches.useful(x, closed, around)
            tables = None if stretch is None else _tables_past(moves, copies, free, closed)
            if stretch is None or tables is None:
                return None
            F, B, entries = tables
            alone = moves.per_cell(moves.entries(F[..., :2], B[..., :2]))
            if alone.min() == 0:  # what is inside is in conflict without x
                return None
            first = int(entries.argmin())
            before, after = moves.path(F, B, int(copies[first]), int(entries[first]), free)
            impossible = frozenset(int(y) for y in np.flatnonzero((alone == 1) & ~free)) - {x}
            outside |= impossible
            if not impossible & {*stretch, *before, *after}:
                break
        undecided = [y for y in (*stretch, *before, *after) if y != x and not free[y]]
        return _Node(
            bound=len(inside) + int(entries[first]),
            inside=inside,
            outside=outside,
            tries=self._unvisited([x, *before, *after]) | inside,
            split=undecided[0] if undecided else None,
        )

    def _try(self, x: int, cells: Cells) -> bool:
        """If a set in conflict isn't so without x, remember a minimal set in it: x is in that."""
        if self.moves.beaten(_with(self.allowed, cells - {x})[None])[0]:
            return False
        self.conflicts.add(_shrunk(cells, self.allowed, self.moves.beaten))
        return True

    def _unvisited(self, cells: Iterable[int]) -> Cells:
        return frozenset(x for x in cells if not self.allowed[x])

    def _moves_past(self, x: int) -> Moves:
        """The moves of those groups that could be beaten by way of x."""
        groups = np.zeros(len(self.moves.start), dtype=bool)
        groups[self.moves.group[self.moves.cell == x]] = True
        return self.moves.restricted(groups[self.moves.group])


def _tables_past(
    moves: Moves, copies: Index, free: Mask, closed: Mask
) -> tuple[Array, Array, Index] | None:
    """Tables that look far enough ahead for a path past a cell's copies, with the entries it
    takes there; None if there is no such path."""
    ahead = AHEAD
    while True:
        F, B = moves.tables(free, closed, ahead)
        entries = moves.entries(F, B, copies)
        if entries.min() < NEVER:
            return F, B, entries
        if ahead == AHEAD and moves.entries(*moves.tables(~closed, closed, 0), copies).min() > 0:
            return None
        ahead *= 2


def _shrunk(cells: Cells, allowed: Mask, beaten: Beaten) -> Cells:
    """A minimal conflict set within a conflict set.

    If no cell can be left out, that is it. Otherwise: the shortest prefix that is in conflict
    together with the cells already found necessary ends in a necessary cell.
    """
    ordered = sorted(cells)
    if not beaten(np.array([_with(allowed, cells - {y}) for y in ordered])).any():
        return cells
    needed: list[int] = []
    while not beaten(_with(allowed, needed)[None])[0]:
        low, high = 0, len(ordered)  # in conflict with `high` cells of the order, not with `low`
        while high - low > 1:
            middle = (low + high) // 2
            if beaten(_with(allowed, [*needed, *ordered[:middle]])[None])[0]:
                high = middle
            else:
                low = middle
        needed.append(ordered[low])
        ordered = ordered[:low]
    return frozenset(needed)


def _sample(cases: Sequence[Case], allowed: Mask, conflicts: Conflicts) -> None:
    """Conflict sets in worlds with chance: those around a few maximal sets without conflict.

    A cell outside a maximal set is pivotal for it. Cells that are inside all the sets tried may
    still be pivotal for another one, so 0 is exact only if nothing at all is in conflict.
    """
    bar = np.array([case.bar for case in cases])

    def beaten(sets: Mask) -> Mask:
        return np.asarray((returns_with_chance(cases, sets) > bar).any(axis=1))

    unvisited = np.flatnonzero(~allowed)
    alone = unvisited[beaten(_each_with(allowed, unvisited))]
    for x in alone:
        conflicts.add(frozenset([int(x)]))
    rest = np.setdiff1d(unvisited, alone)
    if not beaten(_with(allowed, rest)[None])[0]:
        return
    rng = np.random.default_rng(0)  # the same orders each time: labels are a pure function
    for _ in range(ORDERS):
        inside: list[int] = []
        for y in rng.permutation(rest):
            if not beaten(_with(allowed, [*inside, y])[None])[0]:
                inside.append(int(y))
        for x in np.setdiff1d(rest, inside):
            if conflicts.size[x] == 0:
                conflicts.add(_shrunk(frozenset([*inside, int(x)]), allowed, beaten))
    conflicts.exact[rest] = conflicts.size[rest] == 2


def _with(mask: Mask, cells: Iterable[int]) -> Mask:
    more = mask.copy()
    more[list(cells)] = True
    return more


def _each_with(mask: Mask, cells: Index) -> Mask:
    """The mask with each of the cells added to it, [n, S]."""
    sets = np.repeat(mask[None], len(cells), axis=0)
    sets[np.arange(len(cells)), cells] = True
    return sets
