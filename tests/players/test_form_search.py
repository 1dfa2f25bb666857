"""Forms of several inequalities: the search finds what made the visits, and nothing pays more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import ringfence
from altitude_world import altitude_world, flights
from ringfence.constraints.written import Form, parse_class
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Feature, J
from ringfence.players import form_search

FEATURES = (Feature("altitude", "ft"), Feature("speed", "kt"), Feature("y", "m"))
T = 400.0


def fit(
    form: Form, experts: Sequence[Behaviour], learners: Sequence[Behaviour], budget: float
) -> Array:
    """The numbers of the constraint that is found."""
    theta = form.theta_of(form_search.fit(form, experts, learners, budget))
    assert theta is not None
    return theta


def visits(points: Array) -> Behaviour:
    each = np.full(len(points), T / len(points))
    return Behaviour(points, each, 0.0, 0.0, T, 10)


def flown(seed: int, kept: bool, n: int = 4000) -> Behaviour:
    """Flights at all altitudes; those who keep the rule fly up to 250 kt at up to 10,000 ft."""
    rng = np.random.default_rng(seed)
    altitude, y = rng.uniform(0, 35_000, n), rng.normal(0, 0.3, n)
    fastest = np.where((altitude <= 10_000) & kept, 250, 480)
    speed = fastest - rng.exponential(15, n)
    y = np.clip(y, -1, 1) if kept else y * 5
    return visits(np.column_stack([altitude, speed, y]))


EXPERTS, LEARNERS = [flown(0, True), flown(1, True)], [flown(2, False), flown(3, False)]


def test_a_limit_under_a_condition_is_found_with_its_condition() -> None:
    form = parse_class("speed <= ? while altitude <= ?", FEATURES)
    speed, altitude = fit(form, EXPERTS, LEARNERS, 0.0)
    assert speed == pytest.approx(250, abs=0.5)
    assert altitude == pytest.approx(10_000, abs=100)  # the next expert step above is that near
    c = form.constraint(np.array([speed, altitude]))
    assert max(J(pi, c) for pi in EXPERTS) == 0
    for moved in ([speed - 1e-6, altitude], [speed, altitude + 100]):
        assert max(J(pi, form.constraint(np.array(moved))) for pi in EXPERTS) > 0


def test_no_other_numbers_of_a_conditional_cost_learners_more() -> None:
    form = parse_class("speed <= ? while altitude <= ?", FEATURES)
    best = sum(J(pi, form.constraint(fit(form, EXPERTS, LEARNERS, 0.0))) for pi in LEARNERS)
    tried = 0
    for speed, altitude in product(np.linspace(150, 480, 40), np.linspace(0, 35_000, 71)):
        c = form.constraint(np.array([speed, altitude]))
        if max(J(pi, c) for pi in EXPERTS) == 0:
            tried += 1
            assert sum(J(pi, c) for pi in LEARNERS) <= best + 1e-9
    assert tried > 100


@pytest.mark.parametrize("budget", [0.5, 20.0])
def test_a_conditionals_experts_use_their_budget_up_and_no_more(budget: float) -> None:
    form = parse_class("speed <= ? while altitude <= ?", FEATURES)
    theta = fit(form, EXPERTS, LEARNERS, budget)
    costs = [J(pi, form.constraint(theta)) for pi in EXPERTS]
    assert max(costs) <= budget
    assert max(costs) == pytest.approx(budget, rel=0.02)
    assert theta[1] == pytest.approx(10_000, rel=0.05)


def test_the_other_direction_is_read_the_other_way_round() -> None:
    """Everything turned upside down: fast above, and a lower limit."""
    turned = [
        visits(np.column_stack([-p.features[:, 0], -p.features[:, 1], p.features[:, 2]]))
        for p in (*EXPERTS, *LEARNERS)
    ]
    form = parse_class("speed >= ? while altitude >= ?", FEATURES)
    theta = fit(form, turned[:2], turned[2:], 0.0)
    same = fit(parse_class("speed <= ? while altitude <= ?", FEATURES), EXPERTS, LEARNERS, 0.0)
    assert theta == pytest.approx(-same)


def test_what_is_stated_in_a_conditional_is_kept() -> None:
    given = parse_class("speed <= ? while altitude <= 10000", FEATURES)
    inside = np.concatenate([pi.features for pi in EXPERTS])
    highest = inside[inside[:, 0] <= 10_000, 1].max()
    assert fit(given, EXPERTS, LEARNERS, 0.0) == pytest.approx([highest])
    (altitude,) = fit(parse_class("speed <= 250 while altitude <= ?", FEATURES), EXPERTS, [], 0.0)
    first = inside[inside[:, 1] > 250, 0].min()
    assert altitude == inside[inside[:, 0] < first, 0].max()


def test_on_a_grid_of_values_the_condition_ends_at_one_of_them() -> None:
    """Learned by whole numbers of 2,000 ft, "altitude <= 8000" is told as 8000, not as < 10000."""
    steps = [replace(pi, features=np.floor(pi.features / 2000) * 2000) for pi in EXPERTS]
    experts = [replace(g, features=g.features * [1, 0, 0] + pi.features * [0, 1, 1])
               for g, pi in zip(steps, EXPERTS, strict=True)]  # fmt: skip
    form = parse_class("speed <= ? while altitude <= ?", FEATURES)
    assert fit(form, experts, LEARNERS[:0], 0.0)[1] % 2000 == 0


def test_a_condition_that_no_expert_met_is_no_evidence() -> None:
    form = parse_class("speed <= ? while altitude <= -5", FEATURES)
    with pytest.raises(InvalidInput, match="no expert was ever where its condition holds"):
        fit(form, EXPERTS, LEARNERS, 0.0)


def test_a_budget_that_no_condition_leaves_is_refused() -> None:
    form = parse_class("speed <= 1 while altitude <= ?", FEATURES)
    low = [visits(np.array([[0.0, 5.0, 0.0], [9.0, 5.0, 0.0]]))]
    with pytest.raises(InvalidInput, match="no constraint of it leaves the experts"):
        fit(form, low, LEARNERS, 0.0)


def test_several_limits_are_each_as_tight_as_alone() -> None:
    whole = parse_class("|y| <= ? and speed <= ? while altitude <= ? and altitude >= ?", FEATURES)
    alone = [
        fit(parse_class(text, FEATURES), EXPERTS, LEARNERS, 0.0)
        for text in ("|y| <= ?", "speed <= ? while altitude <= ?", "altitude >= ?")
    ]
    assert fit(whole, EXPERTS, LEARNERS, 0.0) == pytest.approx(np.concatenate(alone))
    inside = np.concatenate([pi.features for pi in EXPERTS])
    assert alone[0] == pytest.approx(np.abs(inside[:, 2]).max())


def test_two_sides_enclose_the_experts() -> None:
    theta = fit(parse_class("? <= y <= ?", FEATURES), EXPERTS, LEARNERS, 0.0)
    inside = np.concatenate([pi.features for pi in EXPERTS])[:, 2]
    assert theta == pytest.approx([inside.min(), inside.max()])


def test_a_rule_on_a_finite_world_is_learned_at_defaults(tmp_path: Path) -> None:
    world = altitude_world(limit=250, below=8000)
    text = "speed <= ? while altitude <= ?"
    learned = ringfence.learn(world, flights(world), text, out=tmp_path / "run")
    rule = "speed <= 250 kt while altitude <= 8000 ft"
    assert learned.constraint.describe() == rule
    assert ringfence.load(tmp_path / "run").describe() == rule
    assert learned.summary["player"] == "payoff"
    row = learned.summary["iterations"][learned.summary["selected"] - 1]
    assert row["learner_true_cost_mean"] == 0
    limits = learned.summary["constraint"]["interval"]["parameters"]
    assert limits["upper limit of speed"] == [250, 250]
    assert rule in learned.report(tmp_path / "page.html").read_text().replace("&lt;", "<")
