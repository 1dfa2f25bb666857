"""Deterministic tasks as one graph of moves, and the dynamic programmes over it.

Evidence asks one question very often: could a group of experts have been beaten if these cells
had been allowed? With certain transitions that is a longest path over time, and the answers for
all groups come from one graph that holds a copy of the cells per group.

    V[n, s]  best return to go      F[t, n, k]  best return so far, at node n at time t
                                    B[h, n, k]  best return to go with h steps left

k is the number of entries into cells that are not free, at most. Coming into such a cell from
another one is an entry; staying in it is not. Where only goals pay, to arrive earlier is all that
counts, and tables without time do (`ways.py`):

    F[n, k]  fewest moves from the start      B[n, k]  fewest moves to a goal
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis.evidence import ways
from ringfence.errors import InvalidInput
from ringfence.objects import Array
from ringfence.worlds.finite import FiniteMDP

Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

#: Probabilities this close to 1 are certain.
CERTAIN = 1e-12
#: More entries than any path has.
NEVER = np.iinfo(np.intp).max
#: Numbers in the tables that are held at once (8 bytes each): a large map's groups and sets of
#: cells are looked at a few at a time.
AT_ONCE = 1 << 23
#: Nodes from which on one search over the graph is quicker than a table of all steps.
MANY = 20_000


@dataclass(frozen=True, eq=False)
class Case:
    """What a group of experts is held to: a return above `bar` from `start` would beat it."""

    mdp: FiniteMDP
    start: int
    bar: float


def is_certain(mdp: FiniteMDP) -> bool:
    """Whether every action leads to one state (or ends the episode) for certain."""
    P = mdp.transition
    return bool((np.diff(P.indptr) <= 1).all() and (P.data > 1 - CERTAIN).all())


def successors(mdp: FiniteMDP) -> Index:
    """The state that each action leads to, [S, A]; S stands for the end of the episode."""
    P = mdp.transition
    target = np.full(P.shape[0], mdp.num_states)
    target[np.flatnonzero(np.diff(P.indptr))] = P.indices
    return target.reshape(mdp.reward.shape)


def is_goal_task(mdp: FiniteMDP) -> bool:
    """Whether only goals pay, all the same, for ever: then to arrive earlier is never worse."""
    if not is_certain(mdp):
        return False
    pays = mdp.reward != 0
    goal = pays.any(axis=1)
    stays = (successors(mdp) == np.arange(mdp.num_states)[:, None]).all(axis=1)
    return bool(
        (pays.all(axis=1) | ~goal).all()
        and stays[goal].all()
        and mdp.reward.min() >= 0
        and len(np.unique(mdp.reward[goal])) <= 1
    )


def can_wait(mdp: FiniteMDP) -> bool:
    """Whether in each state some action stays there and pays as well as any other."""
    stays = successors(mdp) == np.arange(mdp.num_states)[:, None]
    waiting = np.where(stays, mdp.reward, -np.inf).max(axis=1)
    return bool((waiting >= mdp.reward.max(axis=1)).all())


@dataclass(frozen=True, eq=False)
class Moves:
    """The moves of all cases: node n is cell[n] in the copy of case group[n].

    successor, gain [D, N]: where a move leads and what it pays (-inf fills up missing moves);
    predecessor, gain_from [D', N]: the same, backwards; last [N]: what the last step pays;
    start [G]: each group's first node, since [G]: when it begins, so that all end at `horizon`.
    Cell S, in each copy, is the end of an episode: it is free and pays nothing. pay [G]: what a
    step at a group's goals pays, where in all groups nothing else does.
    """

    cells: int
    horizon: int
    cell: Index
    group: Index
    successor: Index
    gain: Array
    predecessor: Index
    gain_from: Array
    last: Array
    start: Index
    since: Index
    bar: Array
    pay: Array | None

    @property
    def size(self) -> int:
        return len(self.cell)

    def restricted(self, alive: Mask) -> Moves:
        """The same moves among the nodes `alive` [N] only, without the groups that lose all."""
        keep = alive[self.start]
        alive = alive & keep[self.group]
        renumber = np.cumsum(alive) - 1
        successor, gain = _renumbered(
            self.successor[:, alive], self.gain[:, alive], alive, renumber
        )
        before, gain_from = _renumbered(
            self.predecessor[:, alive], self.gain_from[:, alive], alive, renumber
        )
        return replace(
            self,
            cell=self.cell[alive],
            group=(np.cumsum(keep) - 1)[self.group[alive]],
            successor=successor,
            gain=gain,
            predecessor=before,
            gain_from=gain_from,
            last=self.last[alive],
            start=renumber[self.start[keep]],
            since=self.since[keep],
            bar=self.bar[keep],
            pay=None if self.pay is None else self.pay[keep],
        )

    @cached_property
    def latest(self) -> Index:
        """Where only goals pay: the most moves [G] with which a group is beaten, -1 if none do."""
        assert self.pay is not None
        left = (self.horizon - self.since)[:, None] - np.arange(self.horizon)
        return np.asarray((self.pay[:, None] * np.maximum(left, 0) > self.bar[:, None]).sum(1) - 1)

    @cached_property
    def until(self) -> tuple[Array, Array]:
        """Where only goals pay: the most moves from the start to each node [N], and from it to a
        goal, of a path that beats its group; negative if there is none."""
        every, any_time = np.ones(self.size, dtype=bool), np.full(self.size, np.inf)
        F, B = ways.tables(self, every, (any_time, any_time), 0)
        latest = self.latest[self.group]
        return latest - B[:, 0], latest - F[:, 0]

    def returns(self, sets: Mask) -> Array:
        """V_g of each set of cells, sets [n, S] -> [n, G]; -inf where the start is outside."""
        if self.pay is not None and self.size > MANY:
            return self._paid(sets, np.full(self.size, np.inf))
        few = max(1, AT_ONCE // max(self.size, 1))
        parts = [self._returns(sets[n : n + few]) for n in range(0, len(sets), few)]
        return np.concatenate(parts) if parts else np.empty((0, len(self.start)))

    def beating_returns(self, sets: Mask) -> Array:
        """`returns` where they beat the group, -inf elsewhere."""
        returns = self.returns(sets) if self.pay is None else self._paid(sets, self.until[0])
        return np.where(returns > self.bar, returns, -np.inf)

    def _paid(self, sets: Mask, until: Array) -> Array:
        """`returns` where only goals pay, by paths that are at each node after `until` [N] moves
        at most."""
        assert self.pay is not None
        few = max(1, AT_ONCE // max(3 * self.size, 1))  # a search holds three tables
        arrival = np.full((len(sets), len(self.start)), np.inf)
        for n in range(0, len(sets), few):
            inside = _with_end(sets[n : n + few])[:, self.cell]
            arrival[n : n + few] = ways.arrivals(self, np.where(inside, until, -1))
        left = np.maximum(self.horizon - self.since - arrival, 0)
        return np.where(_with_end(sets)[:, self.cell[self.start]], self.pay * left, -np.inf)

    def _returns(self, sets: Mask) -> Array:
        inside = _with_end(sets).T[self.cell]
        V = np.where(inside, self.last[:, None], -np.inf)
        out = np.full((len(sets), len(self.start)), -np.inf)
        for h in range(1, self.horizon + 1):
            begin = np.flatnonzero(self.horizon - self.since == h)
            out[:, begin] = V[self.start[begin]].T
            if h < self.horizon:
                V = np.where(inside, _best(V, self.successor, self.gain), -np.inf)
        return out

    def beaten(self, sets: Mask) -> Mask:
        """Which sets of cells, [n, S], let some group be beaten, [n]."""
        return np.asarray(np.isfinite(self.beating_returns(sets)).any(axis=1))

    def tables(self, free: Mask, closed: Mask, most: int) -> tuple[Array, Array]:
        """F and B for k = 0..most entries into cells that are not free [S].

        No path enters a closed cell [S].
        """
        shut = _with_end(closed, False)[self.cell]
        open_ = _with_end(free)[self.cell]
        if self.pay is not None:
            start, end = (np.where(shut, -1, until) for until in self.until)
            return ways.tables(self, open_, (start, end), most)
        N, here = self.size, np.arange(self.size)
        # Rows 0..N-1 of `both` are one entry further than rows N..2N-1.
        both = np.full((2 * N, most + 1), -np.inf)
        B = np.full((self.horizon + 1, N, most + 1), -np.inf)
        B[1] = np.where(shut, -np.inf, self.last)[:, None]
        plain = (self.successor == here) | open_[self.successor]
        to, gain = self.successor + N * plain, self._passable(self.successor, self.gain, shut)
        for h in range(2, self.horizon + 1):
            _stack(both, B[h - 1])
            B[h] = _best(both, to, gain)
        F = np.full((self.horizon, N, most + 1), -np.inf)
        plain = (self.predecessor == here) | open_
        to = self.predecessor + N * plain
        gain = self._passable(self.predecessor, self.gain_from, shut)
        for t in range(self.horizon):
            if t > 0:
                _stack(both, F[t - 1])
                F[t] = _best(both, to, gain)
            F[t][self.start[self.since == t]] = 0.0
        return F, B

    def _passable(self, other: Index, gain: Array, shut: Mask) -> Array:
        return np.where(shut | shut[other], -np.inf, gain)

    def parts(self, most: int) -> Iterator[tuple[Mask, Moves]]:
        """The nodes [N] of a few groups at a time, with their moves, as `tables` of `most` entries
        can hold them."""
        nodes = np.bincount(self.group, minlength=len(self.start))
        part = 2 * self.horizon * (most + 1) * np.cumsum(nodes) // AT_ONCE
        for n in np.unique(part):
            chosen = (part == n)[self.group]
            yield chosen, self.restricted(chosen)

    def fewest(self, free: Mask, closed: Mask, most: int) -> Index:
        """`entries` of all nodes, [N]."""
        found = np.full(self.size, NEVER)
        for nodes, few in self.parts(most):
            found[nodes] = few.entries(*few.tables(free, closed, most))
        return found

    def beating(self) -> Mask:
        """The nodes [N] on paths that beat their group where every cell is allowed.

        A path that beats it within some set of cells is one of these, so no other nodes matter.
        """
        every = np.ones(self.cells, dtype=bool)
        alive = (self.returns(every[None])[0] > self.bar)[self.group]
        few = self.restricted(alive)
        alive[alive] = few.fewest(every, ~every, 0) < NEVER
        return np.asarray(alive)

    def entries(self, F: Array, B: Array, nodes: Index | slice = slice(None)) -> Index:
        """The fewest entries of a path that beats its group and passes each of the nodes."""
        if self.pay is not None:
            return ways.entries(F[nodes], B[nodes], self.latest[self.group[nodes]])
        so_far, togo = F[:, nodes], B[:0:-1, nodes]
        bar = self.bar[self.group[nodes]]
        fewest = np.full(len(bar), NEVER)
        for k in reversed(range(F.shape[2])):
            for i in range(k + 1):
                total = (so_far[:, :, i] + togo[:, :, k - i]).max(axis=0)
                fewest[total > bar] = k
        return fewest

    def per_cell(self, values: Index) -> Index:
        """The least value of each cell over its copies, [N] -> [S]."""
        least = np.full(self.cells + 1, NEVER)
        np.minimum.at(least, self.cell, values)
        return least[: self.cells]

    def path(
        self, F: Array, B: Array, node: int, k: int, free: Mask
    ) -> tuple[list[int], list[int]]:
        """The best path through `node` with at most k entries: cells before and after it.

        Both lists lead away from the node, without it.
        """
        if self.pay is not None:
            return ways.path(self, F, B, node, k, _with_end(free)[self.cell])
        togo = B[:0:-1]
        options = F[:, node, : k + 1] + togo[:, node, k::-1]
        t, so_far = (int(i) for i in np.unravel_index(options.argmax(), options.shape))
        open_ = _with_end(free)[self.cell]
        before: list[int] = []
        after: list[int] = []
        n, left = node, so_far
        for step in reversed(range(int(self.since[self.group[node]]), t)):
            other = self.predecessor[:, n]
            entered_free = np.full(len(other), open_[n])
            n, left = _follow(F[step], other, self.gain_from[:, n], n, left, entered_free)
            before.append(int(self.cell[n]))
        n, left = node, k - so_far
        for h in range(self.horizon - t - 1, 0, -1):
            other = self.successor[:, n]
            n, left = _follow(B[h], other, self.gain[:, n], n, left, open_[other])
            after.append(int(self.cell[n]))
        return before, [c for c in after if c < self.cells]


def moves_of(cases: Sequence[Case]) -> Moves:
    """The graph of the cases' moves. Their tasks must be certain and have the same states."""
    cells = cases[0].mdp.num_states
    horizons = [_horizon(case.mdp) for case in cases]
    size = cells + 1
    edges = [_edges(case.mdp, g * size) for g, case in enumerate(cases)]
    source, target, gain = (np.concatenate(part) for part in zip(*edges, strict=True))
    successor, gain_to = _padded(source, target, gain, size * len(cases))
    predecessor, gain_from = _padded(target, source, gain, size * len(cases))
    return Moves(
        cells=cells,
        horizon=max(horizons),
        cell=np.tile(np.arange(size), len(cases)),
        group=np.repeat(np.arange(len(cases)), size),
        successor=successor,
        gain=gain_to,
        predecessor=predecessor,
        gain_from=gain_from,
        last=gain_to.max(axis=0),
        start=np.array([g * size + case.start for g, case in enumerate(cases)]),
        since=max(horizons) - np.array(horizons),
        bar=np.array([case.bar for case in cases]),
        pay=np.array([case.mdp.reward.max() for case in cases])
        if all(is_goal_task(case.mdp) for case in cases)
        else None,
    )


def returns_with_chance(cases: Sequence[Case], sets: Mask) -> Array:
    """V_g of each set of cells as in `Moves.returns`, for any transitions.

    An action that may lead outside, however unlikely, is not one of a policy that never is.
    """
    out = np.empty((len(sets), len(cases)))
    for mdp in {id(case.mdp): case.mdp for case in cases}.values():
        V = _values_with_chance(mdp, sets)
        for g, case in enumerate(cases):
            if case.mdp is mdp:
                out[:, g] = V[case.start]
    return out


def _values_with_chance(mdp: FiniteMDP, sets: Mask) -> Array:
    """The best return from each state within each set, [S, n]."""
    S, A = mdp.reward.shape
    V = np.zeros((S, len(sets)))
    for _ in range(_horizon(mdp)):
        dead = np.isneginf(V)
        Q = mdp.reward.reshape(-1, 1) + mdp.transition @ np.where(dead, 0.0, V)
        Q[(mdp.transition @ dead.astype(np.float64)) > 0] = -np.inf
        V = np.where(sets.T, Q.reshape(S, A, -1).max(axis=1), -np.inf)
    return np.asarray(V)


def _horizon(mdp: FiniteMDP) -> int:
    if mdp.horizon is None:
        raise InvalidInput("evidence needs tasks with a finite horizon")
    return mdp.horizon


def _edges(mdp: FiniteMDP, offset: int) -> tuple[Index, Index, Array]:
    """The moves of one copy: from, to, and the best reward of any action that makes it."""
    S, A = mdp.reward.shape
    source = np.append(np.repeat(np.arange(S), A), S)
    target = np.append(successors(mdp).ravel(), S)
    pays = np.append(mdp.reward.ravel(), 0.0)
    order = np.lexsort((-pays, target, source))
    source, target, pays = source[order], target[order], pays[order]
    first = np.append(True, (np.diff(source) != 0) | (np.diff(target) != 0))
    return source[first] + offset, target[first] + offset, pays[first]


def _padded(at: Index, other: Index, gain: Array, size: int) -> tuple[Index, Array]:
    """Edge lists as tables [D, size]; a missing edge points home and pays -inf."""
    order = np.argsort(at, kind="stable")
    at, other, gain = at[order], other[order], gain[order]
    degree = np.bincount(at, minlength=size)
    column = np.arange(len(at)) - np.repeat(np.cumsum(degree) - degree, degree)
    table = np.tile(np.arange(size), (degree.max(), 1))
    pays = np.full(table.shape, -np.inf)
    table[column, at], pays[column, at] = other, gain
    return table, pays


def _renumbered(other: Index, gain: Array, alive: Mask, number: Index) -> tuple[Index, Array]:
    gain = np.where(alive[other], gain, -np.inf)
    home = np.arange(other.shape[1])
    return np.where(alive[other], number[other], home), gain


def _with_end(mask: Mask, end: bool = True) -> Mask:
    """A mask over the cells [..., S] with the end of the episode added as cell S."""
    return np.concatenate([mask, np.full((*mask.shape[:-1], 1), end)], axis=-1)


def _stack(both: Array, values: Array) -> None:
    N = len(values)
    both[:N, 1:] = values[:, :-1]
    both[N:] = values


def _best(values: Array, to: Index, gain: Array) -> Array:
    """max_d gain[d, n] + values[to[d, n]], one kind of move at a time: gathers are cheap."""
    out: Array = values.take(to[0], axis=0)
    out += gain[0, :, None]
    for target, paid in zip(to[1:], gain[1:, :, None], strict=True):
        other = values.take(target, axis=0)
        other += paid
        np.maximum(out, other, out=out)
    return out


def _follow(
    values: Array, other: Index, gain: Array, n: int, left: int, free: Mask
) -> tuple[int, int]:
    """The best neighbour of n in a table's layer, and the entries that are left there."""
    remaining = left - ((other != n) & ~free)
    worth = np.where(remaining < 0, -np.inf, values[other, remaining] + gain)
    best = int(worth.argmax())
    return int(other[best]), int(remaining[best])
