"""Scalars for TensorBoard: written where a writer is installed, all of them, once."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

from records import record as record_of
from ringfence.runs import scalars
from ringfence.runs.scalars import Scalars, find_writer


def record(update: int, **changes: Any) -> dict[str, Any]:
    """As a training reports it."""
    return asdict(record_of(update, **changes))


class Writer:
    """Remembers what it was given."""

    rows: ClassVar[list[tuple[str, float, int]]] = []
    closed = 0

    def __init__(self, folder: str) -> None:
        Path(folder).mkdir()

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.rows.append((name, value, step))

    def close(self) -> None:
        Writer.closed += 1


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> type[Writer]:
    module: Any = ModuleType("tensorboardX")
    module.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "tensorboardX", module)
    Writer.rows, Writer.closed = [], 0
    return Writer


def test_each_number_goes_to_its_step(tmp_path: Path, writer: type[Writer]) -> None:
    with Scalars(tmp_path) as write:
        write(record(1))
        write(record(2, reward=None))
    assert ("lam", 0.5, 100) in writer.rows
    assert [row for row in writer.rows if row[0] == "reward"] == [("reward", 1.0, 100)]
    assert not {"length", "update", "env_steps"} & {name for name, _, _ in writer.rows}
    assert writer.closed == 1


def test_a_resumed_training_writes_anew(tmp_path: Path, writer: type[Writer]) -> None:
    for _ in range(2):
        with Scalars(tmp_path) as write:
            write(record(1))
    assert writer.closed == 2
    with Scalars(tmp_path):  # nothing new to tell: what is there stays
        pass
    assert (tmp_path / "tensorboard").is_dir()


def test_without_a_writer_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scalars, "WRITERS", (("no_such_module", "Writer"),))
    assert find_writer() is None
    with Scalars(tmp_path) as write:
        write(record(1))
    assert list(tmp_path.iterdir()) == []


def test_event_files_of_an_installed_writer(tmp_path: Path) -> None:
    if find_writer() is None:
        pytest.skip("neither tensorboardX nor tensorboard is installed")
    with Scalars(tmp_path) as write:
        write(record(1))
    (events,) = (tmp_path / "tensorboard").iterdir()
    assert b"lam" in events.read_bytes()
