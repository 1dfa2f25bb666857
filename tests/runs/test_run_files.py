"""Atomic writes: whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringfence.runs import files
from ringfence.runs.files import remove_partials, write_file, write_folder, write_json


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "a.json"
    write_file(path, b"old")

    def full_disk(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(files.os, "fsync", full_disk)
    with pytest.raises(OSError, match="space"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_failed_folder_has_no_name(tmp_path: Path, monkeypatch) -> None:
    def full_disk(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(files.os, "fsync", full_disk)
    with pytest.raises(OSError, match="space"):
        write_folder(tmp_path / "c", {"x": b"1"})
    assert not (tmp_path / "c").exists()
    monkeypatch.undo()
    remove_partials(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_same_folder_is_left_alone_and_another_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    write_folder(folder, {"x": b"1"})
    before = folder.stat().st_ino
    write_folder(folder, {"x": b"1"})
    assert folder.stat().st_ino == before
    write_folder(folder, {"y": b"2"})
    assert [p.name for p in folder.iterdir()] == ["y"]


def test_json_refuses_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert list(tmp_path.iterdir()) == []
