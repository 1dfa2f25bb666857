"""How sure demonstrations make a constraint's parameters: a bootstrap over trajectories."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ringfence.objects import Array, Behaviour, Trajectory

LEVEL = 0.95
BOOTSTRAP = 40  # its stream of random numbers


def bootstrap(
    fit: Callable[[Sequence[Behaviour]], Array],
    trajectories: Sequence[Sequence[Trajectory]],
    resamples: int,
    seed: tuple[int, ...],
) -> Array:
    """fit (experts [K] -> parameters [k]) on resampled trajectories of each task: [resamples, k].

    Whole trajectories are drawn, because steps of one are not independent.
    """
    rng = np.random.default_rng([*seed, BOOTSTRAP])
    return np.array(
        [
            fit([_of([task[n] for n in rng.integers(len(task), size=len(task))]) for task in tasks])
            for tasks in [trajectories] * resamples
        ]
    )


def interval(samples: Array) -> tuple[Array, Array]:
    """The central LEVEL of the samples [n, k], per parameter."""
    low, high = np.quantile(samples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


def _of(trajectories: Sequence[Trajectory]) -> Behaviour:
    """A behaviour without reward, one row per step."""
    features = np.concatenate([t.features for t in trajectories])
    n = len(trajectories)
    visits = np.full(len(features), 1 / n)
    return Behaviour(features, visits, 0.0, 0.0, len(features) / n, n)
