"""Demonstrations: valid by construction, the same bits back from disk, damage is named."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import minari
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ringfence.demos.dataset import content_hash, load, save
from ringfence.disk import sha256, write_document
from ringfence.errors import InvalidInput
from ringfence.objects import ARRAYS, Demonstrations, Feature, TaskDemos, Trajectory
from trajectories import FEATURES, trajectory


@pytest.fixture(scope="module")
def demos() -> Demonstrations:
    odd = np.array([[-0.0, 5e-324], [1e308, -1e-300], [0.1, 1 / 3]])
    tasks = (
        TaskDemos(
            "walk to (3,9)",
            (trajectory(4, 1), trajectory(7, 2, terminated=True)),
            (trajectory(1, 3),),
        ),
        TaskDemos("rücken", (trajectory(3, 4, features=odd),), ()),
    )
    return Demonstrations(tasks, FEATURES, {"world": "test", "seed": 3})


@pytest.fixture(scope="module")
def saved(demos: Demonstrations, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "demos"
    save(demos, folder)
    return folder


def all_trajectories(demos: Demonstrations) -> list[Trajectory]:
    return [t for task in demos.tasks for _, t in task.labelled]


# ---------------------------------------------------------------------------------- in memory


def test_arrays_are_read_only_copies() -> None:
    mine = trajectory()
    (sealed,) = TaskDemos("a", (mine,), ()).train
    for name in ARRAYS:
        before = getattr(sealed, name).copy()
        getattr(mine, name)[:] = 0
        assert np.array_equal(getattr(sealed, name), before)
        with pytest.raises(ValueError, match="read-only"):
            getattr(sealed, name)[0] = 1


def test_provenance_is_a_copy_and_plain_json() -> None:
    task = TaskDemos("a", (trajectory(),), ())
    mine: dict[str, Any] = {"seeds": [1]}
    made = Demonstrations((task,), FEATURES, mine)
    mine["seeds"].append(2)
    assert made.provenance == {"seeds": [1]}
    for bad in (float("nan"), {1, 2}):
        with pytest.raises(InvalidInput, match="plain JSON"):
            Demonstrations((task,), FEATURES, {"seed": bad})  # type: ignore[dict-item]


BAD_TRAJECTORIES: list[tuple[dict[str, Any], str]] = [
    ({"observations": np.zeros((4, 3))}, r"observations have shape \(4, 3\).*need \(5, o\)"),
    ({"observations": np.zeros(5)}, r"observations have shape \(5,\)"),
    ({"actions": np.zeros((5, 2))}, r"actions have shape \(5, 2\)"),
    ({"features": np.zeros((3, 2))}, r"features have shape \(3, 2\)"),
    ({"features": np.zeros((4, 3))}, r"3 feature columns, but 2 named.*speed, x"),
    ({"rewards": np.zeros(0)}, "at least one step; drop empty"),
    ({"rewards": np.float64(1)}, "one reward per step"),
    ({"rewards": np.array([1, 2, np.nan, 4])}, r"rewards hold nan at index \(2,\); repair"),
    ({"actions": np.full((4, 2), np.inf)}, r"actions hold inf at index \(0, 0\)"),
    ({"actions": np.array([["a", "b"]] * 4)}, "actions are not an array of numbers"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_TRAJECTORIES)
def test_bad_trajectories_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        Demonstrations(
            (TaskDemos("a", (trajectory(),), (trajectory(4, 1), trajectory(**changes))),),
            FEATURES,
            {},
        )
    assert str(caught.value).startswith("task 'a', held-out trajectory 1: ")


def test_bad_sets_are_named() -> None:
    task = TaskDemos("a", (trajectory(),), ())
    wide = TaskDemos("b", (trajectory(actions=np.zeros((4, 5))),), ())
    same = (Feature("x", "m"), Feature("x", "m"))
    with pytest.raises(InvalidInput, match="task 'a': no training trajectories"):
        TaskDemos("a", (), (trajectory(),))
    with pytest.raises(InvalidInput, match="at least one task"):
        Demonstrations((), FEATURES, {})
    with pytest.raises(InvalidInput, match="2 tasks have the name 'a'"):
        Demonstrations((task, task), FEATURES, {})
    with pytest.raises(InvalidInput, match="2 features have the name 'x'"):
        Demonstrations((task,), same, {})
    with pytest.raises(InvalidInput, match=r"task 'b'.*actions have 5 columns.*first trajectory 2"):
        Demonstrations((task, wide), FEATURES, {})


def test_every_change_of_content_changes_the_hash(demos: Demonstrations) -> None:
    first, second = demos.tasks
    changed = trajectory(4, 1)
    changed.rewards[0] = np.nextafter(changed.rewards[0], np.inf)
    ended = dataclasses.replace(first.train[0], terminated=True)
    units = (Feature("speed", "km/h"), Feature("x", "m"))
    variants = [
        Demonstrations((second, first), FEATURES, {}),
        Demonstrations((first, dataclasses.replace(second, task="b")), FEATURES, {}),
        Demonstrations(demos.tasks, units, {}),
        Demonstrations((TaskDemos("c", first.train + first.heldout, ()), second), FEATURES, {}),
        Demonstrations((dataclasses.replace(first, train=(changed,)), second), FEATURES, {}),
        Demonstrations((dataclasses.replace(first, train=(ended,)), second), FEATURES, {}),
    ]
    assert len({content_hash(d) for d in (demos, *variants)}) == len(variants) + 1
    assert content_hash(Demonstrations(demos.tasks, FEATURES, {})) == content_hash(demos)


# ------------------------------------------------------------------------------------ on disk


def test_the_same_bits_come_back(demos: Demonstrations, saved: Path) -> None:
    again = load(saved)
    assert [t.task for t in again.tasks] == ["walk to (3,9)", "rücken"]
    assert (again.features, again.provenance) == (demos.features, demos.provenance)
    assert [(len(t.train), len(t.heldout)) for t in again.tasks] == [(2, 1), (1, 0)]
    for before, after in zip(all_trajectories(demos), all_trajectories(again), strict=True):
        assert before.terminated == after.terminated
        for name in ARRAYS:
            assert getattr(before, name).tobytes() == getattr(after, name).tobytes()
            assert getattr(before, name).shape == getattr(after, name).shape
            assert not getattr(after, name).flags.writeable
    assert content_hash(again) == content_hash(demos)


@settings(max_examples=10, deadline=None)
@given(
    values=arrays(
        np.float64,
        st.tuples(st.integers(1, 5), st.just(2)),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    ),
    terminated=st.booleans(),
)
def test_any_finite_numbers_come_back(
    values: np.ndarray[Any, Any], terminated: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = trajectory(len(values), 0, terminated, features=values, actions=values)
    made = Demonstrations((TaskDemos("a", (path,), ()),), FEATURES, {})
    folder = tmp_path_factory.mktemp("any") / "demos"
    save(made, folder)
    assert content_hash(load(folder)) == content_hash(made)


def test_plain_minari_reads_each_task(
    demos: Demonstrations, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = minari.MinariDataset(saved / "task-00-v0" / "data")
    assert (dataset.total_episodes, dataset.total_steps) == (3, 4 + 7 + 1)
    assert dataset.observation_space.shape == (3,)
    assert dataset.spec.dataset_name == "task-00"
    for episode, expected in zip(dataset, all_trajectories(demos), strict=False):
        assert np.array_equal(episode.observations, expected.observations)
        assert np.array_equal(episode.rewards, expected.rewards)
        assert np.array_equal(episode.infos["features"], expected.features)
        assert episode.terminations.tolist()[-1] == expected.terminated
        assert (episode.terminations | episode.truncations).sum() == 1
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(saved))
    assert minari.load_dataset("task-01-v0").total_episodes == 1
    assert set(minari.list_local_datasets()) == {"task-00-v0", "task-01-v0"}


def test_files_hold_no_path_of_the_machine(saved: Path) -> None:
    for path in saved.rglob("*"):
        if path.is_file():
            assert str(saved.parent).encode() not in path.read_bytes(), path


def test_a_folder_that_exists_is_left_alone(demos: Demonstrations, tmp_path: Path) -> None:
    folder = tmp_path / "demos"
    folder.mkdir()
    (folder / "mine.txt").write_text("keep")
    with pytest.raises(InvalidInput, match=r"exists already; choose another folder"):
        save(demos, folder)
    assert [path.name for path in tmp_path.rglob("*")] == ["demos", "mine.txt"]


def test_a_place_that_cannot_be_written_is_named(demos: Demonstrations, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match=r"file/demos"):
        save(demos, tmp_path / "file" / "demos")


@pytest.mark.parametrize("call", [1, 2, 5, "rename"])
def test_a_failing_write_leaves_nothing(
    demos: Demonstrations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int | str
) -> None:
    count = 0

    def fail(*_: object) -> None:
        nonlocal count
        count += 1
        if count == call or call == "rename":
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename" if call == "rename" else "fsync", fail)
        with pytest.raises(OSError, match="No space left"):
            save(demos, tmp_path / "demos")
    assert list(tmp_path.iterdir()) == []
    save(demos, tmp_path / "demos")
    assert content_hash(load(tmp_path / "demos")) == content_hash(demos)


KILLED = """
import os, signal, sys
from pathlib import Path
from ringfence.demos import dataset as demos

source, target, function = sys.argv[1:]
loaded = demos.load(Path(source))
setattr(os, function, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
demos.save(loaded, Path(target))
"""


@pytest.mark.parametrize("function", ["fsync", "rename"])
def test_a_killed_write_leaves_no_folder_of_that_name(
    saved: Path, tmp_path: Path, function: str
) -> None:
    target = tmp_path / "demos"
    command = [sys.executable, "-c", KILLED, str(saved), str(target), function]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not target.exists()
    save(load(saved), target)
    assert content_hash(load(target)) == content_hash(load(saved))


def test_minari_is_imported_only_when_needed() -> None:
    code = "import sys, ringfence.demos; print({'minari', 'gymnasium', 'h5py'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert result.stdout.strip() == b"set()"


def edit_index(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / "demonstrations.json"
        index = json.loads(path.read_text())
        change(index)
        path.write_text(json.dumps(index))

    return damage


def edit_hdf5(change: Callable[[h5py.Group], Any], episode: int = 1) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        with h5py.File(folder / "task-00-v0/data/main_data.hdf5", "a") as file:
            change(file[f"episode_{episode}"])

    return damage


def rewrite(key: str, values: Any) -> Callable[[Path], None]:
    def change(group: h5py.Group) -> None:
        del group[key]
        group[key] = values

    return edit_hdf5(change)


def set_at(key: str, index: Any, value: Any) -> Callable[[Path], None]:
    return edit_hdf5(lambda group: group[key].__setitem__(index, value))


def truncate(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    return damage


def remove(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


DATA = "task-00-v0/data"
EPISODE_1 = rf"{DATA}, task 'walk to \(3,9\)', episode 1: "
DAMAGE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no folder": (lambda folder: shutil.rmtree(folder), "no such folder.*ringfence demos make"),
    "no index": (remove("demonstrations.json"), r"no demonstrations\.json"),
    "index cut": (truncate("demonstrations.json"), r"demonstrations\.json: it can't be read"),
    "index a list": (
        lambda folder: (folder / "demonstrations.json").write_text("[1]"),
        "holds no JSON object",
    ),
    "index binary": (
        lambda folder: (folder / "demonstrations.json").write_bytes(b"\xff\xfe"),
        "it can't be read",
    ),
    "future schema": (edit_index(lambda x: x.update(schema=3)), "schema 3.*upgrade Ringfence"),
    "past schema": (edit_index(lambda x: x.update(schema=0)), "schema 0.*demos make"),
    "no hash": (edit_index(lambda x: x.pop("content_hash")), "'content_hash' is missing"),
    "features not a list": (edit_index(lambda x: x.update(features="x")), "'features' is missing"),
    "feature without unit": (edit_index(lambda x: x["features"][0].pop("unit")), "'unit' is miss"),
    "a feature too few": (edit_index(lambda x: x["features"].pop()), "2 feature columns, but 1"),
    "unit edited": (edit_index(lambda x: x["features"][0].update(unit="km/h")), "was altered"),
    "task renamed": (edit_index(lambda x: x["tasks"][0].update(name="b")), "was altered"),
    "no tasks": (edit_index(lambda x: x.update(tasks=[])), "at least one task"),
    "task dropped": (edit_index(lambda x: x["tasks"].pop()), "was altered"),
    "task twice": (
        edit_index(lambda x: x["tasks"][1].update(name="walk to (3,9)")),
        r"demonstrations\.json: .*2 tasks have the name",
    ),
    "path trick": (
        edit_index(lambda x: x["tasks"][0].update(dataset="../task-00-v0")),
        "task 0 must be in 'task-00-v0'",
    ),
    "split moved": (edit_index(lambda x: x["tasks"][0].update(train=1, heldout=2)), "was altered"),
    "no training": (
        edit_index(lambda x: x["tasks"][0].update(train=0, heldout=3)),
        "at least one training",
    ),
    "count a bool": (edit_index(lambda x: x["tasks"][1].update(train=True)), "'train' is missing"),
    "episode uncounted": (edit_index(lambda x: x["tasks"][0].update(heldout=0)), "3 episodes"),
    "dataset gone": (remove("task-00-v0"), f"{DATA}/main_data.hdf5: not the file that was written"),
    "hdf5 gone": (
        remove(f"{DATA}/main_data.hdf5"),
        "main_data.hdf5: not the file that was written",
    ),
    "hdf5 cut": (truncate(f"{DATA}/main_data.hdf5"), "can't be read as HDF5"),
    "hdf5 is text": (
        lambda folder: (folder / DATA / "main_data.hdf5").write_text("hello"),
        "can't be read as HDF5",
    ),
    "metadata cut": (truncate(f"{DATA}/metadata.json"), "metadata.json: not valid JSON"),
    "NaN reward": (
        set_at("rewards", 3, np.nan),
        EPISODE_1 + r"rewards hold nan at index \(3,\)",
    ),
    "infinite feature": (
        set_at("infos/features", (2, 1), np.inf),
        EPISODE_1 + r"features hold inf at index \(2, 1\)",
    ),
    "observations short": (rewrite("observations", np.zeros((7, 3))), EPISODE_1 + "observations"),
    "actions long": (rewrite("actions", np.zeros((8, 2))), EPISODE_1 + "actions have shape"),
    "features wide": (
        rewrite("infos/features", np.zeros((7, 3))),
        EPISODE_1 + "3 feature columns, but 2 named",
    ),
    "features are text": (
        rewrite("infos/features", [b"a"] * 7),
        EPISODE_1 + "features are not an array of numbers",
    ),
    "features gone": (
        edit_hdf5(lambda group: group["infos"].pop("features")),
        EPISODE_1 + "no features; infos must hold 'features'",
    ),
    "infos gone": (edit_hdf5(lambda group: group.pop("infos")), EPISODE_1 + "no features"),
    "rewards gone": (edit_hdf5(lambda group: group.pop("rewards")), "can't be read as a Minari"),
    "empty episode": (
        edit_hdf5(
            lambda group: [
                group[key].resize(0, axis=0) for key in ("rewards", "terminations", "truncations")
            ]
        ),
        EPISODE_1 + r"rewards have shape \(0,\).*drop empty",
    ),
    "ends in the middle": (
        set_at("truncations", 2, True),
        EPISODE_1 + "an episode ends .* at its last step and at no other",
    ),
    "does not end": (set_at("terminations", 6, False), EPISODE_1 + "an episode ends"),
    "one bit": (set_at("actions", (0, 0), 0.5), "was altered after it was written"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_named(name: str, saved: Path, tmp_path: Path) -> None:
    damage, message = DAMAGE[name]
    folder = tmp_path / "demos"
    shutil.copytree(saved, folder)
    damage(folder)
    with pytest.raises(InvalidInput):
        load(folder)
    reseal(folder)  # whoever damages on purpose does so, too
    with pytest.raises(InvalidInput, match=message) as caught:
        load(folder)
    assert str(folder) in str(caught.value)


def reseal(folder: Path) -> None:
    """Sums as if the folder had been written so."""
    try:
        index = json.loads((folder / "demonstrations.json").read_text())
        del index["sha256"]
    except (OSError, ValueError, TypeError):
        return
    files = [p for p in folder.rglob("data/*") if p.is_file()]
    index["files"] = {str(p.relative_to(folder)): sha256(p.read_bytes()) for p in files}
    write_document(folder / "demonstrations.json", index)


def test_a_flipped_bit_in_any_file_is_noticed(saved: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for path in sorted(p for p in saved.rglob("*") if p.is_file()):
        content = path.read_bytes()
        for at in rng.integers(len(content), size=20):
            folder = Path(shutil.copytree(saved, tmp_path / "demos", dirs_exist_ok=True))
            flipped = bytearray(content)
            flipped[at] ^= 1 << int(rng.integers(8))
            (folder / path.relative_to(saved)).write_bytes(flipped)
            try:
                found = load(folder)
            except InvalidInput:
                continue
            assert path.name == "demonstrations.json"  # white space, or the seal's own name
            assert found.provenance == load(saved).provenance
            assert content_hash(found) == content_hash(load(saved))


def test_a_folder_of_schema_1_is_read_by_its_content(saved: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(saved, tmp_path / "demos"))
    index = json.loads((folder / "demonstrations.json").read_text())
    old = {name: value for name, value in index.items() if name not in ("files", "sha256")}
    (folder / "demonstrations.json").write_text(json.dumps({**old, "schema": 1}))
    assert content_hash(load(folder)) == content_hash(load(saved))
    set_at("actions", (0, 0), 0.5)(folder)
    with pytest.raises(InvalidInput, match="was altered after it was written"):
        load(folder)


def test_minari_recovers_an_environment_with_a_registered_id(tmp_path: Path) -> None:
    t = trajectory(4, 1)
    world = {"kind": "gym", "env": "Pendulum-v1", "kwargs": {"g": 5.0}, "steps": 50}
    for name, provenance in (("known", {"world": world}), ("strange", {"world": {"env": "a:b"}})):
        made = Demonstrations((TaskDemos("a", (t, t), ()),), FEATURES, provenance)  # type: ignore[arg-type]
        save(made, tmp_path / name)
    env = minari.MinariDataset(tmp_path / "known/task-00-v0/data").recover_environment()
    assert (env.spec.id, env.unwrapped.g, env.spec.max_episode_steps) == ("Pendulum-v1", 5.0, 50)
    with pytest.raises(ValueError, match="env_spec is None"):
        minari.MinariDataset(tmp_path / "strange/task-00-v0/data").recover_environment()
