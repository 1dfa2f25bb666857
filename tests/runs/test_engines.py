"""Who solves: what is asked for, or words about why not."""

from __future__ import annotations

import pytest

from ringfence.errors import InvalidInput
from ringfence.runs import ray_engine
from ringfence.runs.engines import engine


def test_without_an_engine_the_workers_are_handed_on() -> None:
    with engine(3, None) as who:
        assert who == 3


def test_less_than_one_worker_is_refused() -> None:
    with pytest.raises(InvalidInput, match="--workers must be at least 1"), engine(0, None):
        pass


def test_workers_and_an_engine_exclude_each_other() -> None:
    with pytest.raises(InvalidInput, match="leave one of them out"), engine(2, "ray"):
        pass


def test_an_engine_is_closed_whatever_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Opened:
        def __init__(self, on: str, settings: object) -> None:
            done.append(on)

        def close(self) -> None:
            done.append("closed")

    monkeypatch.setattr(ray_engine, "RayEngine", Opened)
    with pytest.raises(KeyboardInterrupt), engine(1, "ray"):
        raise KeyboardInterrupt
    assert done == ["ray", "closed"]
