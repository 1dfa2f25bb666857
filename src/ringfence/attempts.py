"""Which episodes failed at their task, told by their returns alone.

A demonstrator or learner that never sets out violates nothing and earns nothing: it says nothing
about a constraint, but a player that goes by means takes it for the experts' (or learners') way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ringfence.objects import Trajectory

#: A return fails that lies below its group's median by this many robust standard deviations, and
#: by at least this share of the median (experts often all have the same return).
FAR_BELOW, SHARE = 5.0, 0.2
#: The median absolute deviation times this is a normal distribution's standard deviation.
MAD_TO_SIGMA = 1.4826
#: Fewer trajectories than this have no "rest" to stand apart from.
SMALLEST_GROUP = 4


def failed(trajectories: Sequence[Trajectory]) -> NDArray[np.bool_]:
    """Which ones lie far below the others from the same start, always fewer than half [n]."""
    returns = np.array([t.rewards.sum() for t in trajectories])
    found = np.zeros(len(trajectories), np.bool_)
    for group in same_start(trajectories):
        if len(group) < SMALLEST_GROUP:
            continue
        middle = float(np.median(returns[group]))
        spread = MAD_TO_SIGMA * float(np.median(np.abs(returns[group] - middle)))
        found[group] = middle - returns[group] > max(FAR_BELOW * spread, SHARE * abs(middle), 1e-9)
    return found


def same_start(trajectories: Sequence[Trajectory]) -> list[NDArray[np.intp]]:
    """Indices grouped by first observation; one group where most have a first one of their own.

    (Continuous states repeat only where an episode was copied.)
    """
    first = np.stack([t.observations[0] for t in trajectories])
    _, index = np.unique(first, axis=0, return_inverse=True)
    index = index.ravel()
    sharing = np.bincount(index)[index]  # of each, how many have its start
    if np.mean(sharing == 1) > 0.5:
        return [np.arange(len(trajectories))]
    return [np.flatnonzero(index == group) for group in range(index.max() + 1)]
