from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from line_task import Line, line_problem
from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Feature, Problem
from ringfence.solvers import ppo
from ringfence.solvers.ppo import PPO, Multiplier, PPOConfig, next_multiplier
from ringfence.worlds.ant import AntTask

SMALL = PPOConfig(
    env_steps=1024,
    copies=8,
    steps=16,
    batch=64,
    passes=2,
    evaluation_episodes=2,
    checkpoint_every=1,
)


def ant_problem(threads: int = 2, seed: int = 0) -> Problem:
    task = AntTask(threads=threads, horizon=30)
    constraint = parse_inequality("speed <= 0.75", task.features)
    return Problem(task, constraint, 20.0, None, (seed,))


def same_arrays(one, two) -> bool:
    return one.keys() == two.keys() and all(np.array_equal(one[k], two[k]) for k in one)


def test_learns_to_go_as_fast_as_the_constraint_allows():
    # log(1 + relu(v - 0.3)) * 50 steps <= 5 allows a mean speed of about 0.4; free is 1.
    config = replace(SMALL, env_steps=40_000, passes=8, learning_rate=1e-3, steps=32, gain_i=0.01)
    result = PPO(config).train(line_problem())
    cost = np.mean([line_problem().constraint.cost(t.features).sum() for t in result.stochastic])
    speed = np.mean([t.features[:, 1].mean() for t in result.stochastic])
    assert cost <= 6.5
    assert 0.15 < speed < 0.5
    assert result.solution.lam > 0
    free = PPO(config).train(line_problem(delta=1000.0))
    assert np.mean([t.features[:, 1].mean() for t in free.deterministic]) > 0.8


def test_the_learning_rate_falls_along_a_line():
    config = replace(SMALL, learning_rate=1e-3, cool_down=0.5)
    assert config.updates == 8
    rates = [config.rate_after(done) for done in (0, 4, 6, 7)]
    assert rates == pytest.approx([1e-3, 1e-3, 0.5e-3, 0.25e-3])
    assert replace(config, cool_down=0.0).rate_after(7) == 1e-3


def test_a_falling_rate_makes_smaller_steps():
    last = replace(SMALL, env_steps=4 * SMALL.rollout)

    def moved(config: PPOConfig) -> list[float]:
        """How far each update moves the actor's first layer."""
        problem, moves, before = line_problem(), [], None
        collector = ppo.make_collector(problem, config)
        for learner, _ in ppo.train(problem, config, collector):
            now = np.asarray(learner.params["actor"]["w0"])
            moves += [] if before is None else [float(np.abs(now - before).mean())]
            before = now
        collector.close()
        return moves

    constant, falling = moved(last), moved(replace(last, cool_down=1.0))
    assert falling[-1] < 0.5 * constant[-1]


def test_same_seed_same_bytes_at_any_number_of_threads():
    config = replace(SMALL, env_steps=512)
    solutions = [PPO(config)(ant_problem(threads)) for threads in (1, 2)]
    assert same_arrays(solutions[0].policy, solutions[1].policy)
    assert np.array_equal(solutions[0].behaviour.features, solutions[1].behaviour.features)
    other = PPO(config)(ant_problem(seed=1))
    assert not same_arrays(solutions[0].policy, other.policy)


class Killed(Exception):
    pass


@pytest.mark.parametrize(
    ("at", "keep_best", "keep_lag"),
    [(1, False, 0), (3, False, 0), (7, False, 0), (7, True, 0), (3, True, 3), (7, True, 3)],
)
def test_killed_solve_resumes_to_the_same_bytes(
    tmp_path: Path, at: int, keep_best: bool, keep_lag: int
):
    def kill(record):
        if record["update"] == at:
            raise Killed

    kept = {"keep_best": keep_best, "keep_lag": keep_lag, "stop_window": 1, "margin": 0.0}
    config, folder = replace(SMALL, checkpoint_every=2, **kept), tmp_path / "c"
    whole = PPO(config).train(ant_problem())
    with pytest.raises(Killed):
        PPO(config).train(ant_problem(), folder, kill)
    resumed = PPO(config).train(ant_problem(), folder)
    assert same_arrays(whole.solution.policy, resumed.solution.policy)
    assert whole.records == resumed.records
    assert whole.handed_out == resumed.handed_out
    assert np.array_equal(whole.stochastic[0].rewards, resumed.stochastic[0].rewards)
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


def test_a_checkpoint_of_another_problem_is_refused(tmp_path: Path):
    PPO(SMALL).train(line_problem(), tmp_path / "c")
    with pytest.raises(InvalidInput, match="another problem"):
        PPO(SMALL).train(line_problem(delta=6.0), tmp_path / "c")


@pytest.mark.parametrize("poison", ["observation", "reward"])
def test_nan_from_the_simulator_is_named_with_its_step(poison, tmp_path: Path):
    # step 20 of 8 copies; an observation is seen one step later than it was made
    first = 20 * 8 if poison == "observation" else 19 * 8
    with pytest.raises(SolverFailed, match=rf"{poison} is nan at environment step {first} "):
        PPO(SMALL).train(line_problem(poison=poison), tmp_path / "c")
    assert all(not p.name.startswith(".") for p in tmp_path.iterdir())


def test_nan_stops_training_within_one_update():
    records = []
    late = line_problem(poison="feature", poison_step=3 * SMALL.steps + 5)
    with pytest.raises(SolverFailed, match=r"feature is nan at environment step 4"):
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
    monkeypatch.setattr(ppo, "next_multiplier", lambda *_: Multiplier(lam=float("nan")))
    with pytest.raises(SolverFailed, match="multiplier is nan at environment step 0"):
        PPO(SMALL)(problem)


def test_wrong_use_is_refused_before_the_first_step():
    problem = line_problem()
    with pytest.raises(InvalidInput, match="no feature 'height'"):
        parse_inequality("height <= 1", problem.task.features)
    speed_only = parse_inequality("speed <= 1", (Feature("speed", "m/s"),))
    with pytest.raises(InvalidInput, match="constraint is over speed, but task 'line'"):
        PPO(SMALL)(replace(problem, constraint=speed_only))
    with pytest.raises(InvalidInput, match="not a multiple"):
        replace(SMALL, batch=100)
    for name in ("checkpoint_every", "stop_window"):
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


def test_pid_multiplier_reacts_integrates_and_does_not_wind_up():
    gains = {"gain_p": 0.05, "gain_i": 0.0005, "gain_d": 0.1}
    config = PPOConfig(**gains, error_clip=20.0, margin=0, cost_share=1.0)
    m = next_multiplier(Multiplier(), 30.0, 20.0, config)
    assert m.lam == pytest.approx(0.05 * 10 + 0.0005 * 10)
    m = next_multiplier(m, 35.0, 20.0, config)
    assert m.lam == pytest.approx(0.05 * 15 + 0.0005 * 25 + 0.1 * 5)
    before = m.integral
    for _ in range(100):
        m = next_multiplier(m, 5000.0, 20.0, config)
    assert m.integral == before
    assert m.lam == pytest.approx(0.05 * 20 + before)
    m = next_multiplier(m, 0.0, 20.0, config)
    assert m.lam == 0


def test_multiplier_follows_a_running_mean_of_the_cost():
    config = PPOConfig(gain_p=1.0, gain_i=0.0, gain_d=0.0, margin=0, cost_share=0.25)
    m = next_multiplier(Multiplier(), 30.0, 20.0, config)
    assert next_multiplier(m, 10.0, 20.0, config).lam == pytest.approx(5.0)


def test_classical_multiplier_is_projected_gradient_ascent():
    config = PPOConfig(multiplier="gradient", gradient_rate=0.01, margin=0)
    m = next_multiplier(Multiplier(lam=0.1), 30.0, 20.0, config)
    assert m.lam == m.integral == pytest.approx(0.2)
    assert next_multiplier(m, 0.0, 100.0, config).lam == 0


def test_stop_rule_ends_a_solve_early():
    config = replace(SMALL, stop_reward=-1e9, stop_window=2)
    result = PPO(config).train(line_problem(delta=1000.0))
    assert len(result.records) == 2
    assert result.solution.env_steps == 2 * config.rollout


def test_an_environment_may_cut_its_own_episodes_at_any_step():
    result = PPO(SMALL).train(line_problem(cut_every=3))
    assert {r.length for r in result.records} <= {3.0}
    assert len(result.records) == SMALL.updates


def test_a_solve_takes_over_the_multipliers_integral_alone():
    learner = ppo.first_learner(line_problem(), Line(), SMALL)
    excited = replace(learner, multiplier=Multiplier(lam=3.0, integral=0.4, cost=50.0))
    following = ppo.first_learner(replace(line_problem(), start=excited.policy()), Line(), SMALL)
    assert following.multiplier == Multiplier(lam=0.4, integral=0.4)


def test_the_best_policy_that_keeps_the_limit_is_handed_out():
    config = replace(SMALL, keep_best=True, stop_window=2, margin=0.0)
    problem = line_problem(delta=0.9)
    result = PPO(config).train(problem)
    rate = [r.reward_rate for r in result.records]
    cost = [r.cost for r in result.records]
    pairs = range(1, len(rate))
    within = [i for i in pairs if (cost[i - 1] + cost[i]) / 2 <= problem.delta]
    chosen = max(within, key=lambda i: rate[i - 1] + rate[i])  # no point on a line ever falls
    assert result.handed_out == chosen + 1
    assert 0 < len(within) < len(pairs)
    same = PPO(replace(config, keep_best=False, env_steps=result.handed_out * config.rollout))
    assert same_arrays(result.solution.policy, same.train(problem).solution.policy)


def test_a_policy_is_judged_by_the_rollouts_after_it():
    config = replace(SMALL, keep_best=True, stop_window=2, keep_lag=2, margin=0.0)
    problem = line_problem(delta=0.9)
    result = PPO(config).train(problem)
    rate = [r.reward_rate for r in result.records]
    cost = [r.cost for r in result.records]
    # candidates are the policies after updates 1, 4, 7, ..; the next two rollouts judge them
    judged = [u for u in range(1, len(rate), 3) if u + 2 <= len(rate)]
    within = [u for u in judged if (cost[u] + cost[u + 1]) / 2 <= problem.delta]
    assert 0 < len(within) < len(judged)
    assert result.handed_out == max(within, key=lambda u: rate[u] + rate[u + 1])
    same = PPO(replace(config, keep_best=False, env_steps=result.handed_out * config.rollout))
    assert same_arrays(result.solution.policy, same.train(problem).solution.policy)


def test_the_multiplier_rests_for_a_while():
    lam = [r.lam for r in PPO(replace(SMALL, grace=0.5)).train(line_problem(delta=0.0)).records]
    assert lam[:4] == [0.0] * 4
    assert min(lam[4:]) > 0


def test_nothing_that_broke_its_limit_is_kept():
    result = PPO(replace(SMALL, keep_best=True, stop_window=2)).train(line_problem(delta=0.0))
    assert result.handed_out == len(result.records)


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
    config, problem = replace(SMALL, stop_window=2), line_problem(delta=1000.0)
    assert len(PPO(config).train(problem).records) == SMALL.updates
    asked = replace(problem, stop_reward=-1e3)
    assert len(PPO(config).train(asked).records) == 2
    never = PPO(replace(config, stop_reward=-1e3)).train(replace(problem, stop_reward=1e9))
    assert len(never.records) == SMALL.updates


def test_without_a_constraint_it_has_no_multiplier_and_does_not_stop_early():
    free = PPO(replace(SMALL, initial_lam=3.0, stop_reward=1.0)).free()
    assert (free.config.initial_lam, free.config.stop_reward) == (0.0, None)
    assert PPO(SMALL).watch().count == SMALL.evaluation_episodes


def test_a_solution_of_a_game_is_told_with_its_episodes():
    """What `__call__` returns is what `train` does, with pictures."""
    problem = line_problem()
    found, trained = PPO(SMALL)(problem), PPO(SMALL).train(problem)
    assert same_arrays(found.policy, trained.solution.policy)
    assert len(found.pictured) == SMALL.evaluation_episodes
    assert found.behaviour.reward == trained.solution.behaviour.reward
    assert trained.deterministic


def test_fresh_episodes_see_what_the_policy_was_trained_to_see():
    problem = line_problem()
    solution = PPO(SMALL)(problem)
    seeing = PPO(SMALL).episodes(problem, solution, 3, (5,))
    blind = PPO(replace(SMALL, augment=False)).episodes(problem, solution, 3, (5,))
    assert len(seeing) == len(blind) == 3
    assert not np.array_equal(seeing[0].actions, blind[0].actions)
