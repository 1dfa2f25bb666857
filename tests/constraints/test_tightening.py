"""A constraint with a clearance forbids more, by the clearance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.constraints.activated import Activated
from ringfence.constraints.linear import parse_inequality
from ringfence.constraints.tightening import tightened
from ringfence.constraints.written import parse_constraint
from ringfence.errors import InvalidInput
from ringfence.objects import Feature
from saved_constraints import random_network

XY = (Feature("x", "m"), Feature("y", "m"))


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
    with pytest.raises(InvalidInput, match="lower --delta instead"):
        tightened(parse_constraint("x <= 1 and y <= 2", XY), 0.1)


def test_an_absolute_value_and_a_limit_under_a_condition_move_alike() -> None:
    for text, kept in (
        ("|x| <= 2", "|x| <= 1.5 m"),
        ("x >= -3", "x >= -2.5 m"),
        ("x <= 2 while y <= 1", "x <= 1.5 m while y <= 1 m"),
    ):
        assert tightened(parse_constraint(text, XY), 0.5).describe() == kept


def test_what_counts_steps_counts_them_from_the_clearance_on() -> None:
    c = tightened(Activated(parse_inequality("x <= 2", XY), "steps"), 0.5)
    assert c.describe() == "x <= 1.5 m, each step beyond it costs 1"
    assert c.cost([[1.6, 0.0], [1.5, 0.0]]).tolist() == [1.0, 0.0]
