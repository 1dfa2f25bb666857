from __future__ import annotations

import numpy as np

from ringfence.worlds.point_maze import STRIDE, PointSimulator, PointTask, follow, point_reward
from ringfence.worlds.sim.floor import CELL, Layout
from ringfence.worlds.sim.rollouts import CollectorSpec

TASK = PointTask(Layout((3, 4)), ((0, 0), (2, 0)), ((0, 3), (2, 3)))


def test_episodes_start_and_aim_at_the_tasks_cells() -> None:
    simulator = PointSimulator(TASK, 50)
    seen = simulator.reset(np.arange(50), [np.random.default_rng(n) for n in range(50)])
    starts = {tuple(c) for c in TASK.layout.cell(10 * seen[:, :2])}
    goals = {tuple(c) for c in TASK.layout.cell(10 * seen[:, 2:4])}
    assert starts == set(TASK.starts)
    assert goals == set(TASK.goals)
    np.testing.assert_allclose(seen[:, 4:], seen[:, 2:4] - seen[:, :2])


def test_a_point_moves_by_its_action_and_stops_at_the_edge() -> None:
    simulator = PointSimulator(TASK, 2)
    goal = TASK.layout.centre((0, 3))
    simulator.place(np.arange(2), np.array([[0.0, 0.0, *goal], [7.9, 0.0, *goal]]))
    step = simulator.step(np.array([[1.0, -0.5], [1.0, 0.0]]))
    np.testing.assert_allclose(step.features, [[STRIDE, -0.5 * STRIDE], [2 * CELL, 0.0]])
    np.testing.assert_allclose(step.rewards, point_reward(step.features, goal))


def test_collected_chunks_do_not_depend_on_interruptions() -> None:
    policy = {
        "actor/w0": np.ones((7, 2), np.float32),
        "actor/b0": np.zeros(2, np.float32),
        "actor/log_std": np.zeros(2, np.float32),
        "norm/mean": np.zeros(7),
        "norm/std": np.ones(7),
    }
    spec = CollectorSpec(4, lambda phi: np.zeros(len(phi)), (0,))
    whole = TASK.collector(spec)
    first, second = whole.collect(policy, 40, 0), whole.collect(policy, 40, 1)
    stopped = TASK.collector(spec)
    stopped.collect(policy, 40, 0)
    resumed = TASK.collector(spec)
    resumed.restore(stopped.save())
    again = resumed.collect(policy, 40, 1)
    assert again.rewards.tobytes() == second.rewards.tobytes()
    assert first.rewards.tobytes() != second.rewards.tobytes()


def test_an_expert_walks_its_corners_and_stays() -> None:
    line = np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 2.0]])
    t = follow(line, line[-1], horizon=12)
    assert np.abs(np.diff(t.observations[:, :2] * 10, axis=0)).max() <= STRIDE + 1e-9
    np.testing.assert_allclose(t.features[2], [3.0, 0.0])
    np.testing.assert_allclose(t.features[4:], np.broadcast_to([3.0, 2.0], (8, 2)))
    np.testing.assert_allclose(t.rewards[4:], 1.0)
