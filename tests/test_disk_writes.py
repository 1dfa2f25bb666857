"""Atomic writes: whole or not at all, and on the disk before they have a name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ringfence import disk as files
from ringfence.disk import read_json, remove_partials, write_file, write_folder, write_json
from ringfence.errors import InvalidInput

#: Beyond the numbers that a system gives to processes.
NOBODY = 2**22 + 1


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    def refuse(*_: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(files.os, "fsync", refuse)
    return monkeypatch


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = tmp_path / "a.json"
    write_file(path, b"old")
    request.getfixturevalue("full_disk")
    with pytest.raises(OSError, match=r"space.*a\.json"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_a_failed_folder_has_no_name(tmp_path: Path, full_disk: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="space"):
        write_folder(tmp_path / "c", {"x": b"1"})
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "in" / f".c.{NOBODY}-0.partial").mkdir(parents=True)
    (tmp_path / "in" / f".c.{NOBODY}-0.partial" / "x").touch()
    (tmp_path / f".a.json.{NOBODY}-7.partial").touch()
    (tmp_path / ".a.json.partial").touch()
    (tmp_path / "in" / "kept.json").touch()
    remove_partials(tmp_path)
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")] == ["in", "in/kept.json"]


def test_the_same_folder_is_left_alone_and_another_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    write_folder(folder, {"x": b"1"})
    before = folder.stat().st_ino
    write_folder(folder, {"x": b"1"})
    assert folder.stat().st_ino == before
    write_folder(folder, {"y": b"2"})
    assert [p.name for p in folder.iterdir()] == ["y"]


def test_a_name_is_given_to_what_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file and folder is synced before it is renamed, and the folder around it after."""
    told: list[str] = []

    def sync(descriptor: int) -> None:
        told.append("sync " + Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)

    def replace(old: Any, new: Any, rename: Any = os.replace) -> None:
        told.append(f"name {Path(new).name}")
        rename(old, new)

    monkeypatch.setattr(files.os, "fsync", sync)
    monkeypatch.setattr(files.os, "replace", replace)
    write_file(tmp_path / "a.json", b"1")
    assert re.fullmatch(rf"sync \.a\.json\.{os.getpid()}-\d+\.partial", told[0])
    assert told[1:] == ["name a.json", f"sync {tmp_path.name}"]
    told.clear()
    write_folder(tmp_path / "c", {"x": b"1", "y": b"2"})
    assert told[:2] == ["sync x", "sync y"]
    assert re.fullmatch(rf"sync \.c\.{os.getpid()}-\d+\.partial", told[2])
    assert told[3:] == ["name c", f"sync {tmp_path.name}"]


def test_json_refuses_nan(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"x": float("nan")})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"{", b"\xff", b"3"])
def test_a_document_that_is_none_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"a\.json: it can't be read .*delete it and resume"):
        read_json(tmp_path / "a.json")


def test_what_a_dead_process_left_beside_a_folder_goes_and_a_living_ones_stays(
    tmp_path: Path,
) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead, living = (tmp_path / f".run.{pid}.partial" for pid in (ended.pid, os.getppid()))
    for folder in (dead, living):
        folder.mkdir()
    write_folder(tmp_path / "run", {"a": b"1"})
    assert (tmp_path / "run" / "a").read_bytes() == b"1"
    assert not dead.exists()
    assert living.is_dir()


def test_of_two_that_want_one_name_one_is_refused(tmp_path: Path) -> None:
    first, second = (files.fresh_partial(tmp_path / "run") for _ in range(2))
    assert first != second
    for n, partial in enumerate((first, second)):
        (partial / "who").write_text(str(n))
    files.claim(first, tmp_path / "run")
    with pytest.raises(InvalidInput, match="another command has made it meanwhile"):
        files.claim(second, tmp_path / "run")
    assert (tmp_path / "run" / "who").read_text() == "0"


def test_many_may_write_one_file_at_once(tmp_path: Path) -> None:
    path, contents = tmp_path / "page.html", [bytes([n]) * 100_000 for n in range(8)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda content: write_file(path, content), contents * 5))
    assert path.read_bytes() in contents
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_a_sealed_document_and_file_are_read_and_damage_is_noticed(tmp_path: Path) -> None:
    files.write_document(tmp_path / "a.json", {"x": [1, 2.5], 3: None})
    assert read_json(tmp_path / "a.json") == {"x": [1, 2.5], "3": None}
    (tmp_path / "a.json").write_text((tmp_path / "a.json").read_text().replace("2.5", "2.6"))
    with pytest.raises(InvalidInput, match="SHA-256"):
        read_json(tmp_path / "a.json")
    (tmp_path / "a.toml").write_bytes(files.sealed_toml("x = 1\n"))
    assert files.read_toml(tmp_path / "a.toml") == {"x": 1}
    (tmp_path / "a.toml").write_bytes(files.sealed_toml("x = 1\n").replace(b"= 1", b"= 2"))
    with pytest.raises(InvalidInput, match="altered after it was written"):
        files.read_toml(tmp_path / "a.toml")


@pytest.mark.parametrize("text", ["a" + ".a" * 100_000 + " = 1", "x = " + "[" * 100_000])
def test_toml_that_would_take_all_memory_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(InvalidInput, match=r"a key has 32 parts or more|nested too deeply"):
        files.read_toml(tmp_path / "a.toml")
    dots = "\n".join(["S." * 40] * 3)
    (tmp_path / "b.toml").write_text(f'map = """{dots}"""\nrow = "{"S." * 40}"\n')
    assert files.read_toml(tmp_path / "b.toml")["row"] == "S." * 40
