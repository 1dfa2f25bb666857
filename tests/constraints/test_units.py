"""The same demonstrations in km/h and in mm give the same region, in every class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringfence.constraints.family import make_family
from ringfence.constraints.regions import RegionForm
from ringfence.constraints.template import Template, parse_template
from ringfence.constraints.units import in_demonstrated_ranges
from ringfence.constraints.written import parse_class
from ringfence.objects import Array, Behaviour, Constraint, Feature
from ringfence.players.player import Ground, usual_kind
from ringfence.runs.config import make_player, tagged

METRES = (Feature("x", "m"), Feature("y", "m"), Feature("speed", "m/s"))
UNITS = {
    "km/h": (np.array([1.0, 1.0, 3.6]), (METRES[0], METRES[1], Feature("speed", "km/h"))),
    "mm": (np.array([1000.0, 1000.0, 1.0]), (Feature("x", "mm"), Feature("y", "mm"), METRES[2])),
}
STEPS = 100.0


def steps(rng: np.random.Generator, n: int, k: int) -> Array:
    """x, y (m) on a floor, the k-th task's a little to the side of it; speed (m/s)."""
    floor = rng.uniform(-1, 1, (n, 2)) + np.array([0.3 * (k - 1), 0.0])
    return np.column_stack([floor, rng.gamma(4, 0.4, n)])


def allowed(phi: Array) -> Array:
    in_disc = np.hypot(phi[:, 0] - 0.2, phi[:, 1] - 0.1) < 0.4
    return phi[~in_disc & (phi[:, 2] <= 1.5) & (0.8 * phi[:, 0] + 0.6 * phi[:, 1] <= 0.9)]


RNG = np.random.default_rng(0)
EXPERTS = [allowed(steps(RNG, 1200, k)) for k in range(3)]
LEARNERS = [steps(RNG, 800, k) for k in range(3)]
EVERYWHERE = np.column_stack([RNG.uniform(-1.3, 1.3, (5000, 2)), RNG.uniform(0, 3, 5000)])


def behaviour(phi: Array) -> Behaviour:
    return Behaviour(phi, np.full(len(phi), STEPS / len(phi)), 0.0, 0.0, STEPS, 5)


def learned(
    text: str, unit: Array, features: tuple[Feature, ...], player: dict[str, Any]
) -> Constraint:
    """What the class's usual player makes of everybody's steps in these units."""
    experts, learners = ([behaviour(phi * unit) for phi in group] for group in (EXPERTS, LEARNERS))
    shown = np.concatenate([pi.features for pi in experts])
    family = make_family(text, (), features, None, None, shown, ranged=True)
    # The regression of one task; in several no slope through 0 would leave all experts safe.
    several = player.get("kind") != "regression"
    ground = Ground(family, STEPS, experts, several, 5, 0)
    settings = tagged("test", "player", {"kind": usual_kind(text, True), **player})
    return make_player(settings, ground).update(experts, [learners])


@pytest.mark.parametrize(
    ("text", "player"),
    [
        ("speed <= ?", {}),
        ("speed <= ?", {"expert_budget": 5.0}),
        ("? x - y <= 0", {"kind": "regression"}),
        ("? x + y <= ?", {}),
        ("? x + ? y <= 1", {}),
        ("linear", {}),
        ("|y| <= ? and speed <= ?", {}),
        ("speed <= ? while x <= ?", {}),
        ("outside disc(x, y)", {}),
        ("outside disc(x, y)", {"expert_budget": 5.0}),
        ("outside up to 3 shapes(x, y)", {}),
        ("outside box(x, speed)", {}),
        ("inside box(x, y, speed)", {}),
        ("table(x, y)", {}),
        ("table(x, speed)", {}),
        ("mlp", {}),
    ],
)
def test_other_units_give_the_same_region(text: str, player: dict[str, Any]) -> None:
    if text == "mlp":
        pytest.importorskip("jax")
    forbidden = learned(text, np.ones(3), METRES, player).raw(EVERYWHERE) > 0
    assert 0.01 < forbidden.mean() < 0.99
    for unit, features in UNITS.values():
        found = learned(text, unit, features, player).raw(EVERYWHERE * unit) > 0
        assert (found & forbidden).sum() >= 0.99 * (found | forbidden).sum()


def test_raw_is_in_units_of_the_demonstrated_range_of_what_is_not_learned() -> None:
    shown = np.array([[0.0, 1.0, 2.0], [1.0, 5.0, 12.0]])

    def scale(text: str) -> float:
        form = in_demonstrated_ranges(parse_template(text, METRES), shown)
        assert isinstance(form, Template)
        return form.scale

    assert scale("speed <= ?") == 10.0
    assert scale("? x - y <= 0") == 4.0
    assert scale("? x + ? y <= 1") == 1.0
    box = in_demonstrated_ranges(parse_class("outside box(x, speed)", METRES), shown)
    disc = in_demonstrated_ranges(parse_class("outside disc(x, y)", METRES), shown)
    assert isinstance(box, RegionForm)
    assert isinstance(disc, RegionForm)
    assert box.scale.tolist() == [1.0, 10.0]
    assert disc.scale.tolist() == [4.0, 4.0]


def test_what_was_never_varied_keeps_its_unit() -> None:
    shown = np.ones((3, 3))
    form = in_demonstrated_ranges(parse_template("speed <= ?", METRES), shown)
    assert isinstance(form, Template)
    assert form.scale == 1.0
