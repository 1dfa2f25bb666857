"""Linear constraints: values, words, and the inequality's grammar."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.errors import InvalidInput
from ringfence.objects import Feature

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
        ("x >= 3", [-1, 0], -3, "x >= 3 m"),
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


def test_what_forbids_nothing_or_everything_says_so() -> None:
    none, all_ = (LinearConstraint(tuple(XY), np.zeros(2), offset) for offset in (0.0, -1.0))
    assert none.describe() == "nothing is forbidden"
    assert all_.describe() == "everything is forbidden"
