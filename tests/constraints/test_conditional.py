"""A limit under a condition: where it holds it is the limit, elsewhere nothing costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.constraints.conditional import ConditionalConstraint
from ringfence.constraints.linear import parse_inequality
from ringfence.constraints.written import parse_constraint
from ringfence.errors import InvalidInput
from ringfence.objects import Feature

FEATURES = (Feature("altitude", "ft"), Feature("speed", "kt"))
RULE = parse_constraint("speed <= 250 while altitude <= 10000", FEATURES)


@given(st.floats(0, 4e4), st.floats(0, 500))
def test_it_costs_what_the_limit_costs_where_the_condition_holds(alt: float, speed: float) -> None:
    limit = parse_inequality("speed <= 250", FEATURES)
    cost = limit.cost([[alt, speed]])[0] if alt <= 10_000 else 0.0
    assert RULE.cost([[alt, speed]])[0] == cost
    assert (RULE.raw([[alt, speed]])[0] > 0) == (alt <= 10_000 and speed > 250)


def test_the_cost_is_whole_up_to_the_conditions_edge() -> None:
    edge = [[10_000.0, 300.0], [np.nextafter(10_000.0, np.inf), 300.0]]
    assert RULE.cost(edge) == pytest.approx([np.log(51), 0.0])


def test_both_are_about_the_same_features() -> None:
    with pytest.raises(InvalidInput, match="the same features"):
        ConditionalConstraint(
            parse_inequality("speed <= 1", FEATURES), parse_inequality("speed <= 1", FEATURES[1:])
        )
