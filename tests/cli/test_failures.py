"""An unforeseen error is one line, and a file with the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringfence.cli.failures import in_one_line, printable


def test_a_traceback_is_kept_where_the_line_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RINGFENCE_CACHE", str(tmp_path))
    try:
        raise ZeroDivisionError("one\ntwo\x1b[2J")
    except ZeroDivisionError as problem:
        line = in_one_line(problem, "ringfence learn")
    (log,) = (tmp_path / "logs").iterdir()
    assert line == rf"an unforeseen ZeroDivisionError: one two\x1b[2J; its traceback is in {log}"
    assert log.read_text().startswith("ringfence learn\n\nTraceback")
    assert "test_failures.py" in log.read_text()


@pytest.mark.parametrize("cache", ["", "/dev/null/x"])
def test_where_nothing_can_be_kept_the_line_says_so(
    cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RINGFENCE_CACHE", cache)
    assert "RINGFENCE_CACHE" in in_one_line(ValueError("x"), "ringfence")


def test_nothing_that_is_printed_controls_a_terminal() -> None:
    assert printable("a\x1b[31m\u202e\nb\tc é") == "a\\x1b[31m\\u202e\nb\\tc é"
