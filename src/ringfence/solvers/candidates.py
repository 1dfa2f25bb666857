"""Which policy a training hands out: the best that was seen to keep its limits, tested afresh.

A cost that comes in waves makes the last policy a matter of luck. So the policy in the middle of
each window of rollouts is a candidate, with what the window earned and cost. At the end the best of
them are tested, in their order, on episodes that nothing was chosen by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta
from scipy.stats import t as student

from ringfence.objects import Array, Trajectory
from ringfence.solvers.limits import (
    ALLOWED_CHANCE,
    Channel,
    Rates,
    episode_length,
    mean_rates,
    relative_costs,
)

Policy = dict[str, NDArray[Any]]
#: (policy, number of the batch, count, without noise) -> fresh episodes
Roll = Callable[[Policy, int, int, bool], list[Trajectory]]

#: So many windows overlap. (300,000 steps are 146 rollouts: windows of 20 side by side would leave
#: seven policies to choose from.)
OVERLAP = 4
#: Of the limits: the best policy within each of them is kept, beside the last policy.
SHARES = (1.0, 0.75, 0.5, 0.25)
#: So many that were found to be within are compared by what they earned in their tests: a window
#: tells little of the one policy in its middle. (A Hopper's window of 1719 reward had one of 1576.)
MOST_WITHIN = 3
#: Of all tests together.
CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Candidate:
    """A policy, its update, what an episode of its window earned and cost (relative, the worst)."""

    policy: Policy
    update: int
    reward: float = 0.0
    cost: float = 0.0


@dataclass(frozen=True, eq=False)
class Candidates:
    """recent: the last rollouts, a window at most; waiting: policies whose window is not over;
    best: in order."""

    recent: tuple[Rates, ...] = ()
    waiting: tuple[Candidate, ...] = ()
    best: tuple[Candidate, ...] = ()

    def add(
        self,
        rates: Rates,
        policy: Callable[[], Policy],
        update: int,
        window: int,
        every: Sequence[Channel],
        horizon: int,
        within: float,
    ) -> Candidates:
        """With one more rollout. within: relative costs up to it count as kept."""
        recent = (*self.recent, rates)[-window:]
        waiting, best = self.waiting, self.best
        if update % max(1, window // OVERLAP) == 0:
            waiting = (*waiting, Candidate(policy(), update))
        if waiting and waiting[0].update + window // 2 <= update:
            first, *rest = waiting
            waiting = tuple(rest)
            if len(recent) == window:
                earned, cost = seen(recent, every, horizon)
                best = worth_testing((*best, replace(first, reward=earned, cost=cost)), within)
        return Candidates(recent, waiting, best)

    def reached(
        self, reward: float | None, window: int, every: Sequence[Channel], horizon: int
    ) -> bool:
        """The stop rule: as much reward as asked for, over a full window within the limits."""
        if reward is None or len(self.recent) < window:
            return False
        earned, cost = seen(self.recent, every, horizon)
        return earned >= reward and cost <= 1


def seen(recent: Sequence[Rates], every: Sequence[Channel], horizon: int) -> tuple[float, float]:
    """What an episode of these rollouts earned, and its worst relative cost."""
    rates = mean_rates(recent)
    length = episode_length(rates.ends, horizon)
    return length * rates.reward, max(relative_costs(rates, every, horizon))


def rank(c: Candidate, within: float) -> tuple[bool, float, int]:
    """Those within the limits by reward, others by cost; of equals the later."""
    return (c.cost > within, c.cost if c.cost > within else -c.reward, -c.update)


def worth_testing(candidates: Sequence[Candidate], within: float) -> tuple[Candidate, ...]:
    """The best within each share of the limits, so that there is one to fall back on where who
    earns most proves to be beyond them; of those beyond, the one that costs least. In order."""
    order = sorted(candidates, key=lambda c: rank(c, within))
    first = [next((c for c in order if c.cost <= share * within), None) for share in SHARES]
    least = min(order, key=lambda c: (c.cost, -c.update))
    return tuple(c for c in order if any(c is kept for kept in (*first, least)))


# The test ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tested:
    """A candidate's fresh episodes, with its noise and without; bounds: the upper bound of each
    limit's cost in units of the limit (of 0: of the chance, in units of the allowed one); mean: the
    worst of their means, in the same units."""

    candidate: Candidate
    stochastic: list[Trajectory]
    deterministic: list[Trajectory]
    bounds: tuple[float, ...]
    mean: float = 0.0

    @property
    def within(self) -> bool:
        return max(self.bounds) <= 1

    def earned(self) -> float:
        """By an episode with noise, on average."""
        return float(np.mean([t.rewards.sum() for t in self.stochastic]))

    @property
    def open(self) -> bool:
        """Might more episodes show that it is within?"""
        return not self.within and self.mean <= 1


def hand_out(
    candidates: Sequence[Candidate],
    every: Sequence[Channel],
    roll: Roll,
    first: int,
    most: int,
    steps: int,
    noiseless: bool,
) -> tuple[Tested, list[Tested]]:
    """Of the first few candidates whose bounds are within every limit the one that earned most in
    its test, else the one with the lowest bounds; and all that were tested.

    first, most: episodes of a test, doubled while it is undecided; steps: that all tests together
    may take; noiseless: without noise, too.
    """
    confidence = 1 - (1 - CONFIDENCE) / len(candidates)
    tests: list[Tested] = []
    for number, candidate in enumerate(candidates):
        if tests and steps <= 0:
            break
        test, batch = Tested(candidate, [], [], ()), 0
        while not test.bounds or (test.open and 2 * len(test.stochastic) <= most and steps > 0):
            count = max(first, len(test.stochastic))
            sides = [test.stochastic, test.deterministic]
            for quiet in (0, 1) if noiseless else (0,):
                sides[quiet] = sides[quiet] + roll(
                    candidate.policy, 100 * number + batch, count, bool(quiet)
                )
                steps -= sum(len(t) for t in sides[quiet][-count:])
            test = judged(candidate, sides, every, confidence)
            batch += 1
        tests.append(test)
        if sum(test.within for test in tests) == MOST_WITHIN:
            break
    within = [test for test in tests if test.within]
    if within:
        return max(within, key=Tested.earned), tests
    return min(tests, key=lambda test: max(test.bounds)), tests


def judged(
    candidate: Candidate,
    sides: Sequence[list[Trajectory]],
    every: Sequence[Channel],
    confidence: float,
) -> Tested:
    """With the bounds of its episodes, on the side where they are worse."""
    there = [side for side in sides if side]
    costs = [[episode_costs(channel, side) for side in there] for channel in every]
    pairs = list(zip(every, costs, strict=True))
    bounds = [max(upper_bound(c, side, confidence) for side in each) for c, each in pairs]
    means = [max(relative(c, side) for side in each) for c, each in pairs]
    return Tested(candidate, sides[0], sides[1], tuple(bounds), max(means))


def episode_costs(channel: Channel, runs: Sequence[Trajectory]) -> Array:
    return np.array([float(channel.constraint.cost(t.features).sum()) for t in runs])


def relative(channel: Channel, costs: Array) -> float:
    """The mean of episodes' costs [n], in units of the limit, or of the allowed chance."""
    if channel.zero:
        return float((costs > 0).mean()) / ALLOWED_CHANCE
    return float(costs.mean()) / channel.limit


def upper_bound(channel: Channel, costs: Array, confidence: float) -> float:
    """One-sided, of `relative`: exact (Clopper-Pearson) for a chance, Student's for a mean."""
    n = len(costs)
    if channel.zero:
        hits = int((costs > 0).sum())
        chance = 1.0 if hits == n else float(beta.ppf(confidence, hits + 1, n - hits))
        return chance / ALLOWED_CHANCE
    error = float(costs.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf
    return float(costs.mean() + student.ppf(confidence, max(n - 1, 1)) * error) / channel.limit


# What is said of it ------------------------------------------------------------------------------


def doubts(test: Tested, every: Sequence[Channel], strained: bool) -> list[str]:
    """Of the policy that is handed out: which limits it was not seen to keep, and by how much.

    strained: did the multiplier stand at its highest to the end?
    """
    sides = [side for side in (test.stochastic, test.deterministic) if side]
    found = []
    for channel, bound in zip(every, test.bounds, strict=True):
        worst = max((episode_costs(channel, side) for side in sides), key=np.mean)
        # Beside another limit that is broken, one that was never is only not yet proven.
        if bound <= 1 or (len(every) > 1 and not worst.any()):
            continue
        n, what = len(worst), channel.constraint.describe()
        if channel.zero:
            found.append(
                f"the limit of 0 on {what} is not kept: {int((worst > 0).sum())} of {n} fresh "
                f"episodes cost something, so up to {bound * ALLOWED_CHANCE:.1%} of all may; "
                f"{ALLOWED_CHANCE:.0%} count as kept"
            )
        else:
            found.append(
                f"the limit of {channel.limit:.4g} on {what} is not kept: {n} fresh episodes cost "
                f"{worst.mean():.4g} on average, and all may cost up to {bound * channel.limit:.4g}"
            )
    if found:
        found[-1] += (
            ". Nothing but this limit counted to the end of the training: either no policy keeps "
            "it (allow more), or this one settled before it was felt (more steps, another --seed)"
            if strained
            else ". What helps: more steps (--steps)"
        )
    return found
