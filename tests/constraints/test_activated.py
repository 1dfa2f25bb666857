"""Costs that count steps or amounts: a constraint's own raw value, priced in another way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringfence.constraints.activated import Activated
from ringfence.constraints.conjunction import Conjunction
from ringfence.constraints.linear import parse_inequality
from ringfence.errors import InvalidInput
from ringfence.objects import Feature

SPEED = parse_inequality("speed <= 2", [Feature("speed", "m/s")])
PACES = np.array([[1.0], [2.0], [2.5], [6.0]])


def test_steps_cost_one_beyond_the_limit_and_nothing_on_it() -> None:
    c = Activated(SPEED, "steps")
    assert np.array_equal(c.cost(PACES), [0.0, 0.0, 1.0, 1.0])
    assert c.cost(PACES).dtype == np.float64


def test_an_amount_costs_what_is_beyond() -> None:
    assert np.array_equal(Activated(SPEED, "amount").cost(PACES), [0.0, 0.0, 0.5, 4.0])


def test_raw_values_and_features_are_the_constraints_own() -> None:
    c = Activated(SPEED, "steps")
    assert np.array_equal(c.raw(PACES), SPEED.raw(PACES))
    assert c.features == SPEED.features


def test_its_words_say_how_it_counts() -> None:
    assert Activated(SPEED, "steps").describe() == "speed <= 2 m/s, each step beyond it costs 1"
    assert Activated(SPEED, "amount").describe() == "speed <= 2 m/s, costs what is beyond it"


@pytest.mark.parametrize("c", [Activated(SPEED, "steps"), Conjunction((SPEED, SPEED))])
def test_a_cost_is_counted_once(c: Any) -> None:
    with pytest.raises(InvalidInput, match="counted once"):
        Activated(c, "steps")


def test_an_unknown_way_of_counting_is_refused() -> None:
    other: Any = "squares"
    with pytest.raises(InvalidInput, match="'squares' is not known; it can be: steps, amount"):
        Activated(SPEED, other)
