"""Constraints as people write them: read, told again in the same words, held by their class."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.constraints.conjunction import Conjunction
from ringfence.constraints.template import Template
from ringfence.constraints.written import is_composed, parse_class, parse_constraint
from ringfence.errors import InvalidInput
from ringfence.objects import Feature

FEATURES = (Feature("x", "m"), Feature("altitude", "ft"), Feature("speed", "kt"))


@pytest.mark.parametrize(
    ("text", "theta", "words"),
    [
        ("x >= ?", [-3.0], "x >= -3 m"),
        ("x <= ?", [2.5], "x <= 2.5 m"),
        ("|x| <= ?", [2.0], "|x| <= 2 m"),
        ("|x - 1| >= ?", [0.5], "|x - 1| >= 0.5 m"),
        ("|2 x + speed| <= ?", [1.0], "|2 x + speed| <= 1"),
        ("? <= x <= ?", [-1.0, 2.0], "x >= -1 m and x <= 2 m"),
        ("? >= x >= 0", [2.0], "x >= 0 m and x <= 2 m"),
        (
            "speed <= ? while altitude <= ?",
            [251.0, 10_050.0],
            "speed <= 251 kt while altitude <= 10,050 ft",
        ),
        ("|x| <= ? and speed <= ?", [2.0, 0.75], "|x| <= 2 m and speed <= 0.75 kt"),
        ("? x + speed >= ?", [0.5, -1.0], "0.5 x + speed >= -1"),
    ],
)
def test_a_class_is_told_as_it_is_written(text: str, theta: list[float], words: str) -> None:
    form = parse_class(text, FEATURES)
    c = form.constraint(np.array(theta))
    assert c.describe() == words
    assert form.theta_of(c) == pytest.approx(theta)
    assert len(form.names) == len(set(form.names)) == len(theta)


def test_a_constraint_without_unknowns_is_read_the_same_way() -> None:
    c = parse_constraint("|x| <= 2 and speed <= 250 while altitude <= 10000", FEATURES)
    assert c.describe() == "|x| <= 2 m and speed <= 250 kt while altitude <= 10,000 ft"
    phi = [[0.0, 5.0, 300.0], [0.0, 2e4, 300.0], [-3.0, 2e4, 0.0], [-3.0, 0.0, 251.0]]
    assert c.cost(phi) == pytest.approx(np.log([51, 1, 2, 4]))
    assert c.raw(phi) == pytest.approx([50, -2, 1, 1])


def test_the_class_holds_a_truth_of_its_form_alone() -> None:
    form = parse_class("speed <= ? while altitude <= ?", FEATURES)
    true = parse_constraint("speed <= 250 while altitude <= 10000", FEATURES)
    assert form.theta_of(true) == pytest.approx([250, 10_000])
    for text in ("speed <= 250", "speed <= 250 while x <= 1", "x <= 1 and speed <= 250"):
        assert form.theta_of(parse_constraint(text, FEATURES)) is None
    several = parse_class("|x| <= ? and speed <= ?", FEATURES)
    assert several.theta_of(parse_constraint("speed <= 1 and |x| <= 1", FEATURES)) is None
    assert several.theta_of(parse_constraint("|x| <= 1 and speed <= 2", FEATURES)) is not None
    assert parse_class("|x| <= ?", FEATURES).theta_of(true) is None


def test_an_error_is_the_largest_of_the_parts() -> None:
    form = parse_class("|x| <= ? and speed <= ?", FEATURES)
    assert form.error(np.array([1.0, 5.0]), np.array([1.5, 3.0])) == pytest.approx(2)


def test_numbers_are_named_by_what_they_limit() -> None:
    form = parse_class("? <= x <= ? and speed <= ? while altitude <= ?", FEATURES)
    assert form.names == (
        *("lower limit of x", "upper limit of x"),
        *("upper limit of speed", "upper limit of altitude"),
    )
    assert form.used == ["x", "altitude", "speed"]
    assert parse_class("|x| <= ?", FEATURES).names == ("limit",)


def test_several_limits_are_parts_over_the_same_features() -> None:
    c = parse_class("|x| <= ? and speed <= ?", FEATURES).constraint(np.array([1.0, 2.0]))
    assert isinstance(c, Conjunction)
    assert [part.describe() for part in c.parts] == ["|x| <= 1 m", "speed <= 2 kt"]
    assert all(part.features == FEATURES for part in c.parts)


def test_one_inequality_stays_a_template() -> None:
    assert isinstance(parse_class("|x| + speed <= ?", FEATURES), Template)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("speed <= 3", "nothing in it is to be learned"),
        ("speed <= ? while", "one linear inequality"),
        ("while speed <= ?", "joined by and"),
        ("speed <= ? while x <= ? while altitude <= ?", "joined by and"),
        ("? <= speed <= ? while altitude <= ?", "one side"),
        ("speed <= ? while ? altitude <= 1", "of a condition only the limit"),
        ("|x <= ?", "a | is missing"),
        ("|x - ?| <= ?", "can't stand between bars"),
        ("|z| <= ?", "no feature 'z'"),
        ("|x| + z <= ?", "no feature 'z'; features are x, altitude, speed, |x|"),
        ("speed <= ? and speed <= ?", "stands in it twice"),
        ("speed <= ? and", "joined by and"),
        ("? <= 1", "no feature in it"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(text: str, word: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_class(text, FEATURES)
    assert word in str(error.value)


def test_a_constraint_with_an_unknown_is_refused() -> None:
    with pytest.raises(InvalidInput, match="give every number of it"):
        parse_constraint("speed <= ?", FEATURES)


@pytest.mark.parametrize(
    ("text", "composed"),
    [("speed <= ?", False), ("|land| <= ?", False), ("a <= ? and b <= ?", True),
     ("? <= a <= ?", True), ("a <= ? while b <= ?", True), ("table", False)],
)  # fmt: skip
def test_more_than_one_inequality_is_told_from_one(text: str, composed: bool) -> None:
    assert is_composed(text) == composed
