from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

import own_cart
from ringfence.demos import dataset as demos
from ringfence.demos import logs
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, Feature, TaskDemos, Trajectory


def test_an_npz_is_cut_into_its_episodes(tmp_path: Path) -> None:
    lengths = np.array([2, 3])
    np.savez(
        tmp_path / "a.npz",
        lengths=lengths,
        observations=np.arange(7.0)[:, None],
        actions=np.arange(5.0)[:, None],
        terminated=np.array([True, False]),
        seeds=np.array([7, 8]),
        **{"info/speed": np.arange(5.0)},
    )
    one, two = logs.read("a.npz", tmp_path)
    assert one.observations[:, 0].tolist() == [0, 1, 2]
    assert two.observations[:, 0].tolist() == [3, 4, 5, 6]
    assert two.actions[:, 0].tolist() == two.infos["speed"].tolist() == [2, 3, 4]
    assert (one.terminated, two.terminated, one.seed, two.seed) == (True, False, 7, 8)
    assert one.rewards is None
    assert one.features is None


def test_a_minari_folder_is_read_with_its_seeds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    t = Trajectory(
        rng.normal(size=(4, 2)), rng.normal(size=(3, 1)), np.ones(3), np.ones((3, 1)), True, 11
    )
    given = Demonstrations((TaskDemos("a", (t,), (t,)),), (Feature("x", "m"),), {})
    demos.save(given, tmp_path / "d")
    assert demos.load(tmp_path / "d").tasks[0].heldout[0].seed == 11
    for place in ("d/task-00-v0", "d/task-00-v0/data"):
        found = logs.read(place, tmp_path)
        assert len(found) == 2
        assert np.array_equal(found[0].observations, t.observations)
        assert found[0].seed == 11
        assert found[0].terminated
        assert found[0].features is not None


def test_a_minari_id_is_looked_up_where_minari_keeps_its_datasets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = Trajectory(np.zeros((3, 1)), np.zeros((2, 1)), np.ones(2), np.ones((2, 1)), False)
    given = Demonstrations((TaskDemos("a", (t,), (t,)),), (Feature("x", "m"),), {})
    demos.save(given, tmp_path / "minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    found = logs.read("task-00-v0", tmp_path)
    assert [len(log) for log in found] == [2, 2]
    assert found[0].seed is None


def test_a_header_that_asks_for_all_memory_is_refused(tmp_path: Path) -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000000,), }"
    header += b" " * (118 - len(header) - 1) + b"\n"
    npy = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        file.writestr("lengths.npy", npy)
    with pytest.raises(InvalidInput, match="can't be read as"):
        logs.read("a.npz", tmp_path)


def test_what_is_not_there_is_said_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="minari download no/such/dataset-v0"):
        logs.read("no/such/dataset-v0", tmp_path)
    with pytest.raises(InvalidInput) as refused:
        logs.read("nothing.npz", tmp_path)
    assert str(tmp_path / "nothing.npz") in str(refused.value)
    assert "from the folder of the TOML file" in str(refused.value)
    assert "Minari" not in str(refused.value)


def test_another_kind_of_file_is_refused_with_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "logs.csv").write_text("1,2")
    with pytest.raises(InvalidInput, match=r"np\.savez.*docs/your-environment\.md"):
        logs.read("logs.csv", tmp_path)


def test_the_layout_of_the_example_is_the_documented_one(tmp_path: Path) -> None:
    own_cart.write(tmp_path)
    found = logs.read("logs.npz", tmp_path)
    assert [len(log) for log in found] == [own_cart.STEPS] * 8
    assert all(len(log.observations) == own_cart.STEPS + 1 for log in found)


def test_choices_may_be_recorded_without_a_column_of_their_own() -> None:
    assert logs.columns(np.array([0, 2, 1])).tolist() == [[0], [2], [1]]
    rows = np.zeros((3, 2))
    assert logs.columns(rows) is rows


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("terminated", np.full(8, np.nan), "terminated is "),
        ("terminated", np.array(["False"] * 8), "plain arrays"),
        ("terminated", np.full(8, 2), "terminated is "),
        ("seeds", np.full(8, -1), "at least 0"),
        ("lengths", np.array([2**62] * 8), "at most"),
        ("lengths", np.array([2**63 + 50] * 8, np.uint64), "at most"),
    ],
)
def test_types_are_strict(tmp_path: Path, name: str, value: np.ndarray, words: str) -> None:
    own_cart.write(tmp_path, **{name: value})
    with pytest.raises(InvalidInput, match=words):
        logs.read("logs.npz", tmp_path)


def test_a_declared_size_is_looked_at_before_anything_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(12):
            archive.writestr(f"{n}.npy", bytes(100_000_000))
    assert (tmp_path / "bomb.npz").stat().st_size < 2_000_000
    with pytest.raises(InvalidInput, match="1200000000 bytes of arrays are declared"):
        logs.read("bomb.npz", tmp_path)


def test_logs_are_shown_as_they_are(tmp_path: Path) -> None:
    own_cart.write(tmp_path)
    shown = logs.as_demonstrations(logs.read("logs.npz", tmp_path), "logs")
    assert [f.name for f in shown.features] == ["speed"]
    assert len(shown.tasks[0].train) == 8
    own_cart.write(tmp_path, **{"info/speed": None, "rewards": None})
    shown = logs.as_demonstrations(logs.read("logs.npz", tmp_path), "logs")
    assert [f.name for f in shown.features] == ["feature_0"]
