from __future__ import annotations

import numpy as np
import pytest

from ringfence.constraints.linear import LinearConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import J, Problem
from ringfence.solvers.goal_ppo import GoalPPO, demonstrated_states
from ringfence.solvers.ppo import PPOConfig
from ringfence.worlds.point_maze import PointTask, follow
from ringfence.worlds.sim.floor import FEATURES, Layout

LAYOUT = Layout((1, 3))
TASKS = [PointTask(LAYOUT, ((0, 1),), (goal,), horizon=30) for goal in ((0, 0), (0, 2))]
CONFIG = PPOConfig(
    env_steps=100_000,
    evaluation_episodes=4,
    test_episodes=0,
)


def problems(offset: float) -> list[Problem]:
    """x <= offset, with limit 0."""
    c = LinearConstraint(FEATURES, np.array([1.0, 0.0]), offset)
    return [Problem(task, c, 0.0, None, (0, 1, k)) for k, task in enumerate(TASKS)]


def test_one_policy_goes_to_each_goal() -> None:
    left, right = GoalPPO(CONFIG, episodes=4).solve_all(problems(offset=100.0))
    for solution, x in ((left, -4.0), (right, 4.0)):
        pi = solution.behaviour
        assert pi.episodes == 4
        near = np.abs(pi.features[:, 0] - x) < 2
        assert pi.visits[near].sum() > 15  # of 30 steps


def test_the_learned_cost_keeps_it_away() -> None:
    """x <= 1: the right goal, at x = 4, is out of bounds; without the cost it is reached."""
    _, right = GoalPPO(CONFIG, episodes=4).solve_all(problems(offset=1.0))
    assert J(right.behaviour, problems(1.0)[1].constraint) < 3  # 30 * log(1 + 3) if it ignored it
    assert right.lam > 0


def test_one_constraint_for_all() -> None:
    with pytest.raises(InvalidInput, match="one constraint and one limit"):
        GoalPPO(CONFIG).solve_all([problems(0.0)[0], problems(1.0)[1]])


def test_states_of_demonstrations_are_positions_with_their_goals() -> None:
    goal = LAYOUT.centre((0, 2))
    t = follow(np.array([[0.0, 0.0], goal]), goal, horizon=9)
    states = demonstrated_states([t.observations], every=1)
    np.testing.assert_allclose(states[:, 2:], np.broadcast_to(goal, (10, 2)))
    np.testing.assert_allclose(states[1:, :2], t.features)
