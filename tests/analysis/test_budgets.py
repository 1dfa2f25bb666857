"""The curve over budgets, where a class has one unknown."""

from __future__ import annotations

import numpy as np
import pytest

from played_games import SPEED, limit, played
from ringfence.analysis.budgets import curve
from ringfence.constraints.family import make_family
from ringfence.objects import J, NotHere


def test_each_pair_is_a_limit_and_what_the_experts_cost_under_it() -> None:
    game = played()
    found = curve(game)
    assert isinstance(found, list)
    values = np.array([(pair["parameter"], pair["budget"]) for pair in found])
    assert (np.diff(values[:, 0]) > 0).all()
    assert (np.diff(values[:, 1]) <= 0).all()
    for parameter, budget in values[::10]:
        assert budget == pytest.approx(J(game.experts[0], limit(parameter)))


@pytest.mark.parametrize("text", ["mlp", "? speed <= ?"])
def test_other_classes_have_none_and_the_reason_is_given(text: str) -> None:
    found = curve(played(family=make_family(text, (), SPEED, None, None)))
    assert isinstance(found, NotHere)
    assert "one unknown" in found.reason
