"""Markup is escaped by construction."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from ringfence.report.markup import Markup, data_block, number, polyline, table, tag


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
