from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from ringfence.errors import InvalidInput
from ringfence.objects import Trajectory
from ringfence.worlds.ant import AntSimulator, AntTask, Config, make
from ringfence.worlds.continuous import TaskConfig


def start(copies: int, threads: int = 2, direction: tuple[float, float] = (1.0, 0.0)):
    sim = AntSimulator(AntTask(direction), copies, threads)
    rngs = [np.random.default_rng([7, i]) for i in range(copies)]
    return sim, sim.reset(np.arange(copies), rngs)


def test_steps_exactly_like_gymnasium_ant_v5():
    copies, steps = 3, 120
    sim, seen = start(copies)
    env = gymnasium.make(
        "Ant-v5", include_cfrc_ext_in_observation=False, contact_cost_weight=0
    ).unwrapped
    actions = np.random.default_rng(0).uniform(-1, 1, (steps, copies, 8))
    first = sim.save()
    ours = [sim.step(a) for a in actions]
    for i in range(copies):
        env.reset(seed=0)
        xy = first["xy"][i]
        qpos = np.concatenate([xy, seen[i, :13]])
        env.data.qacc_warmstart[:] = 0
        env.set_state(qpos, seen[i, 13:])
        for t in range(steps):
            obs, reward, terminated, _, info = env.step(actions[t, i])
            step = ours[t]
            np.testing.assert_allclose(step.observations[i], obs, rtol=0, atol=1e-8)
            assert step.rewards[i] == pytest.approx(reward, abs=1e-10)
            assert step.terminated[i] == terminated
            np.testing.assert_allclose(
                step.features[i],
                [
                    info["x_position"],
                    info["y_position"],
                    np.hypot(info["x_velocity"], info["y_velocity"]),
                ],
                rtol=0,
                atol=1e-8,
            )


def test_threads_do_not_change_a_bit():
    actions = np.random.default_rng(1).uniform(-1, 1, (50, 6, 8))
    runs = []
    for threads in (1, 2, 3):
        sim, _ = start(6, threads)
        runs.append([sim.step(a).observations for a in actions])
    assert np.array_equal(runs[0], runs[1])
    assert np.array_equal(runs[0], runs[2])


def test_restored_state_goes_on_with_the_same_bytes():
    sim, _ = start(4)
    actions = np.random.default_rng(2).uniform(-1, 1, (40, 4, 8))
    for a in actions[:20]:
        sim.step(a)
    saved = sim.save()
    after = [sim.step(a) for a in actions[20:]]
    other, _ = start(4)
    other.restore(saved)
    again = [other.step(a) for a in actions[20:]]
    for one, two in zip(after, again, strict=True):
        for x, y in zip(one, two, strict=True):
            assert np.array_equal(x, y)


def test_reward_follows_the_chosen_direction():
    actions = np.random.default_rng(3).uniform(-1, 1, (4, 8))
    rewards = {}
    for direction in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)):
        sim, _ = start(4, direction=direction)
        rewards[direction] = sim.step(actions).rewards
    still = 1 - 0.5 * np.square(actions).sum(axis=1)
    np.testing.assert_allclose((rewards[1.0, 0.0] + rewards[-1.0, 0.0]) / 2, still)
    np.testing.assert_allclose((rewards[0.0, 1.0] + rewards[0.0, -1.0]) / 2, still)


def test_episodes_can_start_at_states_of_a_trajectory():
    sim, seen = start(1)
    actions = np.random.default_rng(4).uniform(-1, 1, (30, 1, 8))
    steps = [sim.step(a) for a in actions]
    trajectory = Trajectory(
        np.array([seen[0], *(s.observations[0] for s in steps)]),
        actions[:, 0],
        np.array([s.rewards[0] for s in steps]),
        np.array([s.features[0] for s in steps]),
        terminated=False,
    )
    states = AntTask().states_of(trajectory)
    other, _ = start(2)
    placed = other.place(np.array([1]), states[[20]])
    np.testing.assert_array_equal(placed[1], steps[20].observations[0])
    moved = other.step(np.repeat(actions[21], 2, axis=0))
    np.testing.assert_allclose(moved.features[1, :2], steps[21].features[0, :2], atol=1e-3)


def test_a_direction_that_is_not_a_unit_vector_is_refused():
    with pytest.raises(InvalidInput, match="length 1"):
        AntTask(direction=(1.0, 1.0))


# As a kind of world


def test_tasks_of_the_ant_differ_in_direction() -> None:
    world = make(Config(steps=40, tasks=(
        TaskConfig("east"), TaskConfig("north", {"direction": [0, 1]}),
    )))  # fmt: skip
    assert [task.direction for task in world.tasks] == [(1.0, 0.0), (0.0, 1.0)]
    assert [task.name for task in world.tasks] == ["east", "north"]
    assert [task.horizon for task in world.tasks] == [40, 40]
    assert make(Config()).tasks == (AntTask(),)
    assert world.new_task({"kwargs": {"direction": [0, -1]}}).direction == (0.0, -1.0)


def test_the_whole_state_may_be_features() -> None:
    (task,) = make(Config(full_state=True)).tasks
    assert len(task.features) == 3 + task.observation_dim


@pytest.mark.parametrize(
    "task",
    [
        TaskConfig("t", {"speed": 1}),
        TaskConfig("t", reward="m:f"),
        TaskConfig("t", wrapper="m:f"),
        TaskConfig("t", {"direction": [1, 0, 0]}),
    ],
)
def test_nothing_else_can_differ(task: TaskConfig) -> None:
    with pytest.raises(InvalidInput, match="differ in kwargs"):
        make(Config(tasks=(task,)))


def test_an_ant_is_paid_for_coming_near_its_goal_and_sees_the_way_left():
    goal = np.array([3.0, 4.0])
    task = AntTask(goal=(3.0, 4.0))
    sim, plain = AntSimulator(task, 2), AntSimulator(AntTask(), 2)
    for each in (sim, plain):
        each.reset(np.arange(2), [np.random.default_rng([7, i]) for i in range(2)])
    actions = np.random.default_rng(0).uniform(-1, 1, (40, 2, 8))
    for a in actions:
        before = sim.save()["xy"]
        step, other = sim.step(a), plain.step(a)
    assert step.observations.shape == (2, task.observation_dim)
    assert np.array_equal(step.observations[:, :27], other.observations)
    np.testing.assert_allclose(step.observations[:, 27:], goal - step.features[:, :2])
    xy = sim.save()["xy"]
    away = np.linalg.norm(goal - xy, axis=1)
    forward = (xy - before)[:, 0] / 0.05
    towards = ((xy - before) * (goal - xy)).sum(axis=1) / 0.05 / away
    np.testing.assert_allclose(step.rewards - other.rewards, towards + 5 - away - forward)


def test_a_walk_to_a_goal_gives_the_states_it_reached():
    task = AntTask(goal=(3.0, 4.0))
    sim = task.simulator(1)
    seen = [sim.reset(np.arange(1), [np.random.default_rng(0)])[0]]
    step = sim.step(np.zeros((1, 8)))
    t = Trajectory(
        np.array([*seen, step.observations[0]]),
        np.zeros((1, 8)),
        step.rewards,
        step.features,
        False,
    )
    assert task.states_of(t).shape == (1, 29)


@pytest.mark.parametrize(
    "kwargs",
    [{"goal": [1, 2, 3]}, {"goal": [1.0, 2.0], "direction": [1.0, 0.0]}, {"goal": [0.0, 0.0]}],
)
def test_a_goal_is_a_place_and_not_also_a_direction(kwargs):
    with pytest.raises(InvalidInput):
        make(Config(tasks=(TaskConfig("a", kwargs),)))
