"""How sure demonstrations make a constraint's parameters: a bootstrap over trajectories.

It says what other demonstrations by the same experts would have given, not how far the experts are
from their limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringfence.analysis.played import Played
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, NotHere, Trajectory, behaviour_of
from ringfence.players.player import Begun
from ringfence.players.regression import TemplateRegression

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


def parameter_interval(played: Played) -> dict[str, Any] | NotHere:
    """The interval of the selected constraint's parameters, learned from the learners before it."""
    form = played.family.form
    if form is None or not form.names:
        return NotHere(f"the class {played.family.text!r} has no parameters with a meaning each")
    if played.resamples < 1:
        return NotHere("[analysis] resamples is 0")
    begun = played.player if isinstance(played.player, Begun) else None
    player = begun.player if begun is not None else played.player
    learners = list(played.before)
    if begun is not None and (begun.keep or not learners):
        learners = [begun.first, *learners]
    if not learners:
        return NotHere("the first constraint was selected, which answers to no learner")

    def fit(experts: Sequence[Behaviour]) -> Array:
        try:
            c = player.update(experts, learners)
        except InvalidInput:  # payoff: these few are in no constraint's budget
            return np.full(len(form.names), np.nan)
        theta = form.theta_of(c)
        assert theta is not None
        return theta

    trajectories = [d.train for d in played.demos]
    samples = bootstrap(fit, trajectories, played.resamples, (played.seed,))
    answered = ~np.isnan(samples).any(axis=1)
    if answered.mean() < 0.5:
        return NotHere("most resampled demonstrations are within no constraint's budget")
    if isinstance(player, TemplateRegression):
        # The regression lies between experts and learners, and learners follow their experts:
        # other experts would have moved both, so the answer twice as far as they alone do.
        centre = fit([behaviour_of(task) for task in trajectories])
        samples = centre + 2 * (samples - centre)
    low, high = interval(samples[answered])
    return {
        "level": LEVEL,
        "resamples": played.resamples,
        "unanswered": int((~answered).sum()),
        "over": "demonstrations",
        "parameters": {
            name: [float(a), float(b)] for name, a, b in zip(form.names, low, high, strict=True)
        },
    }
