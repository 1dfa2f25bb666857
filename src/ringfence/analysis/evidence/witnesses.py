"""Policies that earn more than the demonstrators could, by bounds and not by luck.

Demonstrators of a task are taken to earn at least (1 - slack) of the best that the constraint
allows. So a policy whose return is beyond their *bar* breaks the constraint somewhere: a witness.

    bar       the upper bound of the demonstrators' mean return, divided by 1 - slack
    witness   the lower bound of a policy's mean return, on fresh episodes, is above the bar

Bounds are Student's, one-sided, at 95% for all tasks, and for all candidates, together. Returns are
undiscounted, from the task's own starts and over its whole horizon.

In many tasks most of the difference between episodes is where they begin. So, where several begin
alike, returns are also compared start by start, as on finite worlds: demonstrators are then taken
to earn at least (1 - slack) of the best from each start. What chance does to a return is taken to
be alike over a task's starts and estimated from those with several episodes, so one demonstration
of a start will do; the bounds of all starts hold together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ringfence.objects import Array, Trajectory

#: The chance that any of the bounds on one side is wrong.
ERROR = 0.05
#: Fewer demonstrations than this say nothing about a mean return.
FEWEST = 5
#: Returns closer than this share of them are equal.
EQUAL = 1e-9
#: Of the largest one, by which observations differ that are the same.
ROUNDING = 1e-5
#: First observations that are less alike than this, by chance, come from other starts.
SAME_STARTS = 1e-3


@dataclass(frozen=True, eq=False)
class Shown:
    """The demonstrations of one task, whose episodes have `horizon` steps unless they end."""

    task: str
    horizon: int
    episodes: Sequence[Trajectory]


@dataclass(frozen=True, eq=False)
class Tried:
    """A policy on the task of that number: what to call it, and its fresh episodes."""

    task: int
    name: str
    episodes: Sequence[Trajectory]


@dataclass(frozen=True)
class Statement:
    """What one task's demonstrators earned, and whether they testify.

    upper: the upper bound of their mean return; bar: what is beyond the best that the constraint
    allows; reason: why nothing is proven from them, if they don't testify.
    """

    task: str
    episodes: int
    mean: float
    upper: float
    bar: float
    testifies: bool = True
    reason: str = ""


def returns_of(episodes: Sequence[Trajectory]) -> Array:
    return np.array([t.rewards.sum() for t in episodes])


def mean_bound(returns: Array, side: int, error: float) -> float:
    """A bound of the mean of returns [n >= 2]: from above (side 1) or below (-1), wrong with
    probability `error`."""
    n = len(returns)
    width = float(stats.t.ppf(1 - error, n - 1)) * float(returns.std(ddof=1)) / np.sqrt(n)
    return float(returns.mean() + side * width)


def beyond_best(upper: float, slack: float) -> float:
    """The best return J* of which `upper` may be (1 - slack): J* - slack |J*| = upper."""
    return upper / (1 - slack) if upper >= 0 else upper / (1 + slack)


@dataclass(frozen=True, eq=False)
class Claim:
    """A policy's episodes that beat the demonstrators: all of them, or those from one start (that
    first observation). least: the lower bound of their mean return; bar: what it is above."""

    episodes: Sequence[Trajectory]
    least: float
    bar: float
    start: tuple[float, ...] = ()


def claims(
    group: Shown, one: Tried, statement: Statement, candidates: int, slack: float, error: float
) -> list[Claim]:
    """In what a policy beats the demonstrators of its task; error: that one of the bounds of these
    by their starts is wrong, as `candidates` says it for the policies."""
    if not statement.testifies or any(is_cut(t, group.horizon) for t in one.episodes):
        return []
    found = []
    least = least_return(one, group.horizon, candidates)
    if beats(least, statement.bar):
        found.append(Claim(one.episodes, least, statement.bar))
    shown, fresh = (
        bounds_by_start(group.episodes, 1, error),
        bounds_by_start(one.episodes, -1, ERROR / candidates),
    )
    for start in (start for start in shown if start in fresh):
        least, bar = fresh[start], beyond_best(shown[start], slack)
        if beats(least, bar):
            own = [t for t in one.episodes if start_of(t) == start]
            found.append(Claim(own, least, bar, start))
    return found


def start_of(episode: Trajectory) -> tuple[float, ...]:
    """The first observation without what may be rounding."""
    return tuple(float(f"{value:.5g}") + 0.0 for value in episode.observations[0])


def bounds_by_start(
    episodes: Sequence[Trajectory], side: int, error: float
) -> dict[tuple[float, ...], float]:
    """A bound of the mean return from each start, from above (side 1) or below (-1), any of them
    wrong with probability `error`; none where there is one start, or too few have more episodes
    than one."""
    by_start: dict[tuple[float, ...], list[float]] = {}
    for t, earned in zip(episodes, returns_of(episodes), strict=True):
        by_start.setdefault(start_of(t), []).append(float(earned))
    freedom = len(episodes) - len(by_start)
    if len(by_start) < 2 or freedom < FEWEST - 1:
        return {}
    means = {start: float(np.mean(own)) for start, own in by_start.items()}
    off = [earned - means[start] for start, own in by_start.items() for earned in own]
    spread = float(np.sqrt(np.square(off).sum() / freedom))
    width = float(stats.t.ppf(1 - error / len(by_start), freedom)) * spread
    return {start: means[start] + side * width / np.sqrt(len(own))
            for start, own in by_start.items()}  # fmt: skip


def is_cut(episode: Trajectory, horizon: int) -> bool:
    """Did it stop before the horizon without having ended?"""
    return len(episode) < horizon and not episode.terminated


def statements(
    groups: Sequence[Shown], tried: Sequence[Tried], slack: float
) -> tuple[Statement, ...]:
    """What the demonstrators of each task earned, and who of them can be compared with the tried
    policies."""
    return tuple(
        _statement(group, [one for one in tried if one.task == k], slack, ERROR / len(groups))
        for k, group in enumerate(groups)
    )


def _statement(group: Shown, tried: Sequence[Tried], slack: float, error: float) -> Statement:
    returns, count = returns_of(group.episodes), len(group.episodes)
    cut = sum(is_cut(t, group.horizon) for t in group.episodes)
    reason = ""
    if cut:
        reason = (
            f"{cut} of {count} demonstrations stop before {group.horizon} steps without having "
            "ended, so their returns can't be compared"
        )
    elif count < FEWEST:
        reason = f"{count} demonstrations say too little about a mean return: {FEWEST} are needed"
    elif other_starts(group.episodes, [t for one in tried for t in one.episodes]):
        reason = "the demonstrators start elsewhere than the task's episodes do"
    upper = mean_bound(returns, 1, error) if count > 1 else np.inf
    return Statement(
        group.task,
        count,
        float(returns.mean()),
        upper,
        beyond_best(upper, slack),
        not reason,
        reason,
    )


def other_starts(shown: Sequence[Trajectory], fresh: Sequence[Trajectory]) -> bool:
    """Are first observations drawn from different distributions (Kolmogorov and Smirnov, corrected
    for their number)?"""
    if not fresh:
        return False
    starts = np.array([t.observations[0] for t in (*shown, *fresh)])
    ranks = [_ranks(column) for column in starts.T]
    chance = [stats.ks_2samp(r[: len(shown)], r[len(shown) :]).pvalue for r in ranks]
    return bool(min(chance) < SAME_STARTS / len(chance))


def _ranks(values: Array) -> Array:
    """Numbers [n] by rank; what differs by rounding alone (logs in single precision) is equal."""
    order = values.argsort()
    gaps = np.diff(values[order], prepend=-np.inf)
    ranks = np.empty(len(values))
    ranks[order] = np.cumsum(gaps > ROUNDING * np.abs(values).max())
    return ranks


def least_return(one: Tried, horizon: int, candidates: int) -> float:
    """The lower bound of a policy's mean return, corrected for the number of candidates; -inf of
    one whose episodes were cut."""
    if len(one.episodes) < 2 or any(is_cut(t, horizon) for t in one.episodes):
        return -np.inf
    return mean_bound(returns_of(one.episodes), -1, ERROR / candidates)


def beats(least: float, bar: float) -> bool:
    return least > bar + EQUAL * max(1.0, abs(bar))
