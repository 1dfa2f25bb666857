"""Simulated demonstrators are of the kind that they are called."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.constraints.template import Template
from ringfence.reproduce.simulated import KINDS, LIMIT, SEVERAL, SIMPLE, Way, cost, pace, shown


def rng(n: int = 0) -> np.random.Generator:
    return np.random.default_rng([9, n])


@pytest.mark.parametrize("text", [*SIMPLE, *SEVERAL])
def test_features_have_the_raw_values_that_were_drawn(text: str) -> None:
    z = rng().normal(0, 0.3, (3, 40))
    template, episodes = shown(z, text, rng())
    true = LIMIT + float(np.abs(z).max()) if text == "|y| <= ?" else LIMIT
    c = template.constraint(np.array([true]))
    for own, t in zip(z, episodes, strict=True):
        np.testing.assert_allclose(c.raw(t.features), own, atol=1e-9)


@pytest.mark.parametrize("shape", ["sway", "pile"])
@pytest.mark.parametrize("wanted", [0.0, 3.0])
def test_a_pace_costs_what_was_wanted(shape: str, wanted: float) -> None:
    way = Way(200, 0.1, shape, 0.5, 0.2, 0.05)
    lift = pace(way, wanted, rng())
    again = way.values(64, rng()) + lift
    assert cost(again) == pytest.approx(wanted, abs=1e-6)
    assert (again.max() <= 1e-12) == (wanted == 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_makes_the_same_data_set_again(kind: str) -> None:
    one, same, other = (KINDS[kind](rng(n)) for n in (0, 0, 1))
    assert one.trajectories[0].features.tobytes() == same.trajectories[0].features.tobytes()
    assert one.trajectories[0].features.tobytes() != other.trajectories[0].features.tobytes()
    assert isinstance(one.template, Template)
    assert one.budget >= 0


@pytest.mark.parametrize(
    ("share", "low", "high"), [("100%", 0.85, 1.15), ("50%", 0.3, 0.7), ("0%", 0, 0.05)]
)
def test_demonstrators_use_the_share_of_their_budget(share: str, low: float, high: float) -> None:
    sets = [KINDS[f"budget used: {share}"](rng(n)) for n in range(20)]
    used = np.mean([(d.true_cost or 0) / d.budget for d in sets])
    assert low <= used <= high
