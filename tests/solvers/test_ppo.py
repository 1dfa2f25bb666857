from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from line_task import Line, line_problem
from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Constraint, Feature, Problem, Trajectory
from ringfence.solvers import limits, ppo
from ringfence.solvers.cloning import CloningConfig, clone
from ringfence.solvers.limits import MOST, Multiplier, channels
from ringfence.solvers.ppo import PPO, PPOConfig, Result
from ringfence.solvers.ppo_settings import next_rate
from ringfence.worlds.ant import AntTask
from toy_tasks import (
    FIVE,
    FIVE_BY_THREE,
    GUSTY,
    LATE,
    MORTAL,
    ROAD,
    TWO,
    Toy,
    drive_to_the_edge,
    limited,
)

SMALL = PPOConfig(
    env_steps=1024,
    copies=8,
    steps=16,
    minibatches=2,
    passes=2,
    window=3,
    evaluation_episodes=2,
    test_episodes=4,
    checkpoint_every=1,
)
#: The one setting; a world without physics needs no larger network.
TINY = PPOConfig(env_steps=300_000, hidden=(16,))


def ant_problem(threads: int = 2, seed: int = 0) -> Problem:
    task = AntTask(threads=threads, horizon=30)
    constraint = parse_inequality("speed <= 0.75", task.features)
    return Problem(task, constraint, 20.0, None, (seed,))


def same_arrays(one, two) -> bool:
    return one.keys() == two.keys() and all(np.array_equal(one[k], two[k]) for k in one)


def test_same_seed_same_bytes_at_any_number_of_threads():
    config = replace(SMALL, env_steps=512)
    solutions = [PPO(config)(ant_problem(threads)) for threads in (1, 2)]
    assert same_arrays(solutions[0].policy, solutions[1].policy)
    assert np.array_equal(solutions[0].behaviour.features, solutions[1].behaviour.features)
    other = PPO(config)(ant_problem(seed=1))
    assert not same_arrays(solutions[0].policy, other.policy)


class Killed(Exception):
    pass


def test_a_checkpoint_of_another_problem_is_refused(tmp_path: Path):
    PPO(SMALL).train(line_problem(), tmp_path / "c")
    with pytest.raises(InvalidInput, match="another problem"):
        PPO(SMALL).train(line_problem(delta=6.0), tmp_path / "c")


@pytest.mark.parametrize("poison", ["observation", "reward"])
def test_nan_from_the_simulator_is_named_with_its_step(poison, tmp_path: Path):
    with pytest.raises(SolverFailed, match=rf"line: {poison} is nan at step 20 .* in copy 0; "):
        PPO(SMALL).train(line_problem(poison=poison), tmp_path / "c")
    assert all(not p.name.startswith(".") for p in tmp_path.iterdir())


def test_nan_stops_training_within_one_update():
    records = []
    late = line_problem(poison="feature", poison_step=3 * SMALL.rollout_steps + 5)
    with pytest.raises(SolverFailed, match=r"feature is nan at step \d+ of an episode in copy 0"):
        PPO(SMALL).train(late, report=records.append)
    assert len(records) == 3


def test_nan_in_cost_gradient_and_multiplier_is_named(monkeypatch):
    problem = line_problem()

    class BadCost(LinearConstraint):
        def cost(self, phi):
            return np.full(len(phi), np.nan)

    c = problem.constraint
    bad = BadCost(c.features, c.weights, c.offset)
    with pytest.raises(SolverFailed, match="cost is nan at environment step 0"):
        PPO(SMALL)(replace(problem, constraint=bad))
    start = {"actor/log_std": np.full(1, 100.0, np.float32)}
    with pytest.raises(SolverFailed, match=r"gradient of the actor is (nan|inf)"):
        PPO(SMALL)(replace(problem, start=start))
    monkeypatch.setattr(limits, "next_multiplier", lambda *_, **__: Multiplier(lam=float("nan")))
    with pytest.raises(SolverFailed, match="multiplier is nan at environment step 0"):
        PPO(SMALL)(problem)


def test_wrong_use_is_refused_before_the_first_step():
    problem = line_problem()
    with pytest.raises(InvalidInput, match="no feature 'height'"):
        parse_inequality("height <= 1", problem.task.features)
    speed_only = parse_inequality("speed <= 1", (Feature("speed", "m/s"),))
    with pytest.raises(InvalidInput, match="constraint is over speed, but task 'line'"):
        PPO(SMALL)(replace(problem, constraint=speed_only))
    with pytest.raises(InvalidInput, match="16 steps does not divide into 100 minibatches"):
        replace(SMALL, minibatches=100)
    for name in ("checkpoint_every", "window", "copies", "steps"):
        with pytest.raises(InvalidInput, match=f"{name} must be at least 1"):
            replace(SMALL, **{name: 0})
    with pytest.raises(InvalidInput, match="start_share"):
        PPO(replace(SMALL, start_share=0.5))(problem)
    with pytest.raises(InvalidInput, match="shape"):
        PPO(SMALL)(replace(problem, start={"actor/w0": np.zeros((2, 2))}))


def test_advantages_are_the_sums_of_discounted_errors():
    rng = np.random.default_rng(0)
    r, V, V_next = rng.standard_normal((3, 6, 2))
    ended = np.zeros((6, 2), bool)
    ended[3, 0] = True
    A = np.asarray(ppo.advantages(r, V, V_next, ended, 0.9, 0.8))
    errors = r + 0.9 * V_next - V
    for n, t, last in ((0, 1, 3), (0, 4, 5), (1, 0, 5)):
        expected = sum(0.72 ** (k - t) * errors[k, n] for k in range(t, last + 1))
        assert A[t, n] == pytest.approx(expected, rel=1e-5)


def test_stop_rule_ends_a_solve_early():
    config = replace(SMALL, stop_reward=-1e9, window=2)
    result = PPO(config).train(line_problem(delta=1000.0))
    assert len(result.records) == 2
    assert result.solution.env_steps == 2 * config.rollout


def test_an_environment_may_cut_its_own_episodes_at_any_step():
    result = PPO(SMALL).train(line_problem(cut_every=3))
    assert {r.length for r in result.records} <= {3.0}
    assert len(result.records) == SMALL.updates


def test_what_can_be_known_before_the_first_step_is_refused_before_it():
    good = line_problem()
    PPO(SMALL).check(good)
    with pytest.raises(InvalidInput, match="start_share needs states"):
        PPO(replace(SMALL, start_share=0.5)).check(good)
    with pytest.raises(InvalidInput, match="the start's actor/w0 has shape"):
        PPO(SMALL).check(replace(good, start={"actor/w0": np.zeros((2, 2))}))
    speed = parse_inequality("speed <= 0.3", Line().features[1:])
    with pytest.raises(InvalidInput, match="over speed, but task 'line' has"):
        PPO(SMALL).check(replace(good, constraint=speed))


def test_the_problems_own_stop_reward_comes_before_the_settings():
    """Enough is earned at once by both: after a window the training stops."""
    config, problem = replace(SMALL, window=2), line_problem(delta=1000.0)
    assert len(PPO(config).train(problem).records) == SMALL.updates
    asked = replace(problem, stop_reward=-1e3)
    assert len(PPO(config).train(asked).records) == 2
    never = PPO(replace(config, stop_reward=-1e3)).train(replace(problem, stop_reward=1e9))
    assert len(never.records) == SMALL.updates


def test_a_solution_of_a_game_is_told_with_its_episodes():
    """What `__call__` returns is what `train` does, with pictures."""
    problem = line_problem()
    found, trained = PPO(SMALL)(problem), PPO(SMALL).train(problem, deterministic=False)
    assert same_arrays(found.policy, trained.solution.policy)
    assert len(found.pictured) == len(trained.stochastic)
    assert found.behaviour.reward == trained.solution.behaviour.reward
    assert trained.deterministic == []


def test_fresh_episodes_see_what_the_policy_was_trained_to_see():
    problem = line_problem()
    solution = PPO(SMALL)(problem)
    seeing = PPO(SMALL).episodes(problem, solution, 3, (5,))
    blind = PPO(replace(SMALL, augment=False)).episodes(problem, solution, 3, (5,))
    assert len(seeing) == len(blind) == 3
    assert not np.array_equal(seeing[0].actions, blind[0].actions)


# Killed, stopped, handed out -----------------------------------------------------------------


@pytest.mark.parametrize("at", [1, 3, 7])
@pytest.mark.parametrize("delta", [20.0, 0.0])
def test_killed_solve_resumes_to_the_same_bytes(tmp_path: Path, at: int, delta: float):
    def kill(record):
        if record["update"] == at:
            raise Killed

    config, folder = replace(SMALL, checkpoint_every=2, window=2), tmp_path / "c"
    problem = replace(ant_problem(), delta=delta)
    whole = PPO(config).train(problem)
    with pytest.raises(Killed):
        PPO(config).train(problem, folder, kill)
    resumed = PPO(config).train(problem, folder)
    assert same_arrays(whole.solution.policy, resumed.solution.policy)
    assert whole.records == resumed.records
    assert whole.handed_out == resumed.handed_out
    assert [t.bounds for t in whole.tests] == [t.bounds for t in resumed.tests]
    assert np.array_equal(whole.stochastic[0].rewards, resumed.stochastic[0].rewards)
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


def test_the_policy_handed_out_is_that_after_the_update_that_is_told():
    """Of a line that is walked ever faster, under a limit that is soon too small."""
    problem = line_problem(delta=0.9)
    result = PPO(SMALL).train(problem)
    collector = ppo.make_collector(problem, SMALL)
    policies = [learner.policy() for learner, _ in ppo.train(problem, SMALL, collector)]
    collector.close()
    assert same_arrays(result.solution.policy, policies[result.handed_out - 1])
    assert [same_arrays(p, result.solution.policy) for p in policies].count(True) == 1
    assert all(t.candidate.update <= SMALL.updates for t in result.tests)


def test_what_is_told_of_a_policy_was_not_used_to_choose_it():
    """A test's episodes are drawn for it alone: another number of candidates changes none."""
    result = PPO(SMALL).train(line_problem(delta=1000.0))
    (test,) = [t for t in result.tests if t.candidate.update == result.handed_out]
    assert result.within
    assert (result.stochastic, result.deterministic) == (test.stochastic, test.deterministic)
    none = PPO(replace(SMALL, test_episodes=0)).train(line_problem(delta=1000.0))
    assert len(none.tests) == 1
    assert len(none.stochastic) == SMALL.evaluation_episodes


def test_a_following_solve_takes_over_the_level_of_each_multiplier_and_no_more():
    problem = limited(TWO, ("speed <= 0.3", 5.0), ("climb <= 0.6", 1.0))
    learner = ppo.first_learner(problem, TWO, SMALL)
    excited = tuple(Multiplier(lam=3.0, level=v, cost=50.0, trend=0.1) for v in (0.4, -0.2))
    start = replace(learner, limits=replace(learner.limits, multipliers=excited)).policy()
    following = ppo.first_learner(replace(problem, start=start), TWO, SMALL)
    assert following.limits.multipliers == (Multiplier(level=0.4), Multiplier(level=-0.2))
    # a start of another number of limits says nothing of these, nor of their critic
    one = ppo.first_learner(replace(limited(TWO, ("speed <= 0.3", 5.0)), start=start), TWO, SMALL)
    assert one.limits.multipliers == (Multiplier(),)
    assert one.params["critic"]["w2"].shape == (128, 2)
    assert np.array_equal(one.params["actor"]["w0"], start["actor/w0"])


def test_without_a_constraint_nothing_is_tested_and_it_does_not_stop_early():
    free = PPO(replace(SMALL, stop_reward=1.0)).free()
    assert (free.config.test_episodes, free.config.stop_reward) == (0, None)
    assert PPO(SMALL).watch().count == SMALL.evaluation_episodes


def test_the_learning_rate_falls_to_nothing():
    """The updates move the actor less and less; the last would leave it where it is."""
    config = replace(SMALL, env_steps=16 * SMALL.rollout)
    problem, moves, before = line_problem(), [], None
    collector = ppo.make_collector(problem, config)
    for learner, _ in ppo.train(problem, config, collector):
        now = np.asarray(learner.params["actor"]["w0"])
        moves += [] if before is None else [float(np.abs(now - before).mean())]
        before = now
    collector.close()
    assert np.mean(moves[-3:]) < 0.4 * np.mean(moves[:3])


def test_an_update_that_moves_the_policy_too_far_lowers_the_actors_rate():
    assert next_rate(1.0, 0.03, 0.02, fresh=True) < 1.0
    assert next_rate(0.5, 0.015, 0.02, fresh=True) == 0.5
    assert 0.5 < next_rate(0.5, 0.001, 0.02, fresh=True) < 1.0
    assert next_rate(1.0, 0.0, 0.02, fresh=False) == 1.0
    assert next_rate(1.0, 0.0, 0.02, fresh=True) > 1.0


def test_a_rollout_is_smaller_in_a_short_training():
    assert PPOConfig(env_steps=100_000).rollout < PPOConfig(env_steps=3_000_000).rollout
    assert PPOConfig(steps=7, minibatches=7).rollout == 7 * PPOConfig().copies
    short, long = PPOConfig(env_steps=100_000), PPOConfig(env_steps=3_000_000)
    assert short.pace.passes > long.pace.passes
    assert PPOConfig(passes=3).pace.passes == 3


def test_a_multiplier_that_is_given_stays():
    records = PPO(replace(SMALL, fixed_lam=0.7)).train(line_problem(delta=0.0)).records
    assert {round(r.lam, 6) for r in records} == {0.7}


# Units -----------------------------------------------------------------------------------------


class Scaled:
    """The same constraint whose cost is in another unit."""

    def __init__(self, c: Constraint, scale: float) -> None:
        self.c, self.scale = c, scale
        self.features, self.raw, self.describe = c.features, c.raw, c.describe

    def activate(self, raw):
        return self.scale * self.c.activate(raw)

    def cost(self, phi):
        return self.scale * self.c.cost(phi)


@pytest.mark.parametrize("delta", [1.0, 0.0])
def test_the_units_of_reward_and_cost_change_no_byte(delta: float):
    config = replace(SMALL, env_steps=16 * SMALL.rollout)

    def policy(pay: float, scale: float):
        problem = limited(replace(ROAD, pay=pay), ("speed <= 0.3", scale * delta))
        scaled = replace(problem, constraint=Scaled(problem.constraint, scale))
        return dict(PPO(config)(scaled).policy)

    in_ours = policy(1.0, 1.0)
    for pay, scale in ((64.0, 1.0), (1 / 64, 1.0), (1.0, 16.0), (1.0, 1 / 16), (64.0, 1 / 16)):
        other = policy(pay, scale)
        # what a limit of 0 is felt by is the constraint's raw value, whatever a step costs
        units = np.array([pay, scale if delta else 1.0], np.float32)
        for name in ("critic/scale", "critic/advantages"):  # only these say in which units it was
            assert np.array_equal(other.pop(name), in_ours[name] * units)
        assert same_arrays(other, {k: v for k, v in in_ours.items() if k in other})


# Limits that hold ------------------------------------------------------------------------------


def costs(problem: Problem, runs: list[Trajectory]) -> list[float]:
    """What an episode costs in each channel, on average."""
    return [
        float(np.mean([channel.constraint.cost(t.features).sum() for t in runs]))
        for channel in channels(problem)
    ]


def reward(runs: list[Trajectory]) -> float:
    return float(np.mean([t.rewards.sum() for t in runs]))


def assert_kept(problem: Problem, result: Result, least: float) -> None:
    """By the bound of its test, and by its episodes, with noise and without; earning so much."""
    assert result.within
    for runs in (result.stochastic, result.deterministic):
        for cost, channel in zip(costs(problem, runs), channels(problem), strict=True):
            # at a limit of 0 single episodes may break it, of which the test knows
            assert cost <= channel.limit + 0.05 * channel.zero
        assert reward(runs) >= least


@pytest.mark.parametrize(
    ("horizon", "delta", "least"), [(50, 5.0, 25.0), (1000, 100.0, 500.0), (50, 0.0, -10.0)]
)
def test_a_limit_is_kept_and_used_in_episodes_of_any_length(horizon, delta, least):
    """Of 1 that a step can earn 0.51 are left at the limit itself; nothing is earned at random."""
    problem = limited(replace(ROAD, horizon=horizon), ("speed <= 0.3", delta))
    assert_kept(problem, PPO(TINY).train(problem), least)


def test_without_a_limit_that_binds_all_is_earned():
    result = PPO(replace(TINY, env_steps=100_000)).train(limited(ROAD, ("speed <= 0.3", 1e6)))
    assert result.within
    assert reward(result.deterministic) > 45
    assert result.records[-1].lam == 0


def test_steps_beyond_a_limit_are_counted_where_the_cost_is_an_indicator():
    """Of 50 steps 33 are beyond it where most is earned, 44; 10 may be: 22 are left."""
    problem = limited(GUSTY, ("speed <= 0.75", 10.0), counted=True)
    result = PPO(TINY).train(problem)
    assert_kept(problem, result, 10.0)
    assert set(np.unique(problem.constraint.cost(result.stochastic[0].features))) == {0.0, 1.0}


def test_a_count_of_steps_that_no_small_change_lowers_is_kept():
    """Without a limit the noise goes before the limit binds, and then every step is beyond it."""
    problem = limited(ROAD, ("speed <= 0.3", 5.0), counted=True)
    assert_kept(problem, PPO(TINY).train(problem), 10.0)


@pytest.mark.parametrize(("climb", "least"), [(1.0, 55.0), (0.0, 45.0)])
def test_several_limits_are_each_kept(climb: float, least: float):
    problem = limited(TWO, ("speed <= 0.3", 5.0), ("climb <= 0.6", climb))
    assert_kept(problem, PPO(TINY).train(problem), least)


@pytest.mark.parametrize("task", [FIVE, FIVE_BY_THREE])
def test_discrete_actions_are_learned_within_the_limit(task: Toy):
    """At most 5 of 50 steps at speeds above 0.3: the rest at 0; the second choice earns 1 more."""
    problem = limited(task, ("speed <= 0.3", 5.0), counted=True)
    result = PPO(TINY).train(problem)
    assert_kept(problem, result, 45.0 if len(task.choices) > 1 else -1.0)
    taken = np.concatenate([t.actions for t in result.stochastic])
    assert set(np.unique(taken[:, 0])) <= {0, 1, 2, 3, 4}
    assert all(record.std is None for record in result.records)


def test_a_limit_that_no_policy_can_keep_is_told_with_how_far_it_is_off():
    """A speed of 2.5 where 2 is all that there is: log(1.5) = 0.405 a step, 20 an episode."""
    problem = limited(ROAD, ("-1 speed <= -2.5", 5.0))
    result = PPO(replace(TINY, env_steps=100_000)).train(problem)
    assert not result.within
    best = min(max(test.bounds) for test in result.tests)
    (cost,) = costs(problem, result.stochastic)
    assert best >= cost / 5.0 > 20 / 5.0
    assert all(max(test.bounds) > 4 for test in result.tests)
    zero = PPO(replace(TINY, env_steps=50_000)).train(limited(ROAD, ("-1 speed <= -2.5", 0.0)))
    assert not zero.within
    assert {test.bounds for test in zero.tests} == {(1 / 0.05,)}  # every episode violates


# Recovery --------------------------------------------------------------------------------------


def test_a_policy_that_stands_still_under_too_large_a_multiplier_sets_out_again():
    problem = limited(ROAD, ("speed <= 0.3", 5.0))
    still = PPO(replace(TINY, env_steps=100_000, fixed_lam=50.0)).train(problem)
    assert reward(still.deterministic) < 5
    start = dict(still.solution.policy) | {"multiplier/level": np.array([np.log(MOST)])}
    assert_kept(problem, PPO(TINY).train(replace(problem, start=start)), 20.0)


def test_a_multiplier_that_begins_at_its_most_comes_down():
    start = {"multiplier/level": np.array([np.log(MOST)])}
    problem = replace(limited(ROAD, ("speed <= 0.3", 5.0)), start=start)
    result = PPO(TINY).train(problem)
    assert result.records[0].lam > 2 * result.records[-1].lam
    assert_kept(problem, result, 20.0)


def test_a_policy_does_not_die_to_avoid_cost():
    problem = limited(MORTAL, ("speed <= 0.3", 5.0))
    result = PPO(TINY).train(problem)
    assert_kept(problem, result, 20.0)
    assert min(len(t.rewards) for t in result.deterministic) == MORTAL.horizon


def test_a_policy_does_not_die_to_avoid_a_count_of_steps():
    problem = replace(limited(MORTAL, ("speed <= 0.3", 5.0), counted=True), seed=(1,))
    result = PPO(TINY).train(problem)
    assert min(len(t.rewards) for t in result.deterministic) == MORTAL.horizon


def test_a_policy_beyond_its_box_comes_back():
    """More is earned up to the edge, so the mean goes beyond it before the limit binds."""
    edge = Toy("edge", ROAD.features, drive_to_the_edge)
    problem = replace(limited(edge, ("speed <= 0.3", 0.0)), seed=(1,))
    assert_kept(problem, PPO(TINY).train(problem), -25.0)


def test_a_cost_that_comes_late_in_an_episode_is_kept():
    """All of what can be earned in the first four fifths is."""
    problem = limited(LATE, ("speed <= 0.3", 1.0))
    assert_kept(problem, PPO(TINY).train(problem), 40.0)


def test_a_clone_does_not_unlearn():
    """Of demonstrators near the limit; they come without a critic."""
    problem, rng = limited(ROAD, ("speed <= 0.3", 5.0)), np.random.default_rng(0)
    demonstrations = []
    for _ in range(4):
        speed = 0.3 + 0.05 * rng.standard_normal(50)
        seen = np.column_stack([np.arange(51) / 50, np.ones(51)])
        runs = Trajectory(seen, speed[:, None] / 2, speed * (2 - speed), speed[:, None], False)
        demonstrations.append(runs)
    start = clone(demonstrations, ROAD, (0,), CloningConfig(steps=500, hidden=(16,), log_std=-2.0))
    result = PPO(TINY).train(replace(problem, start=start))
    rewards = np.array([r.reward_rate for r in result.records])
    assert rewards.min() > 0.8 * reward(demonstrations)
    assert_kept(problem, result, 25.0)
