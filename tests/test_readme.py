"""The README's code runs, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ringfence.cli.main import parser

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_game_from_python_learns_the_maze(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(code.strip().splitlines()) <= 11
    exec(compile(code, "README.md", "exec"), {})
    lines = capsys.readouterr().out.strip().splitlines()
    assert "row 4-9 x col 6-8" in lines[-1]


def test_linked_files_are_there() -> None:
    for path in re.findall(r"\]\(([^)]+)\)|`(results/[^`]+)`|`(src/[^`]+)`", README):
        assert (ROOT / "".join(path)).exists(), path


def test_every_command_is_one() -> None:
    top = parser()
    (commands,) = [a for a in top._actions if hasattr(a, "choices") and a.choices]
    named = set(re.findall(r"`ringfence ([a-z]+)", README))
    assert named == set(commands.choices)  # type: ignore[arg-type]
