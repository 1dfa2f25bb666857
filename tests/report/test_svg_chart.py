"""Line charts: round axes, honest places for numbers, labels that don't hide each other."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.report.draw.svg_chart import (
    BOTTOM,
    HEIGHT,
    LABEL_GAP,
    TOP,
    Series,
    line_chart,
    nice_ticks,
    tick_texts,
)

FLOATS = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e6))
def test_ticks_span_the_values_and_are_few(low: float, span: float) -> None:
    ticks = nice_ticks(low, low + span)
    assert ticks[0] <= low + 1e-6
    assert ticks[-1] >= low + span - 1e-6 * span
    assert 2 <= len(ticks) <= 7
    steps = [b - a for a, b in pairwise(ticks)]
    assert max(steps) == pytest.approx(min(steps), rel=1e-6)


def test_ticks_are_told_apart() -> None:
    assert tick_texts((32.66, 32.67, 32.68)) == ["32.66", "32.67", "32.68"]
    assert tick_texts((0.0, 10.0, 20.0)) == ["0", "10", "20"]


def heights(svg: str, kind: str) -> list[float]:
    """Where the circles of a series stand."""
    group = re.search(rf'<g class="series {kind}">(.*?)</g>', svg)
    assert group
    return [float(y) for y in re.findall(r'cy="([-\d.]+)"', group[1])]


@given(st.lists(FLOATS, min_size=1, max_size=8))
def test_higher_values_stand_higher_and_inside(values: list[float]) -> None:
    svg = line_chart("a", "", [Series("a", "learner", values)], 1)
    places = heights(svg, "learner")
    assert all(TOP - 0.1 <= y <= HEIGHT - BOTTOM + 0.1 for y in places)
    order = sorted(range(len(values)), key=lambda n: values[n])
    assert all(places[a] >= places[b] - 0.011 for a, b in pairwise(order))


def test_labels_are_kept_apart() -> None:
    same = [Series(name, "learner", [1.0, 2.0]) for name in "abcd"]
    found = re.findall(
        r'class="label learner" x="[\d.]+" y="([\d.]+)"', line_chart("a", "", same, 1)
    )
    places = sorted(map(float, found))
    assert len(places) == 4
    assert all(b - a >= LABEL_GAP - 0.02 for a, b in pairwise(places))


def test_unknown_values_break_the_line() -> None:
    svg = line_chart("a", "", [Series("a", "learner", [1.0, None, 2.0])], 1)
    (d,) = re.findall(r'class="main" d="([^"]*)"', svg)
    assert d.count("M") == 2
    assert len(heights(svg, "learner")) == 2


def test_values_below_a_logarithmic_floor_are_hollow() -> None:
    svg = line_chart("a", "", [Series("a", "learner", [0.1, 0.0])], 1, floor=1e-7)
    assert svg.count("dot hollow") == 1
    high, low = heights(svg, "learner")
    assert high < low == HEIGHT - BOTTOM


def test_error_band_spans_the_errors() -> None:
    series = Series("a", "learner", [1.0, 1.0], error=[0.5, 0.5])
    (band,) = re.findall(r'class="band" d="([^"]*)"', line_chart("a", "", [series], 1))
    ys = {float(pair.split()[1]) for pair in re.split("[MLZ]", band) if pair}
    assert len(ys) == 2


def test_lines_are_told_apart_without_colour() -> None:
    kinds = [("learner", False), ("expert", True), ("bound", True)]
    series = [Series(kind, kind, [1.0, 2.0], dashed) for kind, dashed in kinds]
    circles, squares, diamonds = re.findall(
        r'<g class="series \w+">(.*?)</g>', line_chart("a", "", series, 1)
    )
    assert "<circle" in circles
    assert "stroke-dasharray" not in circles
    assert "<rect" in squares
    assert "rotate(45" not in squares
    assert "rotate(45" in diamonds


@pytest.mark.parametrize("count", [1, 2, 7, 60])
def test_any_number_of_iterations_fits(count: int) -> None:
    svg = line_chart("a", "", [Series("a", "learner", [1.0] * count)], count)
    assert svg.count('class="hit"') == count
    assert svg.count('class="tick"') <= 10 + 7 + 1
    assert f'data-goto="{count}"' in svg
