"""What the disk refuses names the file that was meant."""

from __future__ import annotations

from errno import EFBIG, ENOSPC
from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError

from ringfence.demos import dataset as demos
from ringfence.disk import (
    SUMS,
    read_json,
    read_sealed,
    reading,
    write_document,
    write_sealed,
    writing,
)
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, Feature, TaskDemos, Trajectory


@pytest.mark.parametrize(
    ("problem", "number"),
    [
        (OSError(ENOSPC, "no space"), ENOSPC),  # as `write` says it: without a name
        (FileNotFoundError(2, "missing", ".x.partial"), 2),
        (RuntimeError("Can't close file (errno = 27, error message = 'File too large')"), EFBIG),
        (SafetensorError("I/O error: No space left on device (os error 28)"), ENOSPC),
    ],
)
def test_a_failed_write_names_what_was_to_be_written(problem: Exception, number: int) -> None:
    with pytest.raises(OSError, match="wanted") as caught, writing(Path("wanted")):
        raise problem
    assert (caught.value.errno, caught.value.filename) == (number, "wanted")


def test_other_errors_in_writing_stay_what_they_are() -> None:
    with pytest.raises(ValueError, match="wrong shape"), writing(Path("wanted")):
        raise ValueError("wrong shape")


def test_what_cannot_be_read_is_named_with_the_way_on(tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidInput, match=r"x: it can't be read .*delete it and resume"),
        reading(tmp_path / "x"),
    ):
        (tmp_path / "x").read_bytes()


def test_demonstrations_are_not_begun_on_a_full_disk(tmp_path: Path, monkeypatch) -> None:
    t = Trajectory(np.zeros((3, 1)), np.zeros((2, 1)), np.zeros(2), np.ones((2, 1)), False)
    given = Demonstrations((TaskDemos("a", (t, t), ()),), (Feature("x", "m"),), {})

    def full(path: Path) -> object:
        return type("usage", (), {"free": 30_000})

    monkeypatch.setattr(demos.shutil, "disk_usage", full)
    with pytest.raises(OSError, match=r"No space left.*demos"):
        demos.save(given, tmp_path / "demos")
    assert list(tmp_path.iterdir()) == []


def test_sums_that_name_a_file_twice_are_refused(tmp_path: Path) -> None:
    write_sealed(tmp_path / "sealed", {"a": b"one"})
    path = tmp_path / "sealed" / SUMS
    path.write_bytes(path.read_bytes().replace(b"{", b'{"a": "other", ', 1))
    with pytest.raises(InvalidInput, match="not as it was written"):
        read_sealed(tmp_path / "sealed")


def test_a_seal_under_an_altered_name_is_noticed(tmp_path: Path) -> None:
    write_document(tmp_path / "a.json", {"one": 1, "two": [2.0]})
    path = tmp_path / "a.json"
    assert read_json(path) == {"one": 1, "two": [2.0]}
    path.write_bytes(path.read_bytes().replace(b'"sha256"', b'"qha256"'))
    with pytest.raises(InvalidInput, match="'qha256' stands where 'sha256' stood"):
        read_json(path)
