"""Absolute values of features inside an inequality."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.constraints.absolute import AbsoluteConstraint, Lift
from ringfence.constraints.linear import parse_inequality
from ringfence.constraints.written import parse_constraint
from ringfence.errors import InvalidInput
from ringfence.objects import Feature

XY = (Feature("x", "m"), Feature("y", "m/s"))


@given(st.floats(-10, 10), st.floats(-10, 10))
def test_the_raw_value_is_that_of_the_formula(x: float, y: float) -> None:
    c = parse_constraint("2 |x - 1| + y <= 3", XY)
    assert isinstance(c, AbsoluteConstraint)
    assert c.raw([[x, y]])[0] == pytest.approx(2 * abs(x - 1) + y - 3)
    assert c.cost([[x, y]])[0] == pytest.approx(np.log1p(max(0.0, 2 * abs(x - 1) + y - 3)))


def test_both_sides_cost_alike() -> None:
    c = parse_constraint("|y| <= 2", XY)
    assert c.cost([[0, 5]]) == c.cost([[0, -5]]) == pytest.approx(np.log(4))
    assert parse_constraint("|y| >= 2", XY).raw([[0, 5], [0, -1]]) == pytest.approx([-3, 1])


def test_an_absolute_value_has_the_unit_of_its_feature() -> None:
    lift = Lift(np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]]), np.array([0.0, -1.5, 0.0]))
    assert lift.features(XY)[2:] == (
        Feature("|y|", "m/s"),
        Feature("|x + y + 1.5|", "1"),
        Feature("|2 x|", "1"),
    )


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInput, match="absolute values of"):
        Lift(np.zeros((1, 2)), np.zeros(2))
    with pytest.raises(InvalidInput, match="must be finite"):
        Lift(np.full((1, 2), np.nan), np.zeros(1))
    line = parse_inequality("x <= 1", XY)
    with pytest.raises(InvalidInput, match="don't fit"):
        AbsoluteConstraint(XY, Lift(np.eye(2), np.zeros(2)), line)
