"""What tests of the command have in common: how it is asked, and one good specimen of each kind of
input."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ringfence.cli.main import main
from small_worlds import MAP

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Calls the command; returns its exit code, and what it printed."""

    def ask(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        return code, out, err

    return ask


def specimens(folder: Path) -> None:
    """small.txt, demos (of it) and run (on them)."""
    folder.mkdir()
    (folder / "small.txt").write_text("\n".join(MAP) + "\n")
    small = ["--world", str(folder / "small.txt")]
    few = ["--paths", "2", "--heldout", "1"]
    assert main(["demos", "make", *small, *few, "--out", str(folder / "demos")]) == 0
    demos = ["--demos", str(folder / "demos")]
    assert main(["learn", *small, *demos, "--out", str(folder / "run")]) == 0
