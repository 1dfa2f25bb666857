"""A call that doesn't come back is told once, after the stated time."""

from __future__ import annotations

import time

import pytest

from ringfence.worlds import patience
from ringfence.worlds.patience import PATIENCE, look, waiting_for


def test_a_call_that_is_not_back_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    with waiting_for("a step of cart"):
        look(time.monotonic() + PATIENCE - 5)
        assert capsys.readouterr().err == ""
        for _ in range(2):
            look(time.monotonic() + PATIENCE + 1)
        said = capsys.readouterr().err
    assert said.count("a step of cart has not come back for 61 s") == 1
    look(time.monotonic() + 10 * PATIENCE)
    assert capsys.readouterr().err == ""


def test_a_call_inside_another_is_watched_and_then_the_outer_one_again() -> None:
    with waiting_for("outer"):
        with waiting_for("inner"):
            assert [what for what, _ in patience._calls.values()] == ["inner"]
        assert [what for what, _ in patience._calls.values()] == ["outer"]
    assert not patience._calls
