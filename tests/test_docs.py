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
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ringfence.cli.main import main

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
#: Tables to look things up in, without code to run.
REFERENCE = ("commands", "configuration", "features", "reliability", "results")
#: Lines of a page that is read from top to bottom.
LONGEST = 190
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
    assert ran or page.stem in REFERENCE, "no code on this page"
    sys.modules.pop("my_cart", None)


def test_the_readme_links_every_page_and_python_first() -> None:
    readme = (ROOT / "README.md").read_text()
    linked = re.findall(r"\(docs/([\w-]+\.md)\)", readme)
    assert linked[0] == "python.md"
    assert {page.name for page in PAGES} == set(linked)


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for wanted in (*project["dependencies"], *(d for extra in extras for d in extra)):
        name = re.split(r"[\[<>=!]", wanted)[0]
        assert re.search(rf"`{name}`", text), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_a_page_is_short() -> None:
    for page in PAGES:
        if page.stem not in REFERENCE:
            assert len(page.read_text().splitlines()) <= LONGEST, page


def test_files_that_contributors_are_sent_to_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"`((?:\w+/)+\w+\.(?:py|toml|md|lock))`", text))
    assert len(named) > 10
    for path in named:
        places = [ROOT / path, ROOT / "src" / "ringfence" / path]
        assert any(place.is_file() for place in places), path
