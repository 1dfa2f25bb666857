"""What an episode costs, and the multiplier that answers to it: nothing of it has a unit."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from random_policies import policy_for
from ringfence.constraints.activated import Activated
from ringfence.constraints.conjunction import Conjunction
from ringfence.constraints.linear import parse_inequality
from ringfence.objects import Problem
from ringfence.solvers.limits import (
    AIMED_CHANCE,
    ALLOWED_CHANCE,
    ANNEAL_TO_0,
    CLEAR_STEPS,
    LEAST,
    MOST,
    SAFER_FROM,
    Begin,
    Channel,
    Limits,
    Multiplier,
    Rates,
    channels,
    deepened,
    episode_length,
    felt,
    first_costs,
    mean_rates,
    next_multiplier,
    rates_of,
    relative_costs,
    step_costs,
    target,
    usual_move,
)
from ringfence.worlds.sim.rollouts import CollectorSpec
from toy_tasks import MORTAL, ROAD, TWO, limited

SPEED = parse_inequality("speed <= 0.3", ROAD.features)
UPDATES = 200
FRESH, GIVEN = Begin(True, 0.3, 1.0), Begin(False, 0.3, 1.0)


def test_each_part_of_several_limits_is_a_channel_with_its_own_limit():
    problem = limited(TWO, ("speed <= 0.3", 5.0), ("climb <= 0.6", 0.0))
    speed, climb = channels(problem)
    assert (speed.constraint, climb.constraint) == problem.constraint.parts
    assert [(c.limit, c.zero) for c in (speed, climb)] == [(5.0, False), (0.0, True)]
    without = replace(problem, deltas=(), delta=3.0)
    assert [c.limit for c in channels(without)] == [3.0, 3.0]
    (single,) = channels(Problem(ROAD, SPEED, 2.0, None, (0,)))
    assert (single.constraint, single.limit) == (SPEED, 2.0)
    with pytest.raises(ValueError, match="zip"):
        channels(replace(problem, deltas=(1.0, 2.0, 3.0)))


# What an episode costs ---------------------------------------------------------------------------


def chunk_of(task, steps: int = 60):
    return task.collector(CollectorSpec(4, lambda phi: phi[:, 0], (0,))).collect(
        policy_for(task), steps, 0
    )


def test_the_costs_of_a_rollout_are_those_of_each_channel():
    chunk = chunk_of(TWO)
    each = channels(limited(TWO, ("speed <= 0.3", 5.0), ("climb <= 0.6", 1.0)))
    costs = step_costs(chunk, each)
    assert costs.shape == (60, 4, 2)
    np.testing.assert_allclose(costs[7, 2, 1], each[1].constraint.cost(chunk.features[7, 2:3])[0])
    both = Conjunction(tuple(c.constraint for c in each)).cost(chunk.features.reshape(-1, 2))
    np.testing.assert_allclose(costs.sum(axis=-1).ravel(), both)


def test_an_episode_costs_for_the_first_time_once():
    """Two copies; the first's episodes end at steps 2 and 4, the second has cost before."""
    costs = np.array([[0, 1], [1, 0], [2, 1], [1, 0], [1, 1], [0, 0]], float)[..., None]
    ended = np.zeros((6, 2), bool)
    ended[[2, 4], 0] = True
    first, spent = first_costs(costs, ended, np.array([[False], [True]]))
    assert np.argwhere(first[..., 0]).tolist() == [[1, 0], [3, 0]]
    assert spent.tolist() == [[False], [True]]
    again, _ = first_costs(costs, ended, spent)
    assert np.array_equal(again, first)


def test_rates_are_per_step_and_an_episode_is_as_long_as_its_ends_say():
    chunk = chunk_of(MORTAL)
    costs = step_costs(chunk, channels(limited(MORTAL, ("speed <= 0.3", 5.0))))
    first, _ = first_costs(costs, chunk.terminated | chunk.truncated, np.zeros((4, 1), np.bool_))
    rates = rates_of(chunk, costs, first)
    assert rates.reward == pytest.approx(chunk.rewards.mean())
    assert rates.costs == (pytest.approx(costs.mean()),)
    assert rates.ends == pytest.approx(len(chunk.lengths) / chunk.rewards.size)
    assert rates.firsts[0] == pytest.approx(first.sum() / chunk.rewards.size)
    assert episode_length(0.1, 50) == 10
    assert episode_length(0.001, 50) == episode_length(0.0, 50) == 50
    half = replace(rates, reward=0.0, ends=0.0, costs=(0.0,), firsts=(0.0,))
    middle = mean_rates([rates, half])
    assert (middle.reward, middle.costs[0]) == (rates.reward / 2, rates.costs[0] / 2)


def test_costs_are_told_in_units_of_their_limit_and_chances_of_the_allowed_one():
    rates = Rates(reward=1.0, ends=0.02, costs=(0.1, 9.0), firsts=(0.02, 0.002))
    each = (Channel(SPEED, 20.0), Channel(SPEED, 0.0))
    spent, chance = relative_costs(rates, each, 1000)
    assert spent == pytest.approx(50 * 0.1 / 20)
    assert chance == pytest.approx(50 * 0.002 / ALLOWED_CHANCE)


# What the critic learns --------------------------------------------------------------------------


def test_a_limit_of_0_is_felt_some_usual_moves_before_it_is_broken():
    raw = np.array([[-1.0, -0.5], [-0.9, -0.4], [-0.8, 0.3], [-0.7, 0.2]])
    ended = np.zeros((4, 2), bool)
    assert usual_move(raw, ended, anywhere=False) == pytest.approx(
        0.1
    )  # what crosses the edge is none
    ended[0] = True
    assert usual_move(raw[:2], ended[:2], anywhere=False) == 0.0
    move, cost = 0.1, np.log1p(np.maximum(raw, 0.0))
    signal = felt(cost, raw, move)
    assert not signal[raw <= -CLEAR_STEPS * move].any()
    assert (signal[raw > -CLEAR_STEPS * move] > 0).all()
    np.testing.assert_allclose(signal[2, 1], np.log1p(0.3 / (CLEAR_STEPS * move) + 1.0))
    np.testing.assert_array_equal(felt(cost, 8 * raw, 8 * move), signal)  # raw has no unit either


def test_a_cost_that_says_nothing_below_0_is_felt_as_it_is():
    raw = np.array([[0.0, 1.0], [0.0, 1.0]])
    assert usual_move(raw, np.zeros((2, 2), bool), anywhere=False) == 0.0
    np.testing.assert_array_equal(felt(raw, raw, 0.0), raw)


def test_a_count_of_steps_tells_how_far_out_they_are_and_other_costs_do_already():
    raw = np.array([[-1.0, 0.1], [0.4, 0.2]])
    count = (raw > 0).astype(float)
    signal = deepened(count, raw, 0.1)
    assert signal[0, 0] == 0.0
    assert signal[1, 0] > signal[1, 1] > signal[0, 1] > 1.0
    np.testing.assert_array_equal(deepened(2 * count, 8 * raw, 0.8), 2 * signal)  # no unit
    depth = np.maximum(raw, 0.0)
    np.testing.assert_array_equal(deepened(depth, raw, 0.1), depth)


# The target --------------------------------------------------------------------------------------


def test_a_fresh_trainings_target_comes_down_to_the_limit_less_its_margin():
    five = Channel(SPEED, 5.0)
    course = [target(five, 1.0, p, FRESH, 0.2) for p in np.linspace(0, 1, 11)]
    short = [target(five, 1.0, p, Begin(True, 0.1, 1.0), 0.2) for p in np.linspace(0, 1, 11)]
    assert all(a <= b for a, b in zip(short, course, strict=True))
    assert sum(short) < sum(course)
    assert course[0] > 5.0
    assert all(a >= b for a, b in pairwise(course))
    assert course[5] == pytest.approx(4.0)
    assert {target(five, 1.0, p, GIVEN, 0.2) for p in (0.0, 0.5, SAFER_FROM)} == {course[5]}


def test_the_margin_is_twice_as_wide_at_the_end():
    five = Channel(SPEED, 5.0)
    late = [target(five, 1.0, p, GIVEN, 0.2) for p in np.linspace(SAFER_FROM, 1, 5)]
    np.testing.assert_allclose(late, np.linspace(4.0, 3.0, 5))


def test_a_limit_of_0_aims_at_a_small_chance():
    zero = Channel(SPEED, 0.0)
    assert target(zero, 1.0, 0.0, FRESH, 0.15) == 1.0
    assert target(zero, 1.0, ANNEAL_TO_0 / 2, FRESH, 0.15) == pytest.approx(0.5)
    for progress, begin in ((ANNEAL_TO_0, FRESH), (1.0, FRESH), (0.1, GIVEN)):
        assert target(zero, 1.0, progress, begin, 0.15) == AIMED_CHANCE
    assert AIMED_CHANCE < ALLOWED_CHANCE


def test_an_episode_that_has_a_share_of_the_limit_aims_at_that():
    five, zero = Channel(SPEED, 5.0), Channel(SPEED, 0.0)
    assert target(five, 0.2, 1.0, GIVEN, 0.0) == pytest.approx(1.0)
    assert target(zero, 0.2, 1.0, GIVEN, 0.0) == target(zero, 1.0, 1.0, GIVEN, 0.0)


def test_limits_are_near_where_costs_are_hardly_higher_or_hardly_ever_come():
    five, zero = Channel(SPEED, 5.0), Channel(SPEED, 0.0)

    def near(*costs):
        held = Limits(tuple(Multiplier(cost=c) for c in costs), (0.0, 0.0), np.zeros((1, 2)), 0.1)
        return held.near((five, zero))

    assert near(5.5, 0.04)
    assert not near(6.5, 0.04)
    assert not near(5.5, 0.06)
    assert not near(None, 0.0)  # nothing was seen yet


# The multiplier ----------------------------------------------------------------------------------


def course(costs, m=None, goal: float = 5.0, updates: int = UPDATES, patient: bool = False):
    m, steps = m or Multiplier(), []
    for J in costs:
        m = next_multiplier(m, J, goal, updates, patient)
        steps.append(m)
    return steps


def test_a_fresh_multiplier_is_0_until_something_costs():
    assert Multiplier().lam == 0.0
    assert course([0.0] * 5)[-1].lam == 0.0
    assert course([5.0])[0].lam >= 0.0


def test_it_rises_above_its_target_falls_below_it_and_rests_on_it():
    high = course([20.0] * 50)
    assert all(a.lam < b.lam for a, b in pairwise(high[:20]))
    low = course([1.0] * 50, high[-1])
    assert low[-1].lam < high[-1].lam
    resting = course([5.0] * 400, Multiplier(level=0.0))
    assert resting[-1].level == pytest.approx(resting[-2].level) == 0.0


def test_a_scale_of_cost_and_target_changes_no_bit():
    rng = np.random.default_rng(0)
    costs = 5 * np.exp(rng.standard_normal(100))
    one, other = course(costs), course(16 * costs, goal=16 * 5.0)
    assert [(m.lam, m.level, m.trend) for m in one] == [(m.lam, m.level, m.trend) for m in other]


def test_it_does_not_wind_up():
    """However long the cost was far above, it comes down as fast as after it just got there."""
    long, short = course([5e6] * 1000)[-1], course([5e6] * UPDATES)[-1]
    assert long.level == short.level == pytest.approx(np.log(MOST))
    assert course([0.0] * UPDATES, long)[-1].lam == 0.0
    assert course([0.0] * UPDATES, long)[-1].level == pytest.approx(np.log(LEAST))


def test_a_rising_cost_is_answered_before_it_is_too_high():
    m = Multiplier(level=0.0, cost=4.0)
    climbing = replace(m, trend=0.05)
    steady, rising = course([4.0], m, patient=True)[0], course([4.0], climbing, patient=True)[0]
    assert steady.cost == rising.cost == 4.0  # below the target of 5
    assert steady.level < 0 < rising.level
    assert steady.lam < rising.lam
    assert course([5.0, 5.5, 6.1, 6.9], m)[-1].trend > 0 > course([2.5, 2.0, 1.5], m)[-1].trend


def test_episodes_that_hardly_ever_cost_anything_have_no_trend():
    m = Multiplier(level=0.0, cost=AIMED_CHANCE)
    climbing = replace(m, trend=0.05)
    late = [course([AIMED_CHANCE], one, goal=AIMED_CHANCE)[0] for one in (m, climbing)]
    assert late[0].lam == late[1].lam
    early = [course([0.5], replace(one, cost=0.5), goal=0.5)[0] for one in (m, climbing)]
    assert early[0].lam < early[1].lam


def test_the_whole_range_is_crossed_in_a_quarter_of_a_training():
    for updates in (100, 1000):
        begun = Multiplier(level=float(np.log(LEAST)))
        steps = course([500.0] * (updates // 4), begun, updates=updates)
        assert steps[-1].level == pytest.approx(np.log(MOST))


def test_an_indicator_is_one_channel_of_steps():
    problem = limited(ROAD, ("speed <= 0.3", 5.0), counted=True)
    (channel,) = channels(problem)
    assert isinstance(channel.constraint, Activated)
    chunk = chunk_of(ROAD)
    costs = step_costs(chunk, (channel,))[..., 0]
    np.testing.assert_array_equal(costs, chunk.features[..., 0] > 0.3)


def test_beyond_the_weight_of_the_reward_a_patient_multiplier_grows_by_steps_of_one_size():
    """Below it, and on its way down, it is as fast as any other."""
    hasty, patient = (
        [m.level for m in course([500.0] * 200, Multiplier(level=0.0), 5.0, 2000, patient)]
        for patient in (False, True)
    )
    lam = np.exp(patient)
    np.testing.assert_allclose(np.diff(lam)[20:60], np.diff(lam)[20], rtol=0.05)
    assert patient[50] < hasty[50]
    for begin, cost in ((np.log(LEAST), 500.0), (1.0, 0.0)):
        m = Multiplier(level=float(begin))
        assert course([cost] * 5, m, patient=True) == course([cost] * 5, m, patient=False)


# Over a training ---------------------------------------------------------------------------------

TWO_LIMITS = limited(TWO, ("speed <= 0.3", 5.0), ("climb <= 0.6", 0.0))


def begun(copies: int = 4, k: int = 2, **changes) -> Limits:
    limits = Limits((Multiplier(),) * k, (0.0,) * k, np.zeros((copies, k), np.bool_), 1 / 50)
    return replace(limits, **changes)


def test_a_rollout_is_measured_once_for_all():
    chunk, each = chunk_of(TWO), channels(TWO_LIMITS)
    costs = step_costs(chunk, each)
    after, rates, signals = begun().measure(chunk, costs, each, 50)
    first, spent = first_costs(costs, chunk.terminated | chunk.truncated, begun().spent)
    assert rates == rates_of(chunk, costs, first)
    assert np.array_equal(after.spent, spent)
    # a limit above 0: what a step may cost is credited to it; of 0: felt before it is broken
    np.testing.assert_allclose(signals[..., 0], costs[..., 0] - 5.0 / 50)
    raw = each[1].constraint.raw(chunk.features.reshape(-1, 2)).reshape(60, 4)
    move = usual_move(raw, chunk.terminated | chunk.truncated, anywhere=False)
    assert after.moves[1] == pytest.approx(move)
    np.testing.assert_allclose(signals[..., 1], felt(costs[..., 1], raw, move))
    assert after.multipliers == begun().multipliers


def test_who_does_not_lose_by_an_end_is_credited_nothing():
    chunk, each = chunk_of(TWO), channels(TWO_LIMITS)
    costs = step_costs(chunk, each)
    _, _, signals = begun(falls=0.0).measure(chunk, costs, each, 50)
    np.testing.assert_array_equal(signals[..., 0], costs[..., 0])


def test_each_multiplier_answers_to_its_own_cost():
    rates = Rates(1.0, 1 / 50, (1.0, 1.0), (0.0, 1 / 50))  # 50 of a limit of 5; a chance of 1
    high = begun().control(rates, channels(TWO_LIMITS), 50, 100, 200, GIVEN, 0.15)
    assert (high.lam > 0).all()
    low = begun().control(
        replace(rates, costs=(0.0, 1.0), firsts=(0.0, 0.0)), channels(TWO_LIMITS), 50, 100, 200,
        GIVEN, 0.15,
    )  # fmt: skip
    assert low.lam.tolist() == [0.0, 0.0]
    assert high.moves == begun().moves


def test_a_fall_saves_no_cost_and_an_arrival_may():
    """Episodes of 10 steps of 50 that cost 4: within a limit of 5 for who arrives, not for who
    falls, whose budget is a fifth."""
    rates, each = Rates(1.0, 1 / 10, (0.4,), (0.1,)), channels(limited(ROAD, ("speed <= 0.3", 5.0)))
    arrived, fallen = (
        begun(k=1, ends=1 / 10, falls=falls).control(rates, each, 50, 100, 200, GIVEN, 0.0)
        for falls in (0.0, 1.0)
    )
    assert 0.0 <= arrived.lam[0] < 0.5 * fallen.lam[0]


def test_ends_that_earn_less_than_a_step_is_worth_are_falls():
    chunk = chunk_of(MORTAL)
    assert chunk.terminated.any()
    worst, best = chunk.rewards.min() - 1, chunk.rewards.max() + 1
    limits = begun(k=1, falls=0.5)
    assert limits.fall(chunk, worst).falls < 0.5 < limits.fall(chunk, best).falls
    never = chunk_of(ROAD)
    assert limits.fall(never, worst) is limits
