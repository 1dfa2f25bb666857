"""The searches over a graph of moves (`moves.py`) where only goals pay: by moves, not by steps.

To arrive earlier is never worse there, so that a node's best path is one with the fewest moves.
A search goes from one front of nodes to the next, for all groups at once, and never on from a node
that it reached too late for a path that beats the group: its time doesn't grow with the horizon.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ringfence.objects import Array

Mask = NDArray[np.bool_]
Index = NDArray[np.intp]


class Graph(Protocol):
    """What a search needs of `Moves`; see there."""

    @property
    def size(self) -> int: ...
    @property
    def cell(self) -> Index: ...
    @property
    def group(self) -> Index: ...
    @property
    def successor(self) -> Index: ...
    @property
    def predecessor(self) -> Index: ...
    @property
    def last(self) -> Array: ...
    @property
    def start(self) -> Index: ...


def moves_away(onward: Callable[[Index], Index], begin: Index, until: Array) -> Array:
    """The fewest moves from `begin` to each node [N], inf if they are more than until [N]."""
    away, last = np.full(len(until), np.inf), np.empty(len(until), dtype=np.intp)
    front, moves = begin[until[begin] >= 0], 0
    while len(front):
        away[front] = moves
        moves += 1
        reached = onward(front)
        reached = reached[(until[reached] >= moves) & (away[reached] > moves)]
        count = np.arange(len(reached))
        last[reached] = count
        front = reached[last[reached] == count]  # each node once
    return away


def arrivals(graph: Graph, until: Array) -> Array:
    """The fewest moves to a goal of each group, [n, G], in n searches at once.

    until [n, N]: the most moves to each node, negative where it is closed.
    """
    n, N = until.shape
    copies = N * np.arange(n)[:, None]

    def onward(front: Index) -> Index:
        node = front % N
        return np.asarray((front - node + graph.successor[:, node]).ravel())

    away = moves_away(onward, (copies + graph.start).ravel(), until.ravel()).reshape(n, N)
    arrival = np.full((len(graph.start), n), np.inf)
    goal = graph.last > 0
    np.minimum.at(arrival, graph.group[goal], away[:, goal].T)
    return arrival.T


def tables(graph: Graph, free: Mask, until: tuple[Array, Array], most: int) -> tuple[Array, Array]:
    """The fewest moves from the start to each node, F[n, k], and from it to a goal, B[n, k], with
    at most k = 0..most entries into nodes that are not free [N]; inf if more than until [N]."""
    N = graph.size
    layers = N * np.arange(most + 1)[:, None]

    def search(begin: Index, other: Index, forward: bool, until: Array) -> Array:
        def onward(front: Index) -> Index:
            node = front % N
            to = other[:, node]
            entry = (to != node) & ~free[to if forward else node]
            reached = front - node + to + N * entry
            return np.asarray(reached[reached < N * (most + 1)])

        away = moves_away(onward, (layers + begin).ravel(), np.tile(until, most + 1))
        return away.reshape(most + 1, N).T

    F = search(graph.start, graph.successor, True, until[0])
    B = search(np.flatnonzero(graph.last > 0), graph.predecessor, False, until[1])
    return F, B


def entries(F: Array, B: Array, latest: Index) -> Index:
    """The fewest entries of a path past each node [n] that needs at most latest [n] moves."""
    fewest = np.full(len(F), np.iinfo(np.intp).max)
    for k in reversed(range(F.shape[1])):
        moves = (F[:, : k + 1] + B[:, k::-1]).min(axis=1)
        fewest[moves <= latest] = k
    return fewest


def path(
    graph: Graph, F: Array, B: Array, node: int, k: int, free: Mask
) -> tuple[list[int], list[int]]:
    """The shortest path through `node` with at most k entries: cells before and after it.

    Both lists lead away from the node, without it.
    """
    moves = F[node, : k + 1] + B[node, k::-1]
    so_far = int(np.lexsort((F[node, : k + 1], moves))[0])
    before: list[int] = []
    after: list[int] = []
    n, left = node, so_far
    while F[n, left] > 0:
        other = graph.predecessor[:, n]
        n, left = _nearer(F, other, left - ((other != n) & ~free[n]))
        before.append(int(graph.cell[n]))
    n, left = node, k - so_far
    while B[n, left] > 0:
        other = graph.successor[:, n]
        n, left = _nearer(B, other, left - ((other != n) & ~free[other]))
        after.append(int(graph.cell[n]))
    return before, after


def _nearer(away: Array, other: Index, left: Index) -> tuple[int, int]:
    """The nearest of a node's neighbours, and the entries that are left there."""
    nearest = int(np.where(left < 0, np.inf, away[other, left]).argmin())
    return int(other[nearest]), int(left[nearest])
