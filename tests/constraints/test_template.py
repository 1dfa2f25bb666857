"""Templates: an inequality with question marks is a linear class, with the right parameters."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.constraints.linear import parse_inequality
from ringfence.constraints.template import linear_template, parse_template
from ringfence.errors import InvalidInput
from ringfence.objects import Feature

FEATURES = (Feature("x", "m"), Feature("y", "m"), Feature("speed", "m/s"))

CASES = {
    "speed <= ?": ("speed <= 0.7", {"limit": 0.7}),
    "speed >= ?": ("speed >= 0.7", {"limit": 0.7}),
    "? x - y <= 0": ("0.4 x - y <= 0", {"x": 0.4}),
    "-? x <= y": ("-0.4 x - y <= 0", {"x": 0.4}),
    "?x + ?y <= ?": ("2 x - 3 y <= 1.5", {"x": 2.0, "y": -3.0, "limit": 1.5}),
    "2 speed + ? x <= ? - y": ("2 speed + 5 x + y <= 3", {"x": 5.0, "limit": 3.0}),
}


@pytest.mark.parametrize("text", CASES)
def test_parameters_and_inequality_say_the_same(text: str) -> None:
    inequality, parameters = CASES[text]
    template, expected = parse_template(text, FEATURES), parse_inequality(inequality, FEATURES)
    assert template.names == tuple(parameters)
    theta = np.array(list(parameters.values()))
    made = template.constraint(theta)
    np.testing.assert_allclose(made.weights, expected.weights)
    assert made.offset == pytest.approx(expected.offset)
    np.testing.assert_allclose(template.theta_of(expected), theta)


@pytest.mark.parametrize("text", CASES)
def test_raw_is_affine_in_the_parameters(text: str) -> None:
    template, rng = parse_template(text, FEATURES), np.random.default_rng(0)
    phi, theta = rng.normal(size=(50, 3)), rng.normal(size=len(template.names))
    raw = template.constraint(theta).raw(phi)
    np.testing.assert_allclose(raw, template.fixed(phi) + template.psi(phi) @ theta, atol=1e-12)


def test_a_constraint_outside_the_class_has_no_parameters() -> None:
    template = parse_template("? x - y <= 0", FEATURES)
    assert template.theta_of(parse_inequality("0.5 x - y <= 1", FEATURES)) is None


def test_directions_are_compared_where_there_is_no_scale() -> None:
    template = linear_template(FEATURES, ["x", "y"])
    theta = np.array([1.0, -2.0, 0.5])
    assert template.scale_free
    assert template.error(3 * theta, theta) == pytest.approx(0)
    assert template.error(-theta, theta) == pytest.approx(2)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("speed <= 1", "nothing in it is to be learned"),
        ("speed < ?", "<= or >="),
        (
            "height <= ?",
            r"class 'height <= \?': there is no feature 'height'; features are x, y, speed",
        ),
        ("? <= ?", "no feature in it"),
        ("? x + ? x <= 1", "the same thing"),
        ("? ? x <= 1", "can't read|missing"),
        ("speed <=", "nothing in it"),
    ],
)
def test_what_is_no_class_is_refused(text: str, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        parse_template(text, FEATURES)
