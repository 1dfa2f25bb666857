"""The objects that pass between the parts: behaviours, costs, demonstrations that can't change."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from ringfence.constraints.linear import parse_inequality
from ringfence.errors import InvalidInput
from ringfence.objects import (
    Behaviour,
    Demonstrations,
    Feature,
    Finding,
    J,
    Solution,
    TaskDemos,
    Trajectory,
    behaviour_of,
    sealed,
    where,
    widened,
)
from trajectories import FEATURES, trajectory


def paid(*rewards: float, speed: float = 1.0) -> Trajectory:
    T = len(rewards)
    phi = np.column_stack([np.full(T, speed), np.arange(T)])
    return trajectory(T, rewards=np.array(rewards), features=phi)


def test_a_behaviour_is_visits_per_episode_whatever_the_order() -> None:
    pi = behaviour_of([paid(1.0, 2.0), paid(3.0), paid(1.0, 1.0, 1.0)])
    found = {tuple(phi): n for phi, n in zip(pi.features, pi.visits, strict=True)}
    assert found == pytest.approx({(1.0, 0.0): 1.0, (1.0, 1.0): 2 / 3, (1.0, 2.0): 1 / 3})
    assert (pi.reward, pi.length, pi.episodes) == (3.0, 2.0, 3)
    assert pi.reward_se == 0.0


def test_the_standard_error_is_that_of_the_mean_return() -> None:
    returns = np.array([1.0, 4.0, 7.0])
    pi = behaviour_of([paid(r) for r in returns])
    assert pi.reward_se == pytest.approx(returns.std(ddof=1) / np.sqrt(3))
    assert behaviour_of([paid(2.0)]).reward_se == 0.0
    with pytest.raises(ValueError, match="at least one trajectory"):
        behaviour_of([])


def test_the_cost_of_an_episode_is_the_sum_over_its_steps() -> None:
    """J(pi, c) by visits is the mean over episodes of the summed cost."""
    episodes = [trajectory(T, seed=T) for T in (3, 5, 8)]
    c = parse_inequality("speed <= 0.2", FEATURES)
    summed = np.mean([c.cost(t.features).sum() for t in episodes])
    assert J(behaviour_of(episodes), c) == pytest.approx(summed)


def test_the_constraint_player_is_shown_what_succeeded_if_anything_is_hidden() -> None:
    whole, rest = behaviour_of([paid(1.0), paid(9.0)]), behaviour_of([paid(9.0)])
    assert Solution({}, 0.0, whole, 0).shown is whole
    assert Solution({}, 0.0, whole, 0, succeeded=rest).shown is rest


def test_features_are_widened_by_what_each_step_led_to() -> None:
    t = trajectory(4)
    assert widened(t, 2) is t.features
    np.testing.assert_array_equal(widened(t, 5), np.hstack([t.features, t.observations[1:]]))


def test_demonstrations_cannot_be_changed_after_they_were_checked() -> None:
    mine = trajectory(4)
    held = TaskDemos("drive", (mine,), (mine,)).train[0]
    before = held.rewards.copy()
    mine.rewards[:] = 99.0
    np.testing.assert_array_equal(held.rewards, before)
    with pytest.raises(ValueError, match="read-only"):
        held.rewards[0] = 1.0
    with pytest.raises(FrozenInstanceError):
        held.terminated = True  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rewards": np.zeros((4, 1))}, r"rewards have shape \(4, 1\)"),
        ({"rewards": np.zeros(0)}, "at least one step"),
        ({"observations": np.zeros((4, 3))}, r"4 rewards need \(5, o\)"),
        ({"actions": np.zeros((3, 2))}, r"actions have shape \(3, 2\), but 4 rewards need"),
        ({"features": np.full((4, 2), np.inf)}, "features"),
        ({"features": [["fast", "slow"]] * 4}, "not an array of numbers"),
    ],
)
def test_a_trajectory_that_is_none_is_named(changes: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        sealed(replace(trajectory(4), **changes), "log 7")


def test_tasks_and_features_have_names_of_their_own() -> None:
    task = TaskDemos("drive", (trajectory(),), ())
    with pytest.raises(InvalidInput, match="drive"):
        Demonstrations((task, task), FEATURES, {})
    with pytest.raises(InvalidInput, match="speed"):
        Demonstrations((task,), (Feature("speed", "m/s"), Feature("speed", "m/s")), {})
    with pytest.raises(InvalidInput, match="at least one task"):
        Demonstrations((), FEATURES, {})
    with pytest.raises(InvalidInput, match="plain JSON"):
        Demonstrations((task,), FEATURES, {"when": object()})  # type: ignore[dict-item]


def test_trajectories_are_called_by_task_split_and_number() -> None:
    task = TaskDemos("drive", (trajectory(), trajectory()), (trajectory(),))
    names = [name for name, _ in task.labelled]
    assert names == [where("drive", "train", 0), where("drive", "train", 1),
                     where("drive", "heldout", 0)]  # fmt: skip
    assert names[2] == "task 'drive', held-out trajectory 0"


def test_a_finding_says_where_and_what() -> None:
    assert str(Finding("warning", "log 3", "it is short")) == "warning: log 3: it is short"


def test_exact_behaviour_has_no_episodes() -> None:
    pi = Behaviour(np.zeros((1, 2)), np.ones(1), 1.0, 0.0, 1.0, None)
    assert pi.episodes is None
