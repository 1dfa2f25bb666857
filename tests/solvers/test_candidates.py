"""Which policy is handed out, by bounds on episodes that nothing was chosen by; the stop rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from ringfence.constraints.linear import parse_inequality
from ringfence.objects import Trajectory
from ringfence.solvers import candidates as handing_out
from ringfence.solvers.candidates import (
    CONFIDENCE,
    Candidate,
    Candidates,
    doubts,
    episode_costs,
    hand_out,
    rank,
    relative,
    seen,
    upper_bound,
    worth_testing,
)
from ringfence.solvers.limits import ALLOWED_CHANCE, Channel, Rates
from toy_tasks import ROAD

SPEED = parse_inequality("speed <= 0", ROAD.features)  # a step of e - 1 costs 1
FIVE, ZERO = Channel(SPEED, 5.0), Channel(SPEED, 0.0)
HORIZON = 50
PLENTY = 10**6  # of steps


def policy(n: int) -> dict[str, Any]:
    return {"n": np.array(n)}


def rollout(earned: float, cost: float, length: float = HORIZON) -> Rates:
    """Of episodes of that length, which earn and cost so much."""
    return Rates(earned / length, 1 / length, (cost / length,), (1 / length,))


def after(*rollouts: Rates, window: int = 2, within: float = 0.95) -> Candidates:
    found = Candidates()
    for n, rates in enumerate(rollouts, 1):
        found = found.add(rates, lambda n=n: policy(n), n, window, (FIVE,), HORIZON, within)
    return found


# Candidates --------------------------------------------------------------------------------------

STEADY, DEAR = rollout(100, 3), rollout(200, 9)


def test_the_policy_in_the_middle_of_a_window_is_judged_by_the_whole_of_it():
    found = after(rollout(90, 2), rollout(110, 4), rollout(100, 3), window=3)
    (only,) = found.best
    assert only.update == 2
    assert only.reward == pytest.approx(100)
    assert only.cost == pytest.approx(3 / 5)
    assert after(STEADY, STEADY, window=3).best == ()


def test_windows_overlap_and_each_policy_waits_for_the_end_of_its_own():
    found = after(*[rollout(10.0 * n, 3) for n in range(8)], window=4)
    assert [c.update for c in found.waiting] == [7, 8]
    (best,) = found.best
    assert (best.update, best.reward) == (6, pytest.approx(55))  # of rollouts 5 to 8
    apart = after(*[STEADY] * 20, window=8)
    assert [c.update for c in apart.waiting] == [18, 20]  # every second policy is looked at


def kept(*pairs: tuple[float, float], within: float = 0.95) -> list[tuple[float, float]]:
    """Of policies with such rewards and relative costs."""
    made = [Candidate(policy(n), n, *pair) for n, pair in enumerate(pairs)]
    return [(c.reward, c.cost) for c in worth_testing(made, within)]


def test_those_within_the_limits_come_first_by_reward_then_the_one_that_costs_least():
    assert kept((50, 0.6), (200, 1.8), (100, 0.9), (300, 1.2)) == [(100, 0.9), (50, 0.6)]
    assert kept((200, 1.8), (300, 1.2), (250, 1.5)) == [(300, 1.2)]


def test_within_each_share_of_the_limits_the_best_is_kept_to_fall_back_on():
    found = kept((100, 0.9), (90, 0.92), (80, 0.6), (70, 0.7), (60, 0.4), (40, 0.1), (30, 0.0))
    assert found == [(100, 0.9), (80, 0.6), (60, 0.4), (40, 0.1), (30, 0.0)]


def test_of_equals_the_later_is_kept():
    made = [Candidate(policy(n), n, 100.0, 0.1) for n in range(3)]
    assert [c.update for c in worth_testing(made, 0.95)] == [2]


def test_a_window_within_the_limit_by_less_than_asked_for_is_not_within():
    assert kept((50, 0.6), (100, 0.98), within=1.0) == [(100, 0.98), (50, 0.6)]
    assert kept((50, 0.6), (100, 0.98), within=0.95) == [(50, 0.6)]


def test_an_episode_that_ends_early_earns_and_costs_for_its_own_length():
    earned, cost = seen([rollout(20, 1, length=10)], (FIVE,), HORIZON)
    assert (earned, cost) == (pytest.approx(20), pytest.approx(1 / 5))


def test_the_worst_of_several_limits_counts():
    rates = Rates(1.0, 0.02, (0.05, 0.3), (0.02, 0.02))
    each = (FIVE, Channel(SPEED, 10.0))
    assert seen([rates], each, HORIZON)[1] == pytest.approx(15 / 10)


def test_the_stop_rule_needs_a_full_window_its_reward_and_its_limits():
    def reached(asked, *rollouts):
        return after(*rollouts).reached(asked, 2, (FIVE,), HORIZON)

    assert reached(90.0, STEADY, STEADY)
    assert not reached(90.0, STEADY)
    assert not reached(None, STEADY, STEADY)
    assert not reached(110.0, STEADY, STEADY)
    assert not reached(90.0, STEADY, DEAR)


# Bounds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "n", "chance"),
    [(0, 59, 0.049508), (0, 300, 0.009936), (1, 100, 0.046560), (10, 10, 1.0), (3, 20, 0.343664)],
)
def test_a_chance_is_bounded_as_clopper_and_pearson_do(hits: int, n: int, chance: float):
    """0 of n: 1 - 0.05 ** (1 / n), the rule of three."""
    costs = np.zeros(n)
    costs[:hits] = 0.1
    found = upper_bound(ZERO, costs, 0.95) * ALLOWED_CHANCE
    assert found == pytest.approx(chance, rel=1e-4)
    if hits < n:  # the definition: so few hits, or fewer, have a chance of 5% there
        assert binom.cdf(hits, n, found) == pytest.approx(0.05)


def test_a_mean_is_bounded_as_student_does():
    """Of 1 .. 10: 5.5 + 1.833113 * 3.027650 / sqrt(10)."""
    found = upper_bound(FIVE, np.arange(1.0, 11.0), 0.95)
    assert found == pytest.approx((5.5 + 1.833113 * 3.027650 / np.sqrt(10)) / 5, rel=1e-6)
    assert relative(FIVE, np.arange(1.0, 11.0)) == 5.5 / 5
    assert upper_bound(FIVE, np.array([1.0]), 0.95) == np.inf


COSTS = st.lists(st.integers(0, 1000).map(lambda n: n / 8), min_size=2, max_size=30)


@given(COSTS, st.sampled_from([1 / 16, 16.0]))
def test_bounds_lie_above_the_mean_grow_with_confidence_and_have_no_unit(costs, scale):
    for limit in (5.0, 0.0):
        channel, other = Channel(SPEED, limit), Channel(SPEED, scale * limit)
        low, high = (upper_bound(channel, np.array(costs), p) for p in (0.9, 0.99))
        assert relative(channel, np.array(costs)) <= low + 1e-12
        assert low <= high
        assert upper_bound(other, scale * np.array(costs), 0.9) == pytest.approx(low)


# The test ----------------------------------------------------------------------------------------


def episodes(costs, earned: float = 2.0) -> list[Trajectory]:
    """One of two steps each, that costs and earns so much."""
    rewards = np.full(2, earned / 2)
    return [
        Trajectory(np.zeros((3, 2)), np.zeros((2, 1)), rewards, np.array([[0.0], [x]]), False)
        for x in np.expm1(costs)
    ]


class Rolls:
    """A policy n costs costs[n] on average; every call is noted."""

    def __init__(self, *costs: float, spread: float = 0.1, calm: float = 0.0) -> None:
        self.costs, self.spread, self.calm, self.calls = costs, spread, calm, []

    def __call__(self, policy, batch, count, noiseless):
        self.calls.append((int(policy["n"]), batch, count, noiseless))
        mean = self.calm if noiseless else self.costs[int(policy["n"])]
        drawn = mean + self.spread * np.random.default_rng([batch, count]).standard_normal(count)
        return episodes(np.maximum(drawn, 0.0), float(policy["n"]))


def candidates(n: int) -> list[Candidate]:
    return [Candidate(policy(i), i) for i in range(n)]


def test_an_episodes_cost_is_the_sum_of_its_steps():
    np.testing.assert_allclose(episode_costs(FIVE, episodes([0.5, 2.0])), [0.5, 2.0])


def test_of_the_first_few_within_the_one_that_earned_most_in_its_test_is_handed_out():
    """Each earns its number."""
    roll = Rolls(9.0, 3.0, 1.0, 2.0, 1.0)
    best, tests = hand_out(candidates(5), (FIVE,), roll, 8, 64, PLENTY, noiseless=True)
    assert (best.candidate.update, best.within) == (3, True)
    assert [t.within for t in tests] == [False, True, True, True]  # the fifth is not looked at
    assert tests[0].bounds[0] > 9 / 5
    assert {batch // 100 for n, batch, *_ in roll.calls if n == 1} == {1}  # episodes of its own


def test_where_none_is_the_nearest_is_handed_out_with_how_far_off_it_is():
    best, tests = hand_out(
        candidates(3), (FIVE,), Rolls(9.0, 6.0, 7.0), 8, 64, PLENTY, noiseless=False
    )
    assert (best.candidate.update, best.within) == (1, False)
    assert len(tests) == 3
    assert 6 / 5 < best.bounds[0] < 6.5 / 5
    assert best.deterministic == []


def test_the_policy_without_its_noise_has_to_keep_the_limit_too():
    best, _ = hand_out(candidates(1), (FIVE,), Rolls(3.0, calm=9.0), 8, 64, PLENTY, noiseless=True)
    assert not best.within
    assert best.bounds[0] > 8.5 / 5


def test_episodes_are_doubled_while_a_test_is_undecided():
    close = Rolls(4.9, spread=2.0)
    best, _ = hand_out(candidates(1), (FIVE,), close, 8, 64, PLENTY, noiseless=False)
    assert [count for *_, count, _ in close.calls] == [8, 8, 16, 32][: len(close.calls)]
    assert len(best.stochastic) == sum(count for *_, count, _ in close.calls) <= 64
    assert len({batch for _, batch, *_ in close.calls}) == len(close.calls)
    clear, hopeless = Rolls(1.0), Rolls(9.0)
    for roll in (clear, hopeless):
        hand_out(candidates(1), (FIVE,), roll, 8, 64, PLENTY, noiseless=False)
        assert len(roll.calls) == 1


def test_of_more_candidates_more_is_asked():
    """All tests together have their confidence, so a bound grows with the number of tries."""
    alone, among = (
        hand_out(candidates(n), (FIVE,), Rolls(3.0, 3.0, 3.0), 8, 8, PLENTY, noiseless=False)[0]
        for n in (1, 3)
    )
    assert alone.bounds[0] < among.bounds[0]
    costs = episode_costs(FIVE, among.stochastic)
    assert among.bounds[0] == upper_bound(FIVE, costs, 1 - (1 - CONFIDENCE) / 3)


def test_a_limit_of_0_is_judged_by_the_chance_to_cost_anything():
    """0 of 64 is enough for 5%, 0 of 32 is not."""
    roll = Rolls(0.0, spread=0.0)
    best, _ = hand_out(candidates(1), (ZERO,), roll, 32, 256, PLENTY, noiseless=False)
    assert best.within
    assert len(best.stochastic) == 64
    assert best.bounds == (pytest.approx((1 - 0.05 ** (1 / 64)) / ALLOWED_CHANCE),)


def test_each_limit_has_its_bound():
    each = (FIVE, Channel(SPEED, 2.0))
    best, _ = hand_out(candidates(1), each, Rolls(3.0), 8, 8, PLENTY, noiseless=False)
    assert best.bounds[1] == pytest.approx(best.bounds[0] * 5 / 2)
    assert not best.within


def test_ranks_put_what_is_within_first():
    kept, near, far = ((1, 5.0, 0.5), (2, 9.0, 1.2), (3, 99.0, 2.0))
    ranks = [rank(Candidate({}, *c), 1.0) for c in (kept, near, far)]
    assert ranks[0] < ranks[1] < ranks[2]


def test_all_tests_together_have_a_budget_of_steps():
    """Episodes have two steps. The first candidate is looked at in any case."""
    roll = Rolls(5.6, 1.0, spread=2.0)
    _, tests = hand_out(candidates(2), (FIVE,), roll, 8, 10**6, 3 * 16, noiseless=False)
    assert len(tests) == 1
    assert sum(count for *_, count, _ in roll.calls) <= 8 + 8 + 16
    _, tests = hand_out(candidates(2), (FIVE,), Rolls(9.0, 1.0), 8, 64, 0, noiseless=False)
    assert len(tests) == 1
    _, tests = hand_out(candidates(3), (FIVE,), Rolls(9.0, 1.0, 1.0), 8, 64, 17, noiseless=False)
    assert [t.within for t in tests] == [False, True]


# What is said ------------------------------------------------------------------------------------


def judged(costs, *bounds: float) -> handing_out.Tested:
    return handing_out.Tested(Candidate({}, 1), episodes(costs), [], bounds)


def test_a_limit_that_was_kept_is_not_spoken_of():
    assert doubts(judged([1.0, 2.0], 0.9), (FIVE,), strained=True) == []


def test_a_limit_that_was_not_kept_is_told_with_how_far_it_is_off():
    (said,) = doubts(judged([6.0, 8.0], 1.8), (FIVE,), strained=False)
    assert "the limit of 5 on speed <= 0" in said
    assert "2 fresh episodes cost 7 on average, and all may cost up to 9" in said
    assert said.endswith("more steps (--steps)")
    (zero,) = doubts(judged([0.0, 0.0, 0.5, 0.0], 10.0), (ZERO,), strained=True)
    assert "1 of 4 fresh episodes cost something, so up to 50.0% of all may; 5% count" in zero
    assert "either no policy keeps it" in zero


def test_of_several_limits_only_those_not_kept_are_told():
    each = (FIVE, Channel(SPEED, 2.0))
    (said,) = doubts(judged([3.0, 3.0], 0.6, 1.5), each, strained=False)
    assert "the limit of 2" in said


def test_the_worse_side_is_told():
    both = handing_out.Tested(Candidate({}, 1), episodes([1.0, 1.0]), episodes([6.0, 6.0]), (1.2,))
    (said,) = doubts(both, (FIVE,), strained=False)
    assert "cost 6 on average" in said
