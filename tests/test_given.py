"""Worlds and demonstrations as people give them in Python."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import ringfence as rf
from ringfence.errors import InvalidInput
from ringfence.given import another, describe, name_of, task_demos
from ringfence.worlds.tables import TableWorld


def corridor(horizon: int = 6) -> TableWorld:
    """Four states in a row; action 0 stays, 1 goes on; the last is never left and costs nothing."""
    P = np.zeros((4, 2, 4))
    for s in range(4):
        P[s, 0, s] = P[s, 1, min(s + 1, 3)] = 1.0
    return rf.table_world(P, {"walk": [-1.0, -1.0, -1.0, 0.0]}, horizon=horizon)


def test_an_episode_recorded_until_its_end_rests_there_until_the_horizon() -> None:
    log = {"observations": [0, 1, 2, 3], "actions": [1, 1, 1], "terminated": True}
    demos = task_demos(corridor().tasks[0], [log, log], 0.5)
    (path,) = demos.train
    assert path.observations[:, 0].tolist() == [0, 1, 2, 3, 3, 3, 3]
    assert path.rewards.tolist() == [-1, -1, -1, 0, 0, 0]
    assert path.features[:, 0].tolist() == [0, 1, 2, 3, 3, 3]
    assert not path.terminated


def test_recorded_rewards_and_features_are_kept_before_the_rest() -> None:
    log = {"observations": [0, 1, 2, 3], "actions": [1, 1, 1], "rewards": [-1, -1, -5],
           "features": [0, 1, 2]}  # fmt: skip
    (path,) = task_demos(corridor().tasks[0], [log, log], 0.5).train
    assert path.rewards.tolist() == [-1, -1, -5, 0, 0, 0]
    assert path.features[:, 0].tolist() == [0, 1, 2, 3, 3, 3]


def test_an_episode_that_stops_elsewhere_is_left_as_it_is() -> None:
    log = {"observations": [0, 1], "actions": [1]}
    (path,) = task_demos(corridor().tasks[0], [log, log], 0.5).train
    assert len(path) == 1


def test_states_and_actions_that_do_not_match_are_refused_with_their_counts() -> None:
    log = {"observations": [0, 1, 2], "actions": [1, 1, 1]}
    with pytest.raises(InvalidInput, match="3 states and 3 actions; an episode has one state more"):
        task_demos(corridor().tasks[0], [log, log], 0.5)


def test_a_function_without_a_name_makes_a_task_that_has_one() -> None:
    _, made = describe(lambda: gymnasium.make("Pendulum-v1"), {"spin:rad/s": 2}, 20)
    assert made is not None
    assert [task.name for task in made.tasks] == ["task"]
    assert name_of(lambda: None) is None


def test_another_function_is_a_new_task_with_the_worlds_features() -> None:
    _, made = describe(lambda: gymnasium.make("Pendulum-v1"), {"spin:rad/s": 2}, 20)
    assert made is not None

    def wobble() -> gymnasium.Env:
        return gymnasium.make("Pendulum-v1", g=5.0)

    _, world = another(made, wobble)
    (task,) = world.tasks
    assert (task.name, task.features, task.horizon) == ("wobble", made.features, 20)
    with pytest.raises(InvalidInput, match="describe the task by its entries"):
        another(corridor(), wobble)


def test_an_environment_object_is_found_again_by_its_id_or_else_copied() -> None:
    plain, made = describe(gymnasium.make("Pendulum-v1"), {"spin:rad/s": 2}, None)
    assert made is None
    assert plain["world"]["env"] == "Pendulum-v1"
    _, slow = describe(gymnasium.make("Pendulum-v1", g=5.0), {"spin:rad/s": 2}, None)
    assert slow is not None
    assert slow.tasks[0].horizon == 200
    assert slow.tasks[0].make().unwrapped.g == 5.0  # type: ignore[attr-defined]
    unregistered = gymnasium.make("Pendulum-v1").unwrapped
    unregistered.spec = None
    _, copied = describe(unregistered, {"spin:rad/s": 2}, 30)
    assert copied is not None
    assert copied.tasks[0].make() is not unregistered  # type: ignore[attr-defined]


def test_a_finite_environment_object_is_asked_for_its_tables() -> None:
    with pytest.raises(InvalidInput, match="FrozenLake-v1 is finite, so give its tables"):
        describe(gymnasium.make("FrozenLake-v1"), None, None)


def test_what_is_no_world_is_refused_with_what_is() -> None:
    with pytest.raises(InvalidInput, match="or one of ours; got int"):
        describe(42, None, None)
