"""Several limits at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.constraints.conjunction import Conjunction
from ringfence.constraints.linear import parse_inequality
from ringfence.constraints.written import parse_constraint
from ringfence.errors import InvalidInput
from ringfence.objects import Feature

XY = (Feature("x", "m"), Feature("y", "m"))
BOTH = parse_constraint("|x| <= 1 and y <= 2", XY)


@given(st.floats(-5, 5), st.floats(-5, 5))
def test_raw_is_the_largest_and_cost_the_sum_of_the_parts(x: float, y: float) -> None:
    assert isinstance(BOTH, Conjunction)
    raws = [part.raw([[x, y]])[0] for part in BOTH.parts]
    assert BOTH.raw([[x, y]])[0] == max(raws)
    assert BOTH.cost([[x, y]])[0] == sum(part.cost([[x, y]])[0] for part in BOTH.parts)
    assert (BOTH.cost([[x, y]])[0] > 0) == (BOTH.raw([[x, y]])[0] > 0)


def test_parts_are_several_over_the_same_features_and_no_conjunctions() -> None:
    one = parse_inequality("x <= 1", XY)
    for parts in ((one,), (one, BOTH)):
        with pytest.raises(InvalidInput, match="at least two"):
            Conjunction(parts)
    with pytest.raises(InvalidInput, match="the same features"):
        Conjunction((one, parse_inequality("x <= 1", XY[:1])))
