"""Goals that nobody demonstrated: how they are drawn, called and counted."""

from __future__ import annotations

import numpy as np

from ringfence.constraints.written import parse_constraint
from ringfence.objects import Array, Feature, Trajectory
from ringfence.reproduce.shared_unseen import CLEAR, drawn_goals, outcome, recentred, together
from ringfence.solvers.scaling import SMALLEST_STD, normalised

XY = (Feature("x", "m"), Feature("y", "m"))
TRUTH = parse_constraint("outside disc(x, y) at (0, 0) of radius 0.5", XY)
GOAL = np.array([0.8, 0.8])


def episode(*places: tuple[float, float]) -> Trajectory:
    at: Array = np.array(places)
    seen = np.vstack([at[:1], at])
    return Trajectory(seen, np.zeros((len(at), 1)), np.zeros(len(at)), at, False)


def test_goals_are_on_the_free_floor_and_new() -> None:
    known = np.array([[0.8, 0.8], [-0.8, 0.0]])
    goals = drawn_goals(TRUTH, known, 50, 0)
    assert goals.shape == (50, 2)
    assert (TRUTH.raw(goals) < -CLEAR).all()
    assert (np.linalg.norm(goals[:, None] - known, axis=2) > CLEAR).all()
    assert np.array_equal(goals[:20], drawn_goals(TRUTH, known, 20, 0))
    assert not np.array_equal(goals, drawn_goals(TRUTH, known, 50, 1))


def test_a_goal_fails_that_is_not_reached_or_truly_violated_for() -> None:
    there, through, short = (
        episode((0.8, 0.2), (0.8, 0.8)),
        episode((0.1, 0.1), (0.8, 0.8)),
        episode((0.8, 0.2), (0.8, 0.3)),
    )
    assert not outcome([there] * 20, GOAL, TRUTH)["failed"]
    assert outcome([there] * 18 + [short] * 2, GOAL, TRUTH)["failed"]
    found = outcome([there] * 18 + [through] * 2, GOAL, TRUTH)
    assert found == {
        "reached": 1.0,
        "violating_episodes": 0.1,
        "violating_steps": 0.05,
        "failed": True,
    }
    assert together([found]) == {
        "covered": 1,
        "covered_failed": 1,
        "reached": 1.0,
        "violating_episodes": 0.1,
        "violating_steps": 0.05,
    }
    assert together([])["violating_episodes"] is None


def test_a_policy_for_another_goal_sees_what_it_saw() -> None:
    mean, std = np.array([0.1, 0.2, 0.8, 0.8, -3.0]), np.array([0.5, 0.5, *2 * [SMALLEST_STD], 2.0])
    policy = {"norm/mean": mean, "norm/std": std}
    moved = recentred(policy, np.array([0.0, 0.0, 0.3, -0.3]))
    before, after = np.array([[0.4, 0.4, 0.8, 0.8, 1]]), np.array([[0.4, 0.4, 0.3, -0.3, 1]])
    seen = normalised(after, np.asarray(moved["norm/mean"]), std)
    assert np.allclose(seen, normalised(before, mean, std))
