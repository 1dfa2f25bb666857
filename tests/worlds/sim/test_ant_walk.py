from __future__ import annotations

import numpy as np
import pytest

from ringfence.worlds.sim.ant_walk import STEP, Pilot, Walk, controller, walk, walk_groups
from ringfence.worlds.sim.floor import ARRIVED, LATE, REACHED

NOWHERE = np.zeros((0, 2))


def star() -> list[Walk]:
    """To all four sides, from slightly different places."""
    directions = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    return [Walk(np.array([0.1 * n, 0.0]), 4.0 * d, NOWHERE) for n, d in enumerate(directions)]


def corner() -> Walk:
    return Walk(np.zeros(2), np.array([4.0, 4.0]), np.array([[4.0, 0.0]]))


def test_one_policy_walks_to_all_four_sides() -> None:
    for w, walked in zip(star(), walk(star(), horizon=200), strict=True):
        assert walked.outcome == ARRIVED
        t = walked.trajectory
        assert t.terminated
        assert np.linalg.norm(t.features[-1] - w.goal) <= REACHED
        assert (np.linalg.norm(t.features[:-1] - w.goal, axis=1) > REACHED).all()
        assert len(t.observations) == len(t) + 1
        np.testing.assert_array_equal(t.observations[1:, :2], t.features)
        np.testing.assert_allclose(t.rewards, np.exp(-np.linalg.norm(t.features - w.goal, axis=1)))


def test_the_ant_turns_within_its_cells() -> None:
    """Within 1 m of the line, where the wall of a 4 m cell is 2 m away."""
    (walked,) = walk([corner()], horizon=300)
    assert walked.outcome == ARRIVED
    x, y = walked.trajectory.features.T
    off = np.minimum(np.abs(y) + np.maximum(x - 4, 0), np.abs(x - 4) + np.maximum(-y, 0))
    assert off.max() < 1.0


def test_who_is_not_there_in_time_is_late() -> None:
    (walked,) = walk([corner()], horizon=20)
    assert walked.outcome == LATE
    assert not walked.trajectory.terminated
    assert len(walked.trajectory) == 20


def test_a_group_depends_on_nobody_else() -> None:
    """Same bytes alone, beside other groups, and in any number of threads."""
    alone = walk_groups([star()], 60, threads=1)[0]
    beside = walk_groups([[corner()], star()], 60, threads=2)[1]
    for a, b in zip(alone, beside, strict=True):
        for name in ("observations", "actions", "rewards"):
            left, right = getattr(a.trajectory, name), getattr(b.trajectory, name)
            assert left.tobytes() == right.tobytes()


def test_the_pilot_aims_back_at_its_line() -> None:
    line = Walk(np.zeros(2), np.array([10.0, 0.0]), NOWHERE)
    level = np.zeros((1, 27))
    level[0, 1] = 1.0  # the quaternion of no turn
    above, _ = Pilot([line]).steer(np.array([[3.0, 1.0]]), level)
    below, _ = Pilot([line]).steer(np.array([[3.0, -1.0]]), level)
    assert -np.pi / 2 < above[0] < 0 < below[0] < np.pi / 2


def test_the_pilot_turns_by_little_at_a_time() -> None:
    """From +x to -x in steps of SLEW, but at once near the goal."""
    far, near = (Walk(np.zeros(2), np.array([x, 0.0]), NOWHERE) for x in (50.0, 0.4))
    level = np.zeros((1, 27))
    level[0, 1] = 1.0
    turns = []
    for w in (far, near):
        pilot = Pilot([w])
        pilot.steer(np.zeros((1, 2)), level)
        direction, _ = pilot.steer(w.goal[None] + [[1.0 if w is far else 0.1, 0.1]], level)
        turns.append(abs(direction[0]))
    assert turns[0] < turns[1]
    assert turns[1] <= 2 * STEP / REACHED + 1e-9


def test_the_controller_is_small_and_complete() -> None:
    actor = controller()
    assert actor.mean(np.zeros((3, 28))).shape == (3, 8)


def test_steps_are_the_published_benchmarks() -> None:
    """The same walk in Gymnasium-Robotics' AntMaze: same numbers, step by step."""
    robotics = pytest.importorskip("gymnasium_robotics.envs.maze.ant_maze_v5")
    env = robotics.AntMazeEnv(maze_map=[[0] * 10 for _ in range(10)], reward_type="dense")
    env.reset(seed=0, options={"goal_cell": np.array([0, 9]), "reset_cell": np.array([5, 5])})
    t = walk([corner()], horizon=30)[0].trajectory
    env.goal = np.array([4.0, 4.0])
    state = t.observations[0]
    env.ant_env.set_state(state[:15], state[15:])
    for action, after, paid in zip(t.actions, t.observations[1:], t.rewards, strict=True):
        seen, reward, *_ = env.step(action)
        np.testing.assert_allclose(seen["achieved_goal"], after[:2], atol=1e-8)
        np.testing.assert_allclose(seen["observation"][:27], after[2:], atol=1e-7)
        assert reward == pytest.approx(paid, abs=1e-8)
    env.close()
