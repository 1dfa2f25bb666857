"""Worlds and demonstrations as people give them in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import minari
import numpy as np
import pytest

import own_cart
import ringfence as rf
from own_cart import Cart
from ringfence.demos import dataset
from ringfence.errors import InvalidInput
from ringfence.given import (
    another,
    as_demonstrations,
    describe,
    gym_features,
    name_of,
    task_demos,
)
from ringfence.objects import Demonstrations, Trajectory
from ringfence.runs.config import configure, make_world, tagged
from ringfence.worlds.tables import TableWorld
from ringfence.worlds.world import World


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


# Worlds ------------------------------------------------------------------------------------------


def test_a_word_a_path_and_a_file_are_worlds(tmp_path: Path) -> None:
    assert describe("maze", None, None)[0]["world"]["kind"] == "grid"
    (tmp_path / "small.txt").write_text("S#0\n...\n")
    assert describe(tmp_path / "small.txt", None, None)[0]["world"]["name"] == "small"
    table, made = describe("gym:own_cart:make_cart", ["speed:m/s"], 20)
    assert made is None
    assert table["world"] == {
        "kind": "gym",
        "env": "own_cart:make_cart",
        "steps": 20,
        "features": [{"name": "speed", "unit": "m/s"}],
    }


def test_functions_in_a_mapping_are_found_again_by_their_names() -> None:
    makers = {"a": own_cart.make_cart, "b": own_cart.Cart, "c": own_cart.make_cart}
    document, made = describe(makers, ["speed:m/s"], 20)
    assert made is None
    named = [{"name": "a"}, {"name": "b", "env": "own_cart:Cart"}, {"name": "c"}]
    assert document["world"]["tasks"] == named
    assert document["world"]["env"] == "own_cart:make_cart"
    world = make_world(configure(document).world)
    assert [(task.name, task.horizon) for task in world.tasks] == [("a", 20), ("b", 20), ("c", 20)]
    assert world.tasks[1].env == "own_cart:Cart"  # type: ignore[attr-defined]
    _, nameless = describe({**makers, "d": lambda: own_cart.Cart()}, ["speed:m/s"], 20)
    assert nameless is not None


def test_a_table_of_a_configuration_is_a_world() -> None:
    assert describe({"kind": "ant", "steps": 30}, None, None) == (
        {"world": {"kind": "ant", "steps": 30}},
        None,
    )


def test_a_world_of_ours_is_described_by_its_settings() -> None:
    document, made = describe(corridor(), None, None)
    assert made is None
    again = make_world(tagged("test", "world", document["world"]))
    assert again.tasks[0].mdp.reward.tolist() == corridor().tasks[0].mdp.reward.tolist()  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match="this world has its own"):
        describe(corridor(), ["speed"], None)


def test_a_function_with_a_name_is_found_again_by_it() -> None:
    assert name_of(own_cart.make_cart) == "own_cart:make_cart"
    assert name_of(Cart) == "own_cart:Cart"
    assert name_of("own_cart:make_cart") == "own_cart:make_cart"
    document, made = describe({"cart": own_cart.make_cart}, ["speed:m/s"], 20)
    assert made is None
    assert document["world"]["env"] == "own_cart:make_cart"
    assert document["world"]["tasks"] == [{"name": "cart"}]


def test_what_another_process_would_not_find_has_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def closure() -> Cart:
        return Cart()

    class Callable:
        def __call__(self) -> Cart:
            return Cart()

    for maker in (closure, lambda: Cart(), Cart().reset, Callable(), print):
        assert name_of(maker) is None, maker
    original = own_cart.make_cart
    monkeypatch.setattr(own_cart, "make_cart", lambda: None)  # the name is another's now
    assert name_of(original) is None
    monkeypatch.setattr(original, "__module__", "__main__")  # of a script, or a notebook
    assert name_of(original) is None
    monkeypatch.setattr(original, "__module__", "no_such_module")
    assert name_of(original) is None


def test_several_functions_are_tasks_of_one_world() -> None:
    makers = {"one": lambda: own_cart.Cart(), "two": "own_cart:make_cart"}
    document, made = describe(makers, ["speed:m/s"], 20)
    assert document["world"]["kind"] == "python"
    assert "one, two" in document["world"]["description"]
    assert made is not None
    assert [task.name for task in made.tasks] == ["one", "two"]


def test_environments_without_features_are_asked_for_them() -> None:
    with pytest.raises(InvalidInput, match=r"features=\['speed:m/s'\]"):
        describe(own_cart.make_cart, None, 20)


def test_a_function_of_features_is_kept_by_name_or_as_it_is() -> None:
    features: dict[str, Any] = {"names": ["square:m2/s2"], "function": own_cart.square}
    document, made = describe(own_cart.make_cart, features, 20)
    assert made is None
    assert document["world"]["feature_function"] == "own_cart:square"
    assert make_world(configure(document).world).features[0].unit == "m2/s2"
    features["function"] = lambda before, actions, after: after[:, :1] ** 2
    _, made = describe(own_cart.make_cart, features, 20)
    assert made is not None


@pytest.mark.parametrize(
    ("given", "declared"),
    [
        (["speed"], {"name": "speed", "unit": "1"}),
        (["speed:m/s"], {"name": "speed", "unit": "m/s"}),
        (["speed:m/s=0"], {"name": "speed", "unit": "m/s", "column": 0}),
        (["speed:m/s=velocity"], {"name": "speed", "unit": "m/s", "info": "velocity"}),
        ({"speed:m/s": 0}, {"name": "speed", "unit": "m/s", "column": 0}),
        ({"speed:m/s": "velocity"}, {"name": "speed", "unit": "m/s", "info": "velocity"}),
        ({"speed": None}, {"name": "speed", "unit": "1"}),
        ({"names": ["speed:m/s"]}, {"name": "speed", "unit": "m/s"}),
    ],
)
def test_features_are_declared_as_names_with_units_and_places(given: Any, declared: Any) -> None:
    assert gym_features(given) == {"features": [declared]}


# Demonstrations ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cart() -> World:
    document, _ = describe({"cart": own_cart.make_cart}, ["speed:m/s"], own_cart.STEPS)
    return make_world(configure(document).world)


def shown(given: Any, world: World) -> Demonstrations:
    found = as_demonstrations(given, world, 0.3)
    assert found is not None
    return found


def recorded(count: int = 8, **changes: Any) -> list[dict[str, Any]]:
    """Drivers' episodes as mappings of arrays."""
    given, T = own_cart.arrays((own_cart.LIMIT,) * count), own_cart.STEPS
    cut = {"observations": T + 1, "actions": T, "rewards": T}
    return [
        {
            **{name: given[name][n * size : (n + 1) * size] for name, size in cut.items()},
            "infos": {"speed": given["info/speed"][n * T : (n + 1) * T]},
            "seed": n,
            **changes,
        }
        for n in range(count)
    ]


def require_same(one: Demonstrations, two: Demonstrations) -> None:
    assert [d.task for d in one.tasks] == [d.task for d in two.tasks]
    for a, b in zip(one.tasks, two.tasks, strict=True):
        assert (len(a.train), len(a.heldout)) == (len(b.train), len(b.heldout))
        for (_, s), (_, t) in zip(a.labelled, b.labelled, strict=True):
            for name in ("observations", "actions", "rewards", "features"):
                np.testing.assert_allclose(getattr(s, name), getattr(t, name), atol=1e-6)


def test_arrays_a_file_and_minari_say_the_same(cart: World, tmp_path: Path) -> None:
    by_arrays = shown({"cart": recorded()}, cart)
    assert (len(by_arrays.tasks[0].train), len(by_arrays.tasks[0].heldout)) == (6, 2)
    require_same(shown(recorded(), cart), by_arrays)  # of the only task
    own_cart.write(tmp_path)
    require_same(shown({"cart": tmp_path / "logs.npz"}, cart), by_arrays)
    dataset.save(by_arrays, tmp_path / "demos")
    opened = minari.MinariDataset(tmp_path / "demos" / "task-00-v0" / "data")
    require_same(shown({"cart": opened}, cart), by_arrays)
    require_same(shown(opened, cart), by_arrays)


def test_what_is_demonstrations_already_is_left_as_it_is(cart: World) -> None:
    by_arrays = shown({"cart": recorded()}, cart)
    assert shown(by_arrays, cart) is by_arrays
    (task,) = by_arrays.tasks
    assert shown({"cart": task}, cart).tasks == (task,)
    trajectories: list[Trajectory] = [*task.train, *task.heldout]
    require_same(shown({"cart": trajectories}, cart), by_arrays)


def test_what_an_environment_says_need_not_be_recorded(cart: World) -> None:
    """With seeds, a replay knows rewards and features."""
    bare = [{k: e[k] for k in ("observations", "actions", "seed")} for e in recorded()]
    require_same(shown(bare, cart), shown(recorded(), cart))


def test_features_of_one_column_may_be_a_flat_array(cart: World) -> None:
    flat = [{**e, "features": e["infos"]["speed"], "infos": {}} for e in recorded()]
    require_same(shown(flat, cart), shown(recorded(), cart))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bus": []}, "task 'bus': this world has cart"),
        ({"cart": recorded(1)}, "1 episodes; at least 2"),
        ({"cart": [3, 4]}, "task 'cart', episode 0: a int; give a mapping of arrays"),
        ({"cart": [{"actions": [[0.0]]}]}, "episode 0: no 'observations'; it has actions"),
        ({"cart": [{}]}, "it has nothing"),
        (3.0, "got float"),
        ({"cart": recorded(actions=np.zeros((50, 2)))}, r"actions have shape \(50, 2\)"),
        ({"cart": "nowhere.npz"}, "no such file"),
    ],
)
def test_what_is_no_demonstration_is_refused(given: Any, words: str, cart: World) -> None:
    with pytest.raises(InvalidInput, match=words):
        shown(given, cart)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ({"observations": [0, 4], "actions": [1]}, "state 4 at step 1 is none of 0 to 3"),
        ({"observations": [0, 0.5], "actions": [1]}, "state 0.5 at step 1 is none of 0 to 3"),
        ({"observations": [0, 1], "actions": [2]}, "action 2 at step 0 is none of 0 to 1"),
        ({"observations": [0, 1], "actions": [-1]}, "action -1 at step 0 is none of 0 to 1"),
    ],
)
def test_states_and_actions_are_those_of_the_tables(log: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        task_demos(corridor().tasks[0], [log, log], 0.5)


def test_one_path_of_a_table_is_too_few() -> None:
    log = {"observations": [0, 1], "actions": [1]}
    with pytest.raises(InvalidInput, match="1 episodes; at least 2 are needed, one to learn from"):
        shown(log, corridor())
