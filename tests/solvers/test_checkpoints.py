"""Checkpoints: whole, or named."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ringfence.constraints.linear import parse_inequality
from ringfence.errors import InvalidInput
from ringfence.objects import Problem
from ringfence.solvers import checkpoints
from ringfence.solvers.checkpoints import Checkpoint
from ringfence.worlds.ant import AntTask


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert checkpoints.read(tmp_path / "c") is None
    checkpoints.write(tmp_path / "c", {"x": np.arange(3.0)}, {"update": 7})
    found = checkpoints.read(tmp_path / "c")
    assert found is not None
    assert (found[0]["x"].tolist(), found[1]) == ([0.0, 1.0, 2.0], {"update": 7})


@pytest.mark.parametrize("name", ["state.json", "state.safetensors"])
def test_of_a_damaged_checkpoint_nothing_is_believed(tmp_path: Path, name: str) -> None:
    checkpoints.write(tmp_path / "c", {"x": np.arange(3.0)}, {"update": 7})
    path = tmp_path / "c" / name
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert checkpoints.read(tmp_path / "c") is None
    path.unlink()
    assert checkpoints.read(tmp_path / "c") is None


class Moments(NamedTuple):
    count: np.ndarray
    sums: dict[str, np.ndarray]


@dataclass(frozen=True)
class Settings:
    rate: float = 0.1
    checkpoint_every: int = 5


@dataclass(frozen=True, eq=False)
class State:
    weights: np.ndarray
    moments: tuple[Any, ...]
    best: State | None = None


def checkpoint(folder: Path | None, **config: Any) -> Checkpoint:
    task = AntTask()
    constraint = parse_inequality("speed <= 0.75", task.features)
    return Checkpoint(folder, Problem(task, constraint, 20.0, None, (0,)), Settings(**config))


def test_state_comes_back_as_the_objects_it_was(tmp_path: Path) -> None:
    moments = Moments(np.array(3, np.int32), {"w": np.arange(4, dtype=np.float32)})
    best = State(np.eye(2), ())
    state = State(np.arange(6.0).reshape(2, 3).T, (1, (moments, None)), best)
    place = checkpoint(tmp_path / "c")
    assert place.load((State, Moments)) is None
    place.save(state=state, records=[{"lam": 0.1 + 0.2}, {"lam": None}])
    found = place.load((State, Moments))
    assert found is not None
    assert found["records"] == [{"lam": 0.1 + 0.2}, {"lam": None}]
    again = found["state"]
    assert np.array_equal(again.weights, state.weights)
    assert again.moments[0] == 1
    back, nothing = again.moments[1]
    assert nothing is None
    assert isinstance(back, Moments)
    assert (back.count, back.count.dtype, back.count.shape) == (3, np.int32, ())
    assert back.sums["w"].dtype == np.float32
    assert isinstance(again.best, State)
    assert again.best.best is None


def test_only_the_kinds_that_are_named_are_made(tmp_path: Path) -> None:
    checkpoint(tmp_path / "c").save(state=State(np.eye(2), ()))
    with pytest.raises(InvalidInput, match=r"can't be read .'State'"):
        checkpoint(tmp_path / "c").load((Moments,))


def test_what_determines_the_result_marks_a_checkpoint(tmp_path: Path) -> None:
    place = checkpoint(tmp_path / "c")
    place.save(update=1)
    assert checkpoint(tmp_path / "c", checkpoint_every=7).load(()) == {"update": 1}
    start = {"actor/w0": np.zeros(2)}
    for other in (
        checkpoint(tmp_path / "c", rate=0.2),
        replace(place, problem=replace(place.problem, seed=(1,))),
        replace(place, problem=replace(place.problem, start=start)),
        replace(place, problem=replace(place.problem, states=np.zeros((1, 29)))),
    ):
        with pytest.raises(InvalidInput, match="another problem, configuration or version"):
            other.load(())


def test_without_a_folder_nothing_is_due() -> None:
    assert not checkpoint(None).due(5)
    assert checkpoint(None).load(()) is None
    assert [n for n in range(1, 12) if checkpoint(Path("c")).due(n)] == [5, 10]
