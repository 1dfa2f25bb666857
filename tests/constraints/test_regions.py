"""Regions: depth, words, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.constraints.regions import Box, Disc, RegionConstraint, RegionForm
from ringfence.constraints.written import is_composed, is_written, parse_class, parse_constraint
from ringfence.errors import InvalidInput
from ringfence.objects import Feature

XY = (Feature("x", "m"), Feature("y", "m"), Feature("speed", "m/s"))
DISC = "disc(x, y) at (0.1, -0.2) of radius 1.02"
BOX = "box(x, y) from (1, 0) to (2, 4)"


@given(st.floats(-4, 4), st.floats(-4, 4))
def test_raw_is_the_depth_inside_what_is_to_be_avoided(x: float, y: float) -> None:
    disc = 1.02 - np.hypot(x - 0.1, y + 0.2)
    box = min(x - 1, 2 - x, y, 4 - y)
    phi = [[x, y, 9.0]]
    assert parse_constraint(f"outside {DISC}", XY).raw(phi)[0] == pytest.approx(disc)
    assert parse_constraint(f"inside {BOX}", XY).raw(phi)[0] == pytest.approx(-box)
    both = parse_constraint(f"outside {DISC} or {BOX}", XY)
    assert both.raw(phi)[0] == pytest.approx(max(disc, box))
    assert both.cost(phi)[0] == pytest.approx(np.log1p(max(0, disc, box)))


@pytest.mark.parametrize(
    "words", [f"outside {DISC} m", f"inside {BOX} m", f"outside {DISC} m or {BOX} m"]
)
def test_a_region_is_read_as_it_is_told(words: str) -> None:
    assert parse_constraint(words, XY).describe() == words
    assert is_written(words)
    assert is_composed(words)


def test_one_shapes_numbers_have_names() -> None:
    form = parse_class("outside disc(x, y)", XY)
    assert form.names == ("x of the centre", "y of the centre", "radius")
    assert form.used == ["x", "y"]
    true = parse_constraint(f"outside {DISC}", XY)
    assert form.theta_of(true) == pytest.approx([0.1, -0.2, 1.02])
    assert form.constraint(np.array([0.1, -0.2, 1.02])).describe() == true.describe()
    assert form.theta_of(parse_constraint(f"outside {BOX}", XY)) is None
    assert form.theta_of(parse_constraint(f"inside {DISC}", XY)) is None
    box = parse_class("inside box(x, speed)", XY)
    assert box.names == (
        *("lower limit of x", "lower limit of speed"),
        *("upper limit of x", "upper limit of speed"),
    )
    assert box.error(np.array([0.0, 1, 2, 3]), np.array([0.0, 1, 2.5, 3])) == pytest.approx(0.5)
    assert parse_class("outside up to 3 shapes(x, y)", XY).names == ()


def test_counts_of_shapes_are_read() -> None:
    form = parse_class("outside up to 2 discs(x, y) or box(x, y) or up to 3 shapes(x, y)", XY)
    assert isinstance(form, RegionForm)
    assert (form.discs, form.boxes, form.either) == (2, 1, 3)
    several = parse_class("outside boxes(x, y)", XY)
    assert isinstance(several, RegionForm)
    assert several.boxes == 1


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("outside circle(x, y)", "can't read 'circle(x, y)'"),
        ("outside disc(x, y) m", "can't read 'disc(x, y) m'"),
        ("outside disc(x, z)", "no feature 'z'"),
        ("outside disc(x, x)", "stands in it twice"),
        ("outside disc(x, speed)", "one unit, these have m, m/s; use a box"),
        ("outside disc(x, y) or box(x, speed)", "over the same features"),
        ("inside up to 2 boxes(x, y)", "one disc or one box"),
        ("outside up to 99 discs(x, y)", "1 to 16 shapes"),
        (f"outside {DISC} or box(x, y)", "of every shape, or of none"),
        ("outside disc(x, y) at (a, b) of radius 1", "are not numbers"),
        (f"outside {DISC}", "nothing in it is to be learned"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(text: str, word: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_class(text, XY)
    assert word in str(error.value)


def test_numbers_that_do_not_fit_are_refused() -> None:
    one, two = np.ones(1), np.ones(2)
    for columns, shapes, scale in (
        ((0, 1), (Disc(one, 1.0),), two),
        ((0, 1), (Box(two, two * np.nan),), two),
        ((0, 1), (Disc(two, 1.0),), np.array([1.0, 2.0])),
        ((0, 7), (Disc(two, 1.0),), two),
        ((0, 1), (), two),
        ((0, 1), (Disc(two, 1.0),), -two),
    ):
        with pytest.raises(InvalidInput):
            RegionConstraint(XY, columns, "outside", shapes, scale)
