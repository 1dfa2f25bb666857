from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from random_policies import policy_for
from ringfence.constraints.linear import parse_inequality
from ringfence.errors import InvalidInput
from ringfence.objects import Problem, Trajectory
from ringfence.solvers.cloning import CloningConfig, clone, renormalised
from ringfence.solvers.ppo import PPO, PPOConfig, evaluate, first_learner
from ringfence.worlds.ant import AntTask
from ringfence.worlds.sim.rollouts import Actor
from toy_tasks import FIVE_BY_THREE, limited


def demonstrations(count: int = 3, steps: int = 200) -> list[Trajectory]:
    """An "expert" that acts by a smooth function of its observation."""
    rng = np.random.default_rng(0)
    direction = rng.standard_normal((27, 8)) / 6
    runs = []
    for _ in range(count):
        seen = rng.standard_normal((steps + 1, 27))
        runs.append(
            Trajectory(
                seen,
                np.tanh(seen[:-1] @ direction),
                np.ones(steps),
                rng.standard_normal((steps, 3)),
                terminated=False,
            )
        )
    return runs


def test_clone_does_what_the_demonstrations_do():
    demos = demonstrations(count=10)
    start = clone(demos[:-1], AntTask(), (0,), CloningConfig(steps=3000))
    inputs = np.column_stack([demos[-1].observations[:-1], np.zeros(200)])
    error = np.square(Actor(start).mean(inputs) - demos[-1].actions).mean()
    assert error < 0.3 * np.square(demos[-1].actions).mean()


def test_same_seed_same_bytes_and_demonstrations_untouched():
    demos = demonstrations()
    copies = [(t.observations.copy(), t.actions.copy(), t.features.copy()) for t in demos]
    for t in demos:
        for array in (t.observations, t.actions, t.features):
            array.flags.writeable = False
    one = clone(demos, AntTask(), (0,), CloningConfig(steps=20))
    two = clone(demos, AntTask(), (0,), CloningConfig(steps=20))
    other = clone(demos, AntTask(), (1,), CloningConfig(steps=20))
    assert all(np.array_equal(one[k], two[k]) for k in one)
    assert not np.array_equal(one["actor/w0"], other["actor/w0"])
    for t, (seen, taken, phi) in zip(demos, copies, strict=True):
        assert np.array_equal(t.observations, seen)
        assert np.array_equal(t.actions, taken)
        assert np.array_equal(t.features, phi)


def test_augmented_input_is_zero_in_cloning_so_features_do_not_matter():
    demos = demonstrations()
    changed = [
        Trajectory(t.observations, t.actions, t.rewards, t.features + 100, t.terminated)
        for t in demos
    ]
    one = clone(demos, AntTask(), (0,), CloningConfig(steps=20))
    two = clone(changed, AntTask(), (0,), CloningConfig(steps=20))
    assert all(np.array_equal(one[k], two[k]) for k in one)


def test_a_clone_is_a_start_for_ppo():
    task = AntTask()
    start = clone(demonstrations(), task, (0,), CloningConfig(steps=20))
    constraint = parse_inequality("speed <= 0.75", task.features)
    learner = first_learner(Problem(task, constraint, 20.0, start, (0,)), task, PPOConfig())
    assert np.array_equal(learner.policy()["actor/w0"], start["actor/w0"])
    assert np.array_equal(learner.statistics.mean, start["norm/mean"])


def test_demonstrations_of_another_task_are_refused():
    wrong = Trajectory(
        np.zeros((3, 5)), np.zeros((2, 8)), np.zeros(2), np.zeros((2, 3)), terminated=False
    )
    with pytest.raises(InvalidInput, match="demonstration 0"):
        clone([wrong], AntTask(), (0,))
    with pytest.raises(InvalidInput, match="at least one"):
        clone([], AntTask(), (0,))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"steps": -1}, "steps must be at least 0"),
        ({"batch": 0}, "batch must be at least 1"),
        ({"learning_rate": float("nan")}, "learning_rate must be above 0"),
    ],
)
def test_settings_that_cannot_clone_are_refused(change: dict, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        CloningConfig(**change)


def test_a_clone_of_ants_acts_like_them_on_the_ant():
    task = AntTask(horizon=150)
    teacher = policy_for(task)
    teacher["actor/log_std"] = np.full(8, -2.0, np.float32)
    runs = evaluate(task, teacher, lambda phi: np.zeros(len(phi)), 32, (0,))
    start = clone(runs[:28], task, (0,), CloningConfig(steps=2000))
    unseen = np.concatenate([t.observations[:-1] for t in runs[28:]])
    inputs = np.column_stack([unseen, np.zeros(len(unseen))])
    wanted = np.clip(Actor(teacher).mean(inputs), -1, 1)
    error = np.square(np.clip(Actor(start).mean(inputs), -1, 1) - wanted).mean()
    assert error < 0.25 * wanted.var()
    (walked,) = evaluate(task, start, lambda phi: np.zeros(len(phi)), 1, (1,))
    assert np.isfinite(walked.rewards).all()


def test_the_constraints_value_does_not_move_a_fresh_clone() -> None:
    """What the demonstrations never showed must not change what the clone does."""
    task = AntTask()
    start = clone(demonstrations(), task, (0,), CloningConfig(steps=20, log_std=None))
    inputs = np.random.default_rng(0).normal(size=(5, task.observation_dim + 1))
    violating = inputs.copy()
    violating[:, -1] += 50.0
    np.testing.assert_array_equal(Actor(start).mean(inputs), Actor(start).mean(violating))


def test_a_clone_is_as_noisy_as_its_demonstrator() -> None:
    task, rng = AntTask(), np.random.default_rng(1)
    runs = []
    for t in demonstrations(6):
        noise = rng.normal(0, [0.15, 0.3, 0.15, 0.3, 0.15, 0.3, 0.05, 2.0], t.actions.shape)
        runs.append(replace(t, actions=np.zeros_like(t.actions) + noise))
    start = clone(runs, task, (0,), CloningConfig(steps=500, log_std=None))
    std = np.exp(start["actor/log_std"])
    np.testing.assert_allclose(std[:6], [0.15, 0.3] * 3, rtol=0.15)
    np.testing.assert_allclose(std[6:], np.exp([-2.0, -1.0]), rtol=1e-5)


def test_another_normalisation_is_the_same_actor() -> None:
    task, rng = AntTask(), np.random.default_rng(2)
    start = clone(demonstrations(), task, (0,), CloningConfig(steps=20))
    n = task.observation_dim + 1
    moved = renormalised(start, rng.normal(size=n), rng.uniform(0.5, 2, n))
    inputs = rng.normal(size=(50, n))
    np.testing.assert_allclose(Actor(moved).mean(inputs), Actor(start).mean(inputs), atol=1e-5)


def test_a_clone_acts_as_it_did_while_only_its_critic_learns() -> None:
    """Neither an untrained critic nor the moving normalisation of inputs may unlearn the walk."""
    task = AntTask(horizon=30)
    start = clone(demonstrations(), task, (0,), CloningConfig(steps=20))
    start["norm/std"] *= 0.3  # the demonstrations' inputs vary less than the training's
    config = PPOConfig(
        env_steps=1024, copies=8, steps=32, minibatches=4, passes=2, evaluation_episodes=2
    )
    constraint = parse_inequality("speed <= 0.75", task.features)
    problem = Problem(task, constraint, 20.0, start, (0,))
    assert config.updates == 4 < config.critic_first
    learnt = PPO(config)(problem).policy
    assert not np.allclose(learnt["norm/std"], start["norm/std"], rtol=0.1)
    fresh = first_learner(problem, task, config).params["critic"]["w1"]
    assert not np.allclose(learnt["critic/w1"], fresh)
    inputs = np.random.default_rng(3).normal(size=(50, task.observation_dim + 1))
    inputs = start["norm/mean"] + start["norm/std"] * inputs  # none beyond the cut-off
    wanted = Actor(start).mean(inputs)
    np.testing.assert_allclose(Actor(learnt).mean(inputs), wanted, atol=1e-4)
    later = PPO(config)(replace(problem, start=learnt)).policy  # now it has a critic
    assert not np.allclose(Actor(later).mean(inputs), wanted, atol=1e-3)


def test_a_clone_of_choices_chooses_as_its_demonstrators_do() -> None:
    """They take the lowest speed at first, later the highest, and the second choice at random."""
    rng, runs = np.random.default_rng(0), []
    for _ in range(20):
        seen = np.column_stack([np.arange(51) / 50, np.ones(51)])
        taken = np.column_stack([np.where(seen[:-1, 0] < 0.5, 0.0, 4.0), rng.integers(0, 2, 50)])
        runs.append(Trajectory(seen, taken, np.ones(50), taken[:, :1], terminated=False))
    start = clone(runs, FIVE_BY_THREE, (0,), CloningConfig(steps=1000, hidden=(16,)))
    assert "actor/log_std" not in start
    actor = Actor(start)
    inputs = np.column_stack([np.repeat([0.1, 0.9], 5000), np.ones(10_000), np.zeros(10_000)])
    chosen, _ = actor.act(inputs, actor.noise(rng, (10_000,)))
    early, late = chosen[:5000], chosen[5000:]
    assert np.mean(early[:, 0] == 0) > 0.95
    assert np.mean(late[:, 0] == 4) > 0.95
    np.testing.assert_allclose(
        np.bincount(chosen[:, 1].astype(int)) / 1e4, [0.5, 0.5, 0], atol=0.06
    )
    problem = replace(limited(FIVE_BY_THREE, ("speed <= 0.3", 5.0)), start=start)
    learner = first_learner(problem, FIVE_BY_THREE, PPOConfig(hidden=(16,)))
    assert np.array_equal(learner.policy()["actor/w1"], start["actor/w1"])
