"""Markup is escaped by construction."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsed_pages import Page

from ringfence.disk import write_file
from ringfence.report.markup import (
    Markup,
    data_block,
    document,
    number,
    polyline,
    static,
    table,
    tag,
)


class Texts(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


# A parser may normalise control characters and line ends; names don't hold them.
PRINTABLE = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn")))


@given(PRINTABLE, PRINTABLE)
def test_text_and_attributes_come_back_as_they_were(text: str, attribute: str) -> None:
    read = Texts(tag("p", text, title=attribute))
    assert read.tags == ["p"]
    assert read.text == text
    assert read.attributes == {"title": attribute}


@given(st.recursive(PRINTABLE, lambda inner: st.lists(inner, max_size=3)))
def test_data_block_can_t_be_ended_from_within(document: object) -> None:
    block = data_block("data", {"value": document, "end": "</script><b>"})
    inside = re.fullmatch(r"<script[^>]*>(.*)</script>", block, re.DOTALL)
    assert inside
    assert "<" not in inside[1]
    assert json.loads(inside[1])["value"] == document


def test_markup_is_not_escaped_twice() -> None:
    assert tag("p", tag("b", "<"), ["a", None, Markup("<i></i>")]) == "<p><b>&lt;</b>a<i></i></p>"


def test_attributes_without_value() -> None:
    assert tag("input", checked=True, disabled=False, name=None) == "<input checked>"
    assert tag("g", data_i=1, class_="a", x=0.5) == '<g data-i="1" class="a" x="0.5"></g>'


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_exact_number_stands_beside_the_short_one(value: float) -> None:
    read = Texts(number(value))
    exact = float(read.attributes["value"] or "")
    assert exact == value
    assert math.copysign(1, exact) == math.copysign(1, value)


def test_a_path_runs_through_its_points() -> None:
    assert polyline([(0, 0.5), (1.254, -2)]) == "M0 0.5L1.25 -2"
    assert polyline([(0, 0), (1, 1)], closed=True).endswith("Z")


def test_columns_of_words_are_told_from_figures() -> None:
    drawn = table(["n", "what"], [[1, "a"]], [{"data_row": 1}], text=(1,))
    assert '<td class="text">a</td>' in drawn
    assert '<tr data-row="1"><td>1</td>' in drawn


# The document ------------------------------------------------------------------------------------


def test_a_script_comes_along_where_something_is_explored() -> None:
    for explored in (False, True):
        got = Page(document("a <title>", [tag("p", "b")], explored))
        assert got.text("title") == "a <title>"
        assert len(got.find("script")) == explored
        assert len(got.find("style")) == 1


@pytest.mark.parametrize("name", ["page.css", "explorer.js", "drawings.svg"])
def test_files_of_the_package_can_stand_in_a_page(name: str) -> None:
    text = static(name)
    assert not re.search(r"</(script|style)|https?:|@import", text)


def test_every_class_and_pattern_that_is_styled_by_name_exists() -> None:
    drawings = static("drawings.svg")
    for used in re.findall(r"url\(#(\w+)\)", static("page.css") + drawings):
        assert f'id="{used}"' in drawings


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.html", b"old")
    with pytest.raises(OSError, match=r"b/a\.html"):
        write_file(tmp_path / "b" / "a.html", b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]
