"""The pages that list commands and entries are those that the code says now."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SAID: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "reference_pages.py"))


@pytest.mark.parametrize("name", ["commands.md", "configuration.md"])
def test_a_page_says_what_the_code_says(name: str) -> None:
    page = (ROOT / "docs" / name).read_text()
    assert page == SAID["PAGES"][name](), "run: python tools/reference_pages.py"


def test_every_entry_of_the_configuration_has_a_meaning() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    entries = [line for line in page.splitlines() if re.match(r"\| `\w+` \|", line)]
    assert len(entries) > 100
    assert [line for line in entries if line.split(" | ")[-1].strip(" |") == ""] == []


def test_every_option_of_every_command_has_a_meaning() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    options = [line for line in page.splitlines() if line.startswith("| `--")]
    assert len(options) > 60
    assert [line for line in options if line.split(" | ")[-1].strip(" |") == ""] == []


def test_messages_name_options_that_there_are() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    options = {*re.findall(r"`(--[a-z-]+)", page), "--help"}
    package = ROOT / "src" / "ringfence"
    for path in package.rglob("*.py"):
        if "report" not in path.relative_to(package).parts:  # there they are names of colours
            named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", path.read_text()))
            assert named <= options, path
