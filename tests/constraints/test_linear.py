"""Linear constraints: values, words, and the inequality's grammar."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.constraints.linear import LinearConstraint, parse_inequality, tightened
from ringfence.errors import InvalidInput
from ringfence.objects import Feature
from saved_constraints import random_network

XY = (Feature("x", "m"), Feature("y", "m"))


def test_activation_is_the_log_of_one_plus_the_excess() -> None:
    c = LinearConstraint(XY, np.array([0.5, -1.0]), 0.0)
    phi = np.array([[2.0, 0.0], [0.0, 3.0]])
    assert c.raw(phi).tolist() == [1.0, -3.0]
    assert c.cost(phi) == pytest.approx([np.log(2), 0.0])
    assert LinearConstraint(XY, c.weights, 0.0, "none").cost(phi).tolist() == [1.0, -3.0]


@pytest.mark.parametrize(
    ("text", "weights", "offset", "words"),
    [
        ("0.5 x - y <= 0", [0.5, -1], 0, "0.5 x - y <= 0"),
        ("x >= 3", [-1, 0], -3, "-x <= -3 m"),
        ("2*x + 1 <= y", [2, -1], -1, "2 x - y <= -1"),
        (".5x<=1e-1", [0.5, 0], 0.1, "0.5 x <= 0.1"),
        ("0 <= y", [0, -1], 0, "-y <= 0 m"),
    ],
)
def test_inequality_is_read(text: str, weights: list, offset: float, words: str) -> None:
    c = parse_inequality(text, XY)
    assert c.weights.tolist() == weights
    assert c.offset == offset
    assert c.describe() == words


def test_threshold_is_described_with_its_unit() -> None:
    assert parse_inequality("speed <= 0.752", [Feature("speed", "m/s")]).describe() == (
        "speed <= 0.752 m/s"
    )


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
@settings(derandomize=True, deadline=None, database=None, max_examples=50)
def test_description_reads_back(a: float, b: float, offset: float) -> None:
    a, b, offset = (float(f"{v:.4g}") for v in (a, b, offset))
    if a == b == 0:
        return
    again = parse_inequality(LinearConstraint(XY, np.array([a, b]), offset).describe(), XY)
    assert again.weights == pytest.approx([a, b])
    assert again.offset == pytest.approx(offset)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("x < 3", "<="),
        ("x <= 1 <= 2", "one linear inequality"),
        ("z <= 1", "no feature 'z'; features are x, y"),
        ("x y <= 1", "missing before"),
        ("x^2 <= 1", "can't read"),
        ("1 <= 2", "no feature in it"),
        ("x <=", "empty"),
        ("x - x <= 0", "no feature in it"),
        ("__import__('os') <= 1", "no feature"),
    ],
)
def test_anything_else_is_refused(text: str, word: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_inequality(text, XY)
    assert word in str(error.value)


@given(st.floats(0, 10), st.lists(st.floats(-10, 10), min_size=2, max_size=2))
def test_at_a_clearance_the_boundary_comes_earlier(clearance: float, phi: list[float]) -> None:
    c = parse_inequality("0.5 x - y <= 0.2", XY)
    kept = tightened(c, clearance)
    assert kept.raw([phi])[0] == pytest.approx(c.raw([phi])[0] + clearance)
    assert kept.cost([phi])[0] >= c.cost([phi])[0]


def test_a_clearance_is_in_the_units_of_the_right_side() -> None:
    speed = parse_inequality("speed <= 0.75", (Feature("speed", "m/s"),))
    assert tightened(speed, 0.05).describe() == "speed <= 0.7 m/s"
    assert tightened(speed, 0.0) is speed
    for wrong in (-0.1, float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match="clearance must be at least 0 and finite"):
            tightened(speed, wrong)
    with pytest.raises(InvalidInput, match="lower --delta instead"):
        tightened(random_network(), 0.1)


def test_what_forbids_nothing_or_everything_says_so() -> None:
    none, all_ = (LinearConstraint(tuple(XY), np.zeros(2), offset) for offset in (0.0, -1.0))
    assert none.describe() == "nothing is forbidden"
    assert all_.describe() == "everything is forbidden"
