"""The README's code runs, what it names is there, and it is short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ringfence.cli.main import parser

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_call_from_python_learns_the_maze(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})
    learned, evidence, new = capsys.readouterr().out.strip().splitlines()
    assert "row 4-9 x col 6-8" in learned
    assert "'implicated': 37" in evidence
    assert new.split()[0] == "True"
    assert float(new.split()[1]) > 0.999
    assert float(new.split()[2]) == 0
    assert Path("page.html").is_file()


def test_it_has_at_most_1200_words_and_ten_rows_of_results() -> None:
    assert len(README.split()) <= 1200
    rows = [line for line in README.splitlines() if line.startswith("| ")]
    assert len(rows) <= 1 + 10


def test_the_two_commands_are_there() -> None:
    assert "\npython3 start.py quickstart\n" in README
    assert "\npython3 start.py test\n" in README


def test_linked_files_are_there() -> None:
    for path in re.findall(r"\]\(([^)]+)\)|`(results/[^`]+)`|`(src/[^`]+)`", README):
        assert (ROOT / "".join(path)).exists(), path


def test_every_command_is_one() -> None:
    top = parser()
    (commands,) = [a for a in top._actions if hasattr(a, "choices") and a.choices]
    named = set(re.findall(r"`ringfence ([a-z]+)", README))
    assert named <= set(commands.choices)  # type: ignore[arg-type]
