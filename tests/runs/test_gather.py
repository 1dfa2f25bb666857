"""Anyone's logs as demonstrations: what they lack is computed, a doubt names its episode."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import own_cart
from ringfence.demos import dataset, logs
from ringfence.errors import InvalidInput
from ringfence.objects import Finding, TaskDemos
from ringfence.runs.check import examine
from ringfence.runs.config import configure, make_world, read_user
from ringfence.runs.gather import complete, gather, split
from small_worlds import config_of, demos_of


def gathered(path: Path, deterministic: bool = True) -> list[tuple[TaskDemos, list[Finding]]]:
    config = configure(read_user(path))
    tasks: Any = make_world(config.world).tasks
    return [complete(one, deterministic) for one in gather(config.demos, path.parent, tasks)]


def only(path: Path) -> tuple[TaskDemos, str]:
    ((demos, findings),) = gathered(path)
    return demos, "\n".join(map(str, findings))


def column(demos: TaskDemos, name: str) -> np.ndarray:
    return np.concatenate([np.asarray(getattr(t, name)).ravel() for _, t in demos.labelled])


@pytest.mark.parametrize("given", ["info", "column", "function", "replay"])
def test_features_are_the_same_wherever_they_come_from(given: str, tmp_path: Path) -> None:
    good = own_cart.arrays()
    text, changes = own_cart.TOML, {"info/speed": None}
    if given == "info":
        changes = {}
    elif given == "column":
        text = text.replace('unit = "m/s"', 'unit = "m/s", column = 0')
    elif given == "function":
        text = text.replace("[demos]", 'feature_function = "own_cart:square"\n\n[demos]')
    demos, _ = only(own_cart.write(tmp_path, text, **changes))
    expected = good["info/speed"] ** 2 if given == "function" else good["info/speed"]
    np.testing.assert_allclose(column(demos, "features"), expected, rtol=1e-6)


def test_missing_rewards_are_recomputed_and_said(tmp_path: Path) -> None:
    demos, said = only(own_cart.write(tmp_path, rewards=None))
    assert "8 of 8 episodes had none: recomputed" in said
    np.testing.assert_allclose(column(demos, "rewards"), own_cart.arrays()["rewards"])


@pytest.mark.parametrize(
    ("way", "share"),
    [
        ('reward = "own_cart:slowly"', -1.0),
        ('wrapper = "own_cart:half"', 0.5),
        ("kwargs = {pay = 3.0}", 3.0),
    ],
)
def test_a_reward_function_wrapper_or_argument_makes_another_task(
    tmp_path: Path, way: str, share: float
) -> None:
    task = f"steps = 50\ntasks = [{{ name = 'a', {way} }}]"
    text = own_cart.TOML.replace("steps = 50", task, 1)
    demos, _ = only(own_cart.write(tmp_path, text, rewards=None))
    t = demos.train[0]
    np.testing.assert_allclose(t.rewards, share * t.features[:, 0], rtol=1e-6)


def test_logs_without_seeds_are_said_to_be_not_replayable(tmp_path: Path) -> None:
    _, said = only(own_cart.write(tmp_path, seeds=None))
    assert "not replayable: no seed" in said
    assert "taken as logged" in said


def test_what_only_a_replay_could_tell_needs_one(tmp_path: Path) -> None:
    path = own_cart.write(tmp_path, seeds=None, rewards=None)
    with pytest.raises(InvalidInput, match=r"can't be replayed \(no seed was rec"):
        gathered(path)
    path = own_cart.write(tmp_path, seeds=None, **{"info/speed": None})
    with pytest.raises(InvalidInput, match=r"no values for the feature 'speed'.*\(it has none\)"):
        gathered(path)
    path = own_cart.write(tmp_path, rewards=None)
    with pytest.raises(InvalidInput, match="the environment is not deterministic"):
        gathered(path, deterministic=False)


def test_a_replay_that_goes_another_way_is_a_warning(tmp_path: Path) -> None:
    ((_, findings),) = gathered(own_cart.write(tmp_path, seeds=np.arange(8) + 100))
    (replay,) = [f for f in findings if f.where.startswith("replay")]
    assert replay.severity == "warning"
    assert "5 of 5 episodes go another way" in replay.message
    assert "observation 0 differs" in replay.message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rewards", r"the reward is .* at step 0, that of task .* is "),
        ("info/speed", r"feature 'speed' is .* at step 0, in a replay it is .* m/s"),
    ],
)
def test_what_was_logged_is_what_the_environment_says(
    tmp_path: Path, name: str, words: str
) -> None:
    path = own_cart.write(tmp_path, **{name: 3.6 * own_cart.arrays()[name]})
    with pytest.raises(InvalidInput, match=words):
        gathered(path)


def test_the_last_share_is_held_out_and_one_at_least_on_either_side() -> None:
    task: Any = make_world(config_of("gym").world).tasks[0]
    episodes: Any = list(range(10))
    for count, share, expected in ((10, 0.3, 3), (2, 0.1, 1), (3, 0.5, 2)):
        assert split(task, episodes[:count], share).heldout == tuple(range(count)[-expected:])
    for count, share in ((1, 0.3), (3, 0.99)):
        with pytest.raises(InvalidInput, match=f"{count} episodes; at least 2 are needed"):
            split(task, episodes[:count], share)


def test_a_folder_of_our_own_keeps_its_split(tmp_path: Path) -> None:
    given = demos_of("gym")
    dataset.save(given, tmp_path / "demos")
    config = config_of("gym", demos={"heldout": 0.9})
    tasks: Any = make_world(config.world).tasks
    (one,) = gather(config.demos, tmp_path, tasks)
    assert (len(one.train), len(one.heldout)) == (4, 2)
    demos, _ = complete(one, deterministic=True)
    for ours, theirs in zip(demos.labelled, given.tasks[0].labelled, strict=True):
        assert ours[1].features.tobytes() == theirs[1].features.tobytes()
        assert ours[1].rewards.tobytes() == theirs[1].rewards.tobytes()


def test_a_task_without_a_path_is_named(tmp_path: Path) -> None:
    text = own_cart.TOML.replace(
        "steps = 50", 'steps = 50\ntasks = [{ name = "a" }, { name = "b" }]', 1
    ).replace('path = "logs.npz"', 'paths = { a = "logs.npz" }')
    with pytest.raises(InvalidInput, match=r"task 'b' has no demonstrations.*paths = \{ 'b' = "):
        gathered(own_cart.write(tmp_path, text))


def test_an_episode_that_is_not_finite_is_named(tmp_path: Path) -> None:
    speeds = own_cart.arrays()["info/speed"].copy()
    speeds[70] = np.nan
    path = own_cart.write(tmp_path, seeds=None, **{"info/speed": speeds})
    with pytest.raises(InvalidInput, match=r"1.*not finite"):
        gathered(path)
    assert len(logs.read("logs.npz", tmp_path)) == 8


def test_episodes_are_replayed_in_their_order_where_resets_are_remembered(tmp_path: Path) -> None:
    text = own_cart.TOML.replace("own_cart:make_cart", "own_cart:Remembering")
    logged = own_cart.recorded(own_cart.Remembering())
    demos, said = only(own_cart.write(tmp_path, text, **logged))
    assert "4 of 4 episodes, the same in their order only" in said
    assert "go another way" not in said
    kept = dict(own_cart.recorded(own_cart.Remembering()), **{"info/speed": None})
    again, _ = only(own_cart.write(tmp_path, text, **kept))  # only a replay knows the speed
    np.testing.assert_allclose(column(again, "features"), column(demos, "features"), rtol=1e-6)


@pytest.mark.parametrize(("digits", "remark"), [(4, True), (2, False)])
def test_rounding_is_a_remark_and_no_refusal(tmp_path: Path, digits: int, remark: bool) -> None:
    logged = own_cart.arrays()
    rough = {"observations": logged["observations"].round(digits)}
    _, said = only(own_cart.write(tmp_path, **rough))
    assert ("rounded when it was recorded?" in said) == remark
    assert ("go another way" in said) == (not remark)


@pytest.mark.parametrize("kind", ["grid", "ant"])
def test_logs_are_read_with_every_world(kind: str, tmp_path: Path) -> None:
    config, demos = config_of(kind), demos_of(kind)
    paths = {}
    for k, task in enumerate(demos.tasks):
        every = [t for _, t in task.labelled]
        arrays = {
            name: np.concatenate([getattr(t, name) for t in every])
            for name in ("observations", "actions", "rewards", "features")
        }
        lengths, ends = [len(t) for t in every], [t.terminated for t in every]
        np.savez(tmp_path / f"{k}.npz", lengths=lengths, terminated=ends, **arrays)
        paths[task.task] = f"{k}.npz"
    found = examine(replace(config, demos=replace(config.demos, paths=paths)), tmp_path)
    assert found.errors == ()
    assert found.demos is not None
    for own, read in zip(demos.tasks, found.demos.tasks, strict=True):
        assert [t.features.tolist() for _, t in read.labelled] == [
            t.features.tolist() for _, t in own.labelled
        ]


def test_of_a_world_that_replays_nothing_features_must_be_recorded(tmp_path: Path) -> None:
    t = demos_of("ant").tasks[0].train[0]
    one = {"observations": t.observations, "actions": t.actions, "rewards": t.rewards}
    two = {name: np.concatenate([a, a]) for name, a in one.items()}
    np.savez(tmp_path / "a.npz", lengths=[len(t)] * 2, terminated=[t.terminated] * 2, **two)
    config = config_of("ant")
    named = replace(config, demos=replace(config.demos, path="a.npz"))
    assert "record 'rewards' [N] and 'features' [N, 3]: x (m), y (m), speed (m/s)" in (
        examine(named, tmp_path).reason
    )
