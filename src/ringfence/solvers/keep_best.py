"""Which policy a training hands out, and when it has reached enough.

A cost that comes in waves makes the last policy a matter of luck. So a policy is judged by the
latest rollouts: handed out is the one after the best window of them that kept to the limit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Policy = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Kept:
    """A policy that may be handed out, its update, and what an episode earned (0 until judged)."""

    policy: Policy
    update: int
    reward: float = 0.0


@dataclass(frozen=True, eq=False)
class KeepBest:
    """recent: (reward, cost, falls) per horizon of the latest rollouts, a window of them.

    kept: the best so far, None if none kept to its limit; candidate: to be judged by rollouts
    that are to come.
    """

    recent: tuple[tuple[float, float, float], ...] = ()
    kept: Kept | None = None
    candidate: Kept | None = None

    def add(self, reward: float, cost: float, falls: float, window: int) -> KeepBest:
        """With one more rollout."""
        return replace(self, recent=(*self.recent, (reward, cost, falls))[-window:])

    def episode(self) -> tuple[float, float]:
        """What an episode earned and cost in the window.

        With a constant chance to fall an episode lasts (1 - exp(-f)) / f of the horizon, f the
        falls per horizon; so much of the reward per horizon it earns.
        """
        reward, cost, falls = map(float, np.mean(self.recent, axis=0))
        return float(reward * (-np.expm1(-falls) / falls if falls else 1.0)), cost

    def reached(self, reward: float | None, delta: float, window: int) -> bool:
        """The stop rule: as much reward as asked for, over a full window within the limit."""
        if reward is None or len(self.recent) < window:
            return False
        earned, cost = self.episode()
        return earned >= reward and cost <= delta

    def judge(self, policy: Policy, update: int, limit: float, window: int, lag: int) -> KeepBest:
        """`policy` becomes the candidate, unless there is one; `lag` updates later it is judged."""
        candidate = self.candidate or Kept(policy, update)
        if update < candidate.update + lag:
            return replace(self, candidate=candidate)
        kept, (earned, cost) = self.kept, self.episode()
        full = len(self.recent) == window
        if full and cost <= limit and (kept is None or earned > kept.reward):
            kept = replace(candidate, reward=earned)
        return replace(self, kept=kept, candidate=None)
