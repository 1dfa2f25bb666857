"""What continuous worlds have in common: checks of demonstrations, defaults, views."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, Feature, TaskDemos, Trajectory
from ringfence.worlds.ant import AntTask
from ringfence.worlds.continuous import (
    ContinuousWorld,
    check_shapes,
    check_units,
    demonstrated_states,
    is_continuous,
    length_finding,
    require_in_box,
)
from ringfence.worlds.grid import maze
from ringfence.worlds.gym import GymTask
from ringfence.worlds.world import Unknown

TASK = GymTask(
    "own_cart:make_cart", (Feature("speed", "m/s"),), steps=6, sources={"speed": 0}, label="cart"
)


def refuse(spec: Any) -> Any:
    raise AssertionError(spec)


def world(*tasks: Any, **changes: Any) -> ContinuousWorld:
    return ContinuousWorld("carts", tasks or (TASK,), ("gymnasium",), refuse, **changes)


def episode(T: int = 6, terminated: bool = False, **changes: Any) -> Trajectory:
    fields: dict[str, Any] = {
        "observations": np.zeros((T + 1, 1)),
        "actions": np.zeros((T, 1)),
        "rewards": np.zeros(T),
        "features": np.zeros((T, 1)),
    }
    return Trajectory(**{**fields, "terminated": terminated, **changes})


def demos(*names: str, **changes: Any) -> Demonstrations:
    tasks = (TaskDemos(name, (episode(**changes),), (episode(**changes),)) for name in names)
    return Demonstrations(tuple(tasks), TASK.features, {})


def test_a_single_task_needs_no_name_several_do() -> None:
    (found,) = world().check(demos("whatever"))
    assert found.severity == "ok"
    two = world(TASK, replace(TASK, label="other"))
    assert [f.severity for f in two.check(demos("cart", "other"))] == ["ok", "ok"]
    (_, wrong) = two.check(demos("cart", "third"))
    assert (wrong.severity, wrong.where) == ("error", "task 'third'")
    assert "there are: cart, other" in wrong.message


def test_episodes_that_stop_before_their_end_are_a_warning() -> None:
    d = TaskDemos("cart", (episode(), episode(4), episode(4, terminated=True)), (episode(),))
    found = length_finding(TASK, d)
    assert found.severity == "warning"
    assert found.message.startswith("1 of 4 episodes stop before 6 steps")
    assert "training trajectory 1" in found.message
    whole = TaskDemos("cart", (episode(), episode(4, terminated=True)), ())
    assert length_finding(TASK, whole).message == "4 to 6 steps, 1 episodes ended by themselves"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observations": np.zeros((7, 2))}, r"observations have shape \(7, 2\)"),
        ({"actions": np.zeros((6, 2))}, "needs numbers of shape"),
        ({"rewards": np.zeros(5)}, "rewards have shape"),
        ({"features": np.zeros((6, 3))}, "features have shape"),
        ({"features": np.full((6, 1), np.nan)}, r"features are not finite at index \(0, 0\)"),
        ({"actions": np.array([["a"]] * 6)}, "not demonstrations of this world"),
        ({"actions": np.full((6, 1), 1.1)}, r"action 0 is 1.1 at step 0, outside its box -1 to 1"),
        ({"T": 9}, "9 steps, but episodes of 'cart' have at most 6"),
    ],
)
def test_each_wrong_shape_is_named(changes: dict[str, Any], message: str) -> None:
    log = dict({"T": 6}, **changes)
    T = log.pop("T")
    length = len(log.get("rewards", np.zeros(T)))
    given = episode(T, **log) if length == T else _Log(T, episode(T, **log))
    with pytest.raises(InvalidInput, match=message):
        check_shapes(TASK, "log 3", given)


class _Log:
    """A log whose length isn't that of its rewards."""

    def __init__(self, T: int, t: Trajectory) -> None:
        self._T, self._t = T, t

    def __len__(self) -> int:
        return self._T

    def __getattr__(self, name: str) -> Any:
        return getattr(self._t, name)


def test_what_a_log_lacks_is_not_checked() -> None:
    log = _Log(6, episode())
    log.rewards = log.features = None  # type: ignore[attr-defined]
    check_shapes(TASK, "log", log)


def test_float32_actions_at_the_edge_of_the_box_are_in_it() -> None:
    require_in_box(TASK, "log", np.array([[1.0 + 1e-6], [-1.0]]))
    with pytest.raises(InvalidInput, match="record the action that was applied"):
        require_in_box(TASK, "log", np.array([[0.0], [-1.01]]))


def test_units_of_features_with_one_name_are_the_same() -> None:
    check_units(TASK, [Feature("speed", "m/s"), Feature("x", "ft")])
    with pytest.raises(InvalidInput, match="'speed' in ft/s, task 'cart' in m/s"):
        check_units(TASK, [Feature("speed", "ft/s")])


def test_one_task_is_a_game_of_its_own_several_are_the_multi_task_game() -> None:
    single, several = world().defaults({}), world(TASK, replace(TASK, label="b")).defaults({})
    assert (single["game"]["method"], several["game"]["method"]) == ("icl", "mt-icl")
    assert single["solver"]["kind"] == "ppo"
    assert single["opening"] == {"kind": "clone"}
    mine = world(solver={"env_steps": 7}).defaults({})
    assert (mine["solver"]["env_steps"], mine["solver"]["margin"]) == (7, 0.0)


def test_x_and_y_are_a_plane_and_each_feature_is_a_line() -> None:
    assert world().views() == [{"kind": "line", "columns": [0]}]
    views = world(AntTask()).views()
    assert views[0] == {"kind": "plane", "columns": [0, 1]}
    assert [v["columns"] for v in views[1:]] == [[k] for k in range(len(AntTask().features))]


def test_such_a_world_has_no_cells_and_no_truth_of_its_own() -> None:
    found = world()
    assert found.cells is None
    assert isinstance(found.truth, Unknown)
    assert found.experts == "trained"
    assert found.columns(["cart"], []) == {}


def test_tasks_with_a_collector_are_continuous() -> None:
    assert is_continuous(TASK)
    assert not is_continuous(maze().tasks[0])


def test_states_to_begin_from_are_the_ants_alone() -> None:
    ant, T = AntTask(horizon=5), 3
    walk = Trajectory(
        np.zeros((T + 1, ant.observation_dim)),
        np.zeros((T, 8)),
        np.zeros(T),
        np.ones((T, 3)),
        False,
    )
    states = demonstrated_states(ant, [walk, walk])
    assert states.shape == (2 * len(ant.states_of(walk)), 29)
    with pytest.raises(InvalidInput, match="only MuJoCo's Ant can"):
        demonstrated_states(TASK, [episode()])
