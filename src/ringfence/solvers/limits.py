"""How a limit on a cost is kept: what an episode costs, and the multiplier that answers to it.

Nothing here has a unit: costs are compared with their limit, by their ratio, and a multiplier
weighs advantages that are divided by their own size. A limit of 0 is a case of its own, because no
ratio to it exists: there the chance that an episode costs anything is held at a small target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringfence.objects import Array, Constraint, Problem
from ringfence.worlds.sim.rollouts import Chunk

#: Of the multiplier: below the least it counts as 0, beyond the most the reward no longer counts.
#: These bounds are the controller's anti-windup. A limit > 0 settles at 0.2 to 1.3.
LEAST, MOST = 0.25, 5.0
#: Of the multiplier's logarithm, per factor e of the cost above its target: at once; and in a whole
#: training, so that a quarter of one is enough for all its range. (Faster in a long training, a
#: Hopper that should slow down is pushed until it falls: 563 instead of 1663 reward after 1.07 of 3
#: million steps.)
GAIN_P, GAIN_I = 0.2, 12.0
#: So many updates ahead the cost's trend is looked at: waves of a cost that comes late.
LEAD = 20.0
#: How fast running means follow a rollout: of the cost, of its trend, of an episode's length.
COST_SHARE, TREND_SHARE, LENGTH_SHARE = 0.2, 0.1, 0.1
#: How far the share of falls follows an episode that ended by itself; raw's usual move, a rollout.
FALL_SHARE, MOVE_SHARE = 0.01, 0.05
#: A cost this far below its target counts as so far below (a cost of 0 has no logarithm).
FAR_BELOW = 0.1
#: At a limit of 0: the chance of an episode that costs anything that training aims at, and the
#: most that a policy which is handed out may have.
AIMED_CHANCE, ALLOWED_CHANCE = 0.01, 0.05
#: So many limits are nearly one: less noise may be all that is missing. (At 2 a point becomes too
#: quiet to get from 1.2 limits to 1.)
NEAR = 1.2
#: A limit of 0 is felt so many usual moves of `raw` before it is broken. (At 2, a gap between two
#: obstacles is nowhere free of it.)
CLEAR_STEPS = 1.0


@dataclass(frozen=True, eq=False)
class Channel:
    """One cost with its limit on an episode's sum."""

    constraint: Constraint
    limit: float

    @property
    def zero(self) -> bool:
        return self.limit <= 0


def channels(problem: Problem) -> tuple[Channel, ...]:
    """Each part of several limits at once has a limit and a multiplier of its own."""
    parts: Sequence[Constraint] = getattr(problem.constraint, "parts", (problem.constraint,))
    limits = problem.deltas or (problem.delta,) * len(parts)
    return tuple(Channel(c, limit) for c, limit in zip(parts, limits, strict=True))


# What an episode costs ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Rates:
    """Per step of a rollout, its retries left out: reward; ends: episodes that ended; costs [k];
    firsts [k]: episodes that cost something for the first time."""

    reward: float
    ends: float
    costs: tuple[float, ...]
    firsts: tuple[float, ...]


def step_costs(chunk: Chunk, every: Sequence[Channel]) -> Array:
    """The cost of each step in each channel, [T, N, k]."""
    phi = chunk.features.reshape(-1, chunk.features.shape[-1])
    costs = [channel.constraint.cost(phi).reshape(chunk.rewards.shape) for channel in every]
    return np.stack(costs, axis=-1)


def first_costs(
    costs: Array, ended: NDArray[np.bool_], spent: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which steps [T, N, k] are the first of their episode to cost anything.

    ended [T, N]: an episode's last steps; spent [N, k]: did the episodes that are under way cost
    anything before? Returned with the same after the rollout.
    """
    first = np.zeros(costs.shape, np.bool_)
    for t in range(len(costs)):
        first[t] = (costs[t] > 0) & ~spent
        spent = (spent | first[t]) & ~ended[t][:, None]
    return first, spent


def rates_of(chunk: Chunk, costs: Array, first: NDArray[np.bool_]) -> Rates:
    own = ~chunk.retried
    if not own.any():  # nothing better is known
        own = np.ones_like(own)
    ended = chunk.terminated | chunk.truncated

    def mean(values: NDArray[np.generic]) -> Any:
        return values[own].mean(axis=0).tolist()

    return Rates(mean(chunk.rewards), mean(ended), tuple(mean(costs)), tuple(mean(first)))


def mean_rates(several: Sequence[Rates]) -> Rates:
    def mean(name: str) -> tuple[float, ...]:
        return tuple(map(float, np.mean([getattr(r, name) for r in several], axis=0)))

    reward, ends = (float(np.mean([getattr(r, n) for r in several])) for n in ("reward", "ends"))
    return Rates(reward, ends, mean("costs"), mean("firsts"))


def episode_length(ends: float, horizon: int) -> float:
    """Steps of an episode, of which so many end per step."""
    return min(float(horizon), 1.0 / ends) if ends > 0 else float(horizon)


def relative_costs(rates: Rates, every: Sequence[Channel], horizon: int) -> tuple[float, ...]:
    """An episode's cost in units of its limit; at a limit of 0 its chance to cost anything, in
    units of the allowed one. [k]"""
    length = episode_length(rates.ends, horizon)
    return tuple(
        length * first / ALLOWED_CHANCE if channel.zero else length * cost / channel.limit
        for channel, cost, first in zip(every, rates.costs, rates.firsts, strict=True)
    )


# What the critic learns --------------------------------------------------------------------------


def usual_move(raw: Array, ended: NDArray[np.bool_], anywhere: bool) -> float:
    """The root mean square of what raw [T, N] moves in one step, that stays below 0 or anywhere."""
    inside = (anywhere | ((raw[:-1] < 0) & (raw[1:] < 0))) & ~ended[:-1]
    return float(np.sqrt(np.mean(np.square(np.diff(raw, axis=0)[inside])))) if inside.any() else 0.0


def deepened(cost: Array, raw: Array, move: float) -> Array:
    """What the critic learns of a cost that is the same for all steps beyond the limit, such as a
    count of them, [T, N]: more of it further out, by log(1 + raw / b), so that the way back shows.
    Any other cost tells that itself."""
    beyond = cost[cost > 0]
    if move <= 0 or not len(beyond) or beyond.max() > beyond.min():
        return cost
    return cost * (1.0 + np.log1p(np.maximum(0.0, raw / (CLEAR_STEPS * move))))


def felt(cost: Array, raw: Array, move: float) -> Array:
    """What the critic learns of a cost whose limit is 0, [T, N]: log(1 + max(0, raw / b + 1)), b a
    few usual moves, so that the edge is felt before it is crossed. Where raw says nothing below
    0, the cost itself."""
    if move <= 0:
        return cost
    return np.log1p(np.maximum(0.0, raw / (CLEAR_STEPS * move) + 1.0))


# The multiplier ----------------------------------------------------------------------------------

#: A fresh training's target comes down from so many limits over its first share of updates: who
#: can't walk yet need not walk slowly. (A point among obstacles, 300,000 steps, limit 0.84: it cost
#: 1.48 after 0.3 of a training, 0.65 after 0.1.) To a limit of 0 it
#: comes down evenly, from any chance, and is answered where costs begin to come: with a multiplier
#: from the start on the point stands still before its first obstacle for good (-38 and -48 reward
#: instead of -23 and -27), with one that waits it learns ways through obstacles for good (9 and 40%
#: of episodes violate instead of 2 and 5%).
LOOSE, ANNEAL_TO_0 = 50.0, 0.3
#: After this share of a training the margin grows to twice what it was: where costs vary much from
#: episode to episode, a policy just within its limit can't be shown to be.
SAFER_FROM = 0.8


class Begin(NamedTuple):
    """fresh: does a training begin from nothing; anneal: the share of it in which the target comes
    down; steep: so many times counts the logarithm of the cost in targets, up to 1, of a limit
    above 0."""

    fresh: bool
    anneal: float
    steep: float


def target(channel: Channel, share: float, progress: float, begin: Begin, margin: float) -> float:
    """What an episode shall cost (at a limit of 0: the chance that it costs anything).

    share: of the limit that such an episode has (`budget_share`); progress: the share of the
    training that is done.
    """
    over = ANNEAL_TO_0 if channel.zero else begin.anneal
    ahead = max(0.0, 1.0 - progress / over) if begin.fresh else 0.0
    if channel.zero:
        return max(AIMED_CHANCE, ahead)
    wider = 1.0 + max(0.0, progress - SAFER_FROM) / (1.0 - SAFER_FROM)
    return float((1.0 - wider * margin) * channel.limit * share * LOOSE**ahead)


@dataclass(frozen=True)
class Multiplier:
    """lam and the controller's memory. level: log lam without the proportional part; cost: the
    running mean of the cost, None before the first; trend: of its logarithm, per update."""

    lam: float = 0.0
    level: float = float(np.log(LEAST))
    cost: float | None = None
    trend: float = 0.0


def next_multiplier(
    m: Multiplier, J: float, target: float, updates: int, patient: bool, steep: float = 1.0
) -> Multiplier:
    """One step on an episode's cost J, or its chance, towards the target: a PI controller of log
    lam on log(J / target), which looks LEAD updates ahead.

    updates: of the whole training; patient: where cost weighs more than reward already, more of it
    comes by steps of one size, not by factors. A policy that is slow to answer to a limit on its
    mean cost must not be pushed until it stands still. steep: how fast log(J / target) counts as 1.
    """
    last = J if m.cost is None else m.cost
    cost = last + COST_SHARE * (J - last)

    def excess(value: float) -> float:
        return float(np.log(max(value / target, FAR_BELOW))) if target > 0 else 0.0

    trend = m.trend + TREND_SHARE * (excess(cost) - excess(last) - m.trend)
    # Episodes that hardly ever cost anything have no trend that a rollout shows.
    ahead = LEAD * trend if target > AIMED_CHANCE or patient else 0.0
    e = float(np.clip(np.clip(steep * excess(cost), -1.0, 1.0) + ahead, -1.0, 1.0))
    gain = GAIN_I / updates
    if patient and e > 0:
        gain /= max(1.0, np.exp(m.level))
    level = float(np.clip(m.level + gain * e, np.log(LEAST), np.log(MOST)))
    lam = np.exp(level + GAIN_P * e) - np.exp(np.log(LEAST) - GAIN_P)
    return replace(m, lam=float(max(0.0, lam)), level=level, cost=cost, trend=trend)


# Over a training ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Limits:
    """What a training remembers of its limits from rollout to rollout.

    moves [k]: what raw usually moves in a step; spent [N, k]: did the episode under way cost
    anything; ends: of episodes per step; falls: the share of those ending by themselves that lose
    by it.
    """

    multipliers: tuple[Multiplier, ...]
    moves: tuple[float, ...]
    spent: NDArray[np.bool_]
    ends: float
    falls: float = 1.0

    @classmethod
    def begin(
        cls, lam: float, levels: NDArray[np.generic], k: int, copies: int, horizon: int
    ) -> Limits:
        """levels: of the multipliers of an earlier training, where it had k of them."""
        known = tuple(Multiplier(lam, float(level)) for level in levels)
        multipliers = known if len(known) == k else (Multiplier(lam),) * k
        return cls(multipliers, (0.0,) * k, np.zeros((copies, k), np.bool_), 1 / horizon)

    @property
    def lam(self) -> NDArray[np.float32]:
        """[k]"""
        return np.array([m.lam for m in self.multipliers], np.float32)

    def measure(
        self, chunk: Chunk, costs: Array, every: Sequence[Channel], horizon: int
    ) -> tuple[Limits, Rates, Array]:
        """After a rollout with costs [T, N, k]: its rates, and what the critic learns of its costs
        [T, N, k]."""
        ended = chunk.terminated | chunk.truncated
        first, spent = first_costs(costs, ended, self.spent)
        rates = rates_of(chunk, costs, first)
        ends = self.ends + LENGTH_SHARE * (rates.ends - self.ends)
        signals, moves = costs.copy(), list(self.moves)
        phi = chunk.features.reshape(-1, chunk.features.shape[-1])
        for k, channel in enumerate(every):
            raw = channel.constraint.raw(phi).reshape(ended.shape)
            move = usual_move(raw, ended, anywhere=not channel.zero)
            moves[k] = move if moves[k] <= 0 else moves[k] + MOVE_SHARE * (move - moves[k])
            shaped = felt if channel.zero else deepened
            signals[..., k] = shaped(costs[..., k], raw, moves[k])
            # What a step may cost is credited to it: to fall earns nothing.
            signals[..., k] -= self.falls * max(0.0, channel.limit) / horizon
        return replace(self, moves=tuple(moves), spent=spent, ends=ends), rates, signals

    def control(
        self,
        rates: Rates,
        every: Sequence[Channel],
        horizon: int,
        done: int,
        updates: int,
        begin: Begin,
        margin: float,
    ) -> Limits:
        """With the next multipliers, after `done` of so many updates."""
        length = episode_length(self.ends, horizon)
        # A fall must not save cost: the budget of who falls is spread over the whole horizon.
        share = 1.0 - self.falls * (1.0 - length / horizon)
        pairs = zip(every, self.multipliers, rates.costs, rates.firsts, strict=True)
        multipliers = [
            next_multiplier(
                m,
                length * (first if channel.zero else cost),
                target(channel, share, done / updates, begin, margin),
                updates,
                patient=not channel.zero,
                steep=1.0 if channel.zero else begin.steep,
            )
            for channel, m, cost, first in pairs
        ]
        return replace(self, multipliers=tuple(multipliers))

    def near(self, every: Sequence[Channel]) -> bool:
        """Are the running costs within their limits or nearly (of 0: within the allowed chance)?"""
        most = [ALLOWED_CHANCE if channel.zero else NEAR * channel.limit for channel in every]
        costs = [m.cost for m in self.multipliers]
        return all(cost is not None and cost <= m for cost, m in zip(costs, most, strict=True))

    def fall(self, chunk: Chunk, worth: float) -> Limits:
        """With the share of falls: a step is worth so much reward with what is to come, on average.
        Who gets less than that from an episode's last step has fallen; who gets more has arrived,
        or is rid of something."""
        last = chunk.rewards[chunk.terminated]
        if not len(last):
            return self
        kept = (1 - FALL_SHARE) ** len(last)
        return replace(self, falls=kept * self.falls + (1 - kept) * float((last < worth).mean()))
