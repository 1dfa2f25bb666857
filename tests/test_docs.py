"""The pages' code runs, in order, and prints what the pages say; their links lead somewhere.

A ```python block runs in its page's namespace (one that begins with "# name.py" is written to
that file, as a ```toml block is); a ```text block after it is what it prints, "..." standing for
anything. In a ```console block each "$ ringfence ..." runs, and the lines after it are its output.
"""

from __future__ import annotations

import doctest
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from ringfence.cli.main import main

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def same(expected: str, printed: str) -> None:
    if not doctest.OutputChecker().check_output(expected, printed, FLAGS):
        pytest.fail(f"the page says\n{expected}\nbut it prints\n{printed}")


def run_python(code: str, page: Path, names: dict[str, Any]) -> None:
    file = re.match(r"# (\w+\.py)\n", code)
    if file:
        Path(file[1]).write_text(code)
    else:
        exec(compile(code, page.name, "exec"), names)


def run_console(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, expected = command.partition("\n")
        program, *arguments = shlex.split(line)
        assert program == "ringfence", line
        assert main(arguments) == 0, capsys.readouterr().err
        same(expected, capsys.readouterr().out)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_pages_code_does_what_the_page_says(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    names: dict[str, Any] = {"__name__": "page"}
    ran = 0
    for language, content in BLOCK.findall(page.read_text()):
        if language == "python":
            capsys.readouterr()
            run_python(content, page, names)
            ran += 1
        elif language == "toml":
            Path(content.split()[1]).write_text(content)
        elif language == "text":
            same(content, capsys.readouterr().out)
        elif language == "console":
            run_console(content, capsys)
            ran += 1
    assert ran, "no code on this page"
    sys.modules.pop("my_cart", None)


def test_there_are_five_pages_and_the_readme_links_each() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(PAGES) == 5
    for page in PAGES:
        assert f"(docs/{page.name})" in readme


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_short(page: Path) -> None:
    assert len(page.read_text().splitlines()) <= 160
