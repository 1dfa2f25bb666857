"""The players over templates: closed form, optimality, budgets kept exactly."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.constraints.template import linear_template, parse_template
from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour, J
from ringfence.players.search import best_within, budget_curve, expert_levels
from speed_groups import EXPERT, FEATURES, LEARNER, T, group


@pytest.mark.parametrize("budget", [0.0, 0.5, 20.0])
@pytest.mark.parametrize("text", ["speed <= ?", "speed >= ?"])
def test_the_payoff_threshold_is_the_tightest_within_the_budget(text: str, budget: float) -> None:
    template = parse_template(text, FEATURES)
    theta = best_within(template, [EXPERT], [LEARNER], budget)
    cost = J(EXPERT, template.constraint(theta))
    assert cost <= budget + 1e-9
    assert cost == pytest.approx(budget, abs=1e-9)
    tighter = theta + (-1e-6 if "<=" in text else 1e-6)
    assert J(EXPERT, template.constraint(tighter)) > budget


@pytest.mark.parametrize("budget", [10.0, 20.0, 40.0, 1e3])
@pytest.mark.parametrize("text", ["speed <= ?", "speed >= ?", "? speed <= ?"])
def test_a_budget_beyond_the_lowest_value_is_used_up(text: str, budget: float) -> None:
    template, phi = parse_template(text, FEATURES), np.zeros((50, 3))
    phi[:, 2] = np.linspace(0.5, 0.8, 50)
    expert = Behaviour(phi, np.ones(50), 0.0, 0.0, 50.0, 1)
    theta = best_within(template, [expert], [], budget)
    assert J(expert, template.constraint(theta)) == pytest.approx(budget)


def test_a_budget_beyond_all_floats_is_answered() -> None:
    template = parse_template("speed <= ?", FEATURES)
    assert np.isfinite(best_within(template, [EXPERT], [LEARNER], 1e9)).all()


def test_the_true_budget_identifies_the_threshold_of_saturating_experts() -> None:
    template, true = parse_template("speed <= ?", FEATURES), np.array([1.05])
    budget = J(EXPERT, template.constraint(true))
    assert best_within(template, [EXPERT], [LEARNER], budget) == pytest.approx(true, abs=1e-9)


def test_every_tasks_experts_keep_the_budget() -> None:
    template, experts = parse_template("speed <= ?", FEATURES), [EXPERT, group(3, shift=(0, 0, 1))]
    theta = best_within(template, experts, [LEARNER, LEARNER], 5.0)
    costs = [J(pi, template.constraint(theta)) for pi in experts]
    assert max(costs) == pytest.approx(5.0)
    assert min(costs) < 5.0


def test_a_slope_is_as_good_as_any_on_a_grid() -> None:
    template = parse_template("? x - y <= 0", FEATURES)
    theta = best_within(template, [EXPERT], [LEARNER], 30.0)
    best = J(LEARNER, template.constraint(theta))
    assert J(EXPERT, template.constraint(theta)) <= 30.0 + 1e-9
    for value in np.linspace(-3, 3, 601):
        c = template.constraint(np.array([value]))
        assert J(EXPERT, c) > 30.0 or J(LEARNER, c) <= best + 0.02 * best


def test_a_line_beats_every_threshold_on_its_features() -> None:
    """Learners stand apart in a direction that no single feature has."""
    line = linear_template(FEATURES, ["x", "y"])
    theta = best_within(line, [EXPERT], [LEARNER], 5.0)
    c = line.constraint(theta)
    assert J(EXPERT, c) <= 5.0 + 1e-9
    spread = np.concatenate([EXPERT.features, LEARNER.features]).std(axis=0)[:2]
    assert np.linalg.norm(c.weights[:2] * spread) == pytest.approx(1, abs=1e-9)
    for text in ("x <= ?", "x >= ?", "y <= ?", "y >= ?"):
        single = parse_template(text, FEATURES)
        found = single.constraint(best_within(single, [EXPERT], [LEARNER], 5.0))
        column = 0 if "x" in text else 1
        scaled = single.constraint(best_within(single, [EXPERT], [LEARNER], 5.0)).weights
        assert scaled[column] != 0
        per_spread = J(LEARNER, _scaled(found, spread[column]))
        assert J(LEARNER, c) >= 0.98 * per_spread or J(EXPERT, _scaled(found, spread[column])) > 5


def _scaled(c, spread: float):
    from ringfence.constraints.linear import LinearConstraint

    return LinearConstraint(c.features, c.weights / spread, c.offset / spread)


def test_a_budget_that_nobody_keeps_is_refused() -> None:
    template = parse_template("? x - y <= 0", FEATURES)
    low = Behaviour(np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0]]), np.ones(2), 0.0, 0.0, 2.0, 1)
    with pytest.raises(InvalidInput, match=r"budget of 0 .* least .* 0\.6931"):
        best_within(template, [low], [LEARNER], 0.0)


def test_the_curve_of_budgets_falls_and_passes_through_the_payoff_choice() -> None:
    template = parse_template("speed <= ?", FEATURES)
    curve = np.array(budget_curve(template, [EXPERT]))
    assert (np.diff(curve[:, 0]) > 0).all()
    assert (np.diff(curve[:, 1]) <= 0).all()
    theta = best_within(template, [EXPERT], [LEARNER], curve[30, 1])
    assert theta[0] == pytest.approx(curve[30, 0], abs=1e-9)


def test_expert_levels_are_the_mean_and_the_95th_percentile() -> None:
    levels = expert_levels(parse_template("speed <= ?", FEATURES), [EXPERT])
    assert levels is not None
    assert levels["mean"] == pytest.approx(EXPERT.visits @ EXPERT.features[:, 2] / T)
    above = EXPERT.visits[EXPERT.features[:, 2] > levels["p95"]].sum() / T
    assert 0.03 < above <= 0.05


@pytest.mark.parametrize(("sign", "text"), [(1, "? x - y <= 0"), (-1, "? x + y >= 0")])
def test_at_the_95th_percentile_5_percent_violate_where_points_are_on_both_sides(
    sign: int, text: str
) -> None:
    """Points with x < 0 violate a smaller slope, those with x > 0 a larger one."""
    expert = group(4, 2000, (-2.5, 0.0, 0.0))
    expert.features[:, 1] = np.abs(expert.features[:, 1])
    assert 0.1 < (expert.features[:, 0] < 0).mean() < 0.3
    levels = expert_levels(parse_template(text, FEATURES), [expert])
    assert levels is not None

    def share(slope: float) -> float:
        raw = slope * expert.features[:, 0] - expert.features[:, 1]
        return float(expert.visits[raw > 1e-12].sum() / T)

    assert 0.045 < share(sign * levels["p95"]) <= 0.05
    assert share(sign * levels["p95"] + 0.01) > 0.05


def test_the_95th_percentile_is_left_out_where_more_violate_under_every_value() -> None:
    """Half of the steps forbid a slope below 1, the others one above -1."""
    phi = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, -1.0, 0.0]])
    expert = Behaviour(phi, np.ones(3), 0.0, 0.0, 3.0, 1)
    assert expert_levels(parse_template("? x - y <= 0", FEATURES), [expert]) == {"mean": -3.0}


@pytest.mark.parametrize("budget", [0.0, 0.5])
def test_two_coefficients_are_as_good_as_any_on_a_grid(budget: float) -> None:
    """Experts end on x + y = 1, learners beyond it: the line between them leans on no axis."""
    template = parse_template("? x + ? y <= 1", FEATURES[:2])
    ends = np.array([[1.4, -0.4], [0.5, 0.5], [-0.4, 1.4]])
    ways = np.linspace(0.0, 1.0, 21)[:, None, None]
    experts, learners = (
        [
            Behaviour(way, np.ones(21), 0.0, 0.0, 21.0, 1)
            for way in np.moveaxis(-1.0 + ways * (to + 1.0), 1, 0)
        ]
        for to in (ends, ends + 0.4)
    )
    theta = best_within(template, experts, learners, budget)

    def cost(group: list[Behaviour], at: list[float]) -> list[float]:
        return [J(pi, template.constraint(np.array(at))) for pi in group]

    axis = np.linspace(-3.0, 3.0, 61)
    grid = [[a, b] for a in axis for b in axis if max(cost(experts, [a, b])) <= budget]
    best = max(np.mean(cost(learners, at)) for at in grid)
    assert max(cost(experts, list(theta))) <= budget + 1e-9
    assert np.mean(cost(learners, list(theta))) >= best - 1e-9
    if budget == 0.0:
        assert theta == pytest.approx([1.0, 1.0])
