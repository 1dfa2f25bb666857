"""Starts from which a constraint was broken, tried again.

A policy that nearly keeps a constraint breaks it from a few starts: those between two ways around
an obstacle, say, where episodes hardly ever begin. So some episodes begin where an earlier one
began that broke it, until one of them keeps it. The number of an episode is all that its start is
drawn from, so this needs nothing of a simulator. What an episode earns and costs is counted on the
others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.objects import Array

#: The stream of random numbers that decide which episodes are retries, in a seed path.
RETRY = 5
#: So many starts are kept for each copy, the latest first.
KEPT = 4
#: What a collector's state has of them.
SAVED = ("retry/now", "retry/start", "retry/broken", "retry/hard")


class Retries:
    """Of copies [n], the first of which has the number `first` among all. now [n]: is the episode
    that is under way a retry?"""

    def __init__(self, copies: int, first: int, share: float, seed: Sequence[int]) -> None:
        self._first, self._share, self._seed = first, share, seed
        self.now = np.zeros(copies, np.bool_)
        self._start = np.zeros(copies, np.int64)
        self._broken = np.zeros(copies, np.bool_)
        self._hard = np.full((copies, KEPT), -1, np.int64)

    def saw(self, raw: Array) -> None:
        """What a step of each copy was worth to the constraint, [n]."""
        self._broken |= raw > 0

    def next(self, copy: int, episode: int) -> int:
        """The number of the episode whose start a copy's next episode has: its own, or an
        earlier one's."""
        if self._share <= 0:
            return episode
        hard = [int(e) for e in self._hard[copy] if e >= 0 and e != self._start[copy]]
        if self._broken[copy]:
            hard = [int(self._start[copy]), *hard][:KEPT]
        self._hard[copy] = hard + [-1] * (KEPT - len(hard))
        rng = np.random.default_rng([*self._seed, RETRY, self._first + copy, episode])
        self.now[copy] = bool(hard) and rng.random() < self._share
        self._start[copy] = hard[rng.integers(len(hard))] if self.now[copy] else episode
        self._broken[copy] = False
        return int(self._start[copy])

    def save(self) -> dict[str, NDArray[Any]]:
        arrays = (self.now, self._start, self._broken, self._hard)
        return {name: a.copy() for name, a in zip(SAVED, arrays, strict=True)}

    def restore(self, saved: Mapping[str, NDArray[Any]]) -> None:
        now, start, broken, hard = (np.asarray(saved[name]) for name in SAVED)
        self.now, self._broken = now.astype(np.bool_), broken.astype(np.bool_)
        self._start, self._hard = start.astype(np.int64), hard.astype(np.int64)
