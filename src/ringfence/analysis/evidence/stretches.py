"""Whether a path gains anything by passing a cell, in tasks where only goals pay.

If to arrive earlier is never worse (`is_goal_task`), a path that beats a group can be cut short
wherever two of its cells are joined by an equally short way through free cells. So a cell x that
a minimal conflict set needs lies on a stretch of path with no such replacement around x.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringfence.analysis.evidence.moves import Case, Index, Mask, is_goal_task, successors


@dataclass(frozen=True, eq=False)
class Stretches:
    """Where a path may come from and go to, for tasks in which only goals pay.

    before, after [S, D]: the cells from which any task's move leads here, and to which one leads
    (-1 fills up). across [S, D']: those from which every task has a move here (or has ended).
    heads, tails [S]: where a stretch may begin and end: visited cells, starts, goals.
    """

    before: Index
    after: Index
    across: Index
    allowed: Mask
    heads: Mask
    tails: Mask
    horizon: int

    def replacements(self, free: Mask) -> Index:
        """Moves of the shortest way from u to v whose inner cells are all free, [S, S]."""
        S = len(free)
        length = np.full((S, S), self.horizon + 1)
        reached = np.eye(S, dtype=bool)
        for step in range(1, self.horizon + 1):
            reached = _gather(reached if step == 1 else reached & free, self.across)
            reached &= length > step
            if not reached.any():
                break
            length[reached] = step
        return length

    def useful(self, x: int, closed: Mask, around: Index) -> list[int] | None:
        """A stretch through x that has no equally short replacement, outward from x.

        around: `replacements`. The search is over both ends (u, v) of the stretch at once.
        """
        S = len(closed)
        length = np.full((S, S), -1)
        length[x, x] = 0
        fits = ~closed[:, None] & ~closed
        around = around.copy()
        around[x], around[:, x] = self.horizon + 1, self.horizon + 1
        newest = length == 0
        grows = ~self.allowed
        for step in range(self.horizon + 1):
            done = newest & self.heads[:, None] & self.tails
            if done.any():
                u, v = (int(i) for i in np.argwhere(done)[0])
                return self._trace(length, u, v)
            newest = _gather((newest & grows[:, None]).T, self.after).T | _gather(
                newest & grows, self.before
            )
            newest &= (length < 0) & fits & (step + 1 < around)
            length[newest] = step + 1
        return None

    def _trace(self, length: Index, u: int, v: int) -> list[int]:
        """The cells of the stretch that grew to (u, v), from x outward."""
        cells: list[int] = []
        step = int(length[u, v])
        while step > 0:
            step -= 1
            inner = [
                w for w in self.after[u] if w >= 0 and length[w, v] == step and not self.allowed[w]
            ]
            if inner:
                cells.append(u)
                u = int(inner[0])
            else:
                cells.append(v)
                v = next(
                    int(w)
                    for w in self.before[v]
                    if w >= 0 and length[u, w] == step and not self.allowed[w]
                )
        return cells[::-1]


def _gather(mask: Mask, neighbours: Index) -> Mask:
    """out[:, v] = any of mask[:, neighbours[v]]."""
    padded = np.concatenate([mask, np.zeros((len(mask), 1), dtype=bool)], axis=1)
    out = padded[:, neighbours[:, 0]]
    for column in neighbours.T[1:]:
        out |= padded[:, column]
    return out


def stretches_of(cases: Sequence[Case], allowed: Mask) -> Stretches | None:
    """The stretches of tasks in which only goals pay; None if there is another task."""
    if not all(is_goal_task(case.mdp) for case in cases):
        return None
    S = len(allowed)
    some, every = np.zeros((S, S), dtype=bool), np.ones((S, S), dtype=bool)
    heads, tails = allowed.copy(), allowed.copy()
    for case in cases:
        heads[case.start] = True
    for mdp in {id(case.mdp): case.mdp for case in cases}.values():
        moves = np.zeros((S, S + 1), dtype=bool)
        moves[np.arange(S)[:, None], successors(mdp)] = True
        goal = mdp.reward.max(axis=1) > 0
        some |= moves[:, :S]
        every &= moves[:, :S] | goal[:, None]
        tails |= goal
    np.fill_diagonal(some, False)
    np.fill_diagonal(every, False)
    horizon = max(case.mdp.horizon or 0 for case in cases)
    return Stretches(_lists(some.T), _lists(some), _lists(every.T), allowed, heads, tails, horizon)


def _lists(edges: Mask) -> Index:
    """The columns that are true in each row, [S, D], filled up with -1."""
    lists = np.full((len(edges), max(1, int(edges.sum(axis=1).max()))), -1)
    row, column = np.nonzero(edges)
    degree = edges.sum(axis=1)
    lists[row, np.arange(len(row)) - np.repeat(np.cumsum(degree) - degree, degree)] = column
    return lists
