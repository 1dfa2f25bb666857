"""The document around a page, and its files of the package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from parsed_pages import Page

from ringfence.disk import write_file
from ringfence.report import shell
from ringfence.report.markup import tag


def test_a_script_comes_along_where_something_is_explored() -> None:
    for explored in (False, True):
        got = Page(shell.document("a <title>", [tag("p", "b")], explored))
        assert got.text("title") == "a <title>"
        assert len(got.find("script")) == explored
        assert len(got.find("style")) == 1


@pytest.mark.parametrize("name", ["page.css", "explorer.js", "drawings.svg"])
def test_files_of_the_package_can_stand_in_a_page(name: str) -> None:
    text = shell.static(name)
    assert not re.search(r"</(script|style)|https?:|@import", text)


def test_every_class_and_pattern_that_is_styled_by_name_exists() -> None:
    drawings = shell.static("drawings.svg")
    for used in re.findall(r"url\(#(\w+)\)", shell.static("page.css") + drawings):
        assert f'id="{used}"' in drawings


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.html", b"old")
    with pytest.raises(OSError, match=r"b/a\.html"):
        write_file(tmp_path / "b" / "a.html", b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]
