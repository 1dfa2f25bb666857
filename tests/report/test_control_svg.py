"""Drawings of runs on continuous worlds: lines stand where the constraints' edges are."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.constraints.template import linear_template, parse_template
from ringfence.objects import Feature
from ringfence.report.charts import tick_texts
from ringfence.report.control_page import charts
from ringfence.report.control_read import ControlRun, edges, true_parameters
from ringfence.report.control_svg import (
    LEFT,
    RIGHT,
    WIDTH,
    budgets,
    distribution,
    edge_on,
)
from saved_constraints import random_network

FEATURES = (Feature("x", "m"), Feature("speed", "m/s"))
SPEED = 1
TRUTH = "speed <= 0.75"
COLUMNS = [f"{who}_{name}_mean" for who in ("learner", "expert")
           for name in ("reward", "true_raw", "cost")]  # fmt: skip


def run_of(learned: LinearConstraint, text: str) -> ControlRun:
    """One iteration under `learned` of the class `text`, with speeds from 0 to 1 m/s."""
    template = (
        parse_template(text, FEATURES) if "?" in text else linear_template(FEATURES, ["speed"])
    )
    truth = parse_inequality(TRUTH, FEATURES)
    theta, true = template.theta_of(learned), template.theta_of(truth)
    assert theta is not None
    summary = {
        "class": text,
        "used": ["speed"],
        "selected": 1,
        "truth": TRUTH,
        "true_parameters": None if true is None else dict(zip(template.names, true, strict=True)),
        "iterations": [
            {
                "constraint": {"parameters": dict(zip(template.names, theta, strict=True))},
                **dict.fromkeys(COLUMNS, 1.0),
            }
        ],
    }
    steps = np.column_stack([np.zeros(1001), np.linspace(0.0, 1.0, 1001)])
    return ControlRun("", summary, FEATURES, (learned,), (steps,), ((steps,),), truth, None)


def drawn_at(svg: str, kind: str) -> float:
    """The speed at which an upright line of a class stands."""
    (x,) = re.findall(rf'd="M([\d.]+) [\d.]+L\1 [\d.]+" class="{kind}"', svg)
    return 0.995 * (float(x) - LEFT) / (WIDTH - LEFT - RIGHT)


@pytest.mark.parametrize(
    ("weight", "offset", "text"),
    [
        (0.2372, 0.1557, "linear"),
        (2.0, 1.3, "2 speed <= ?"),
        (1.6, 1.0, "? speed <= 1"),
        (-1.0, -0.4, "speed >= ?"),
    ],
)
def test_lines_stand_at_the_edge_whatever_the_scale(
    weight: float, offset: float, text: str
) -> None:
    learned = LinearConstraint(FEATURES, np.array([0.0, weight]), offset)
    svg = distribution(run_of(learned, text), SPEED)
    (bound,) = re.findall(r'<g class="series bound">.*?</g>', svg)
    assert drawn_at(bound, "main") == pytest.approx(offset / weight, abs=1e-3)
    assert drawn_at(svg, "outline truth") == pytest.approx(0.75, abs=1e-3)


def test_a_constraint_on_other_features_has_no_edge_on_one() -> None:
    assert edge_on(LinearConstraint(FEATURES, np.array([1.0, 1.0]), 1.0), SPEED) is None
    assert edge_on(LinearConstraint(FEATURES, np.zeros(2), 0.0), SPEED) is None


def test_the_truth_is_drawn_beside_parameters_that_have_its_scale_only() -> None:
    free = run_of(LinearConstraint(FEATURES, np.array([0.0, 0.2372]), 0.1557), "linear")
    fixed = run_of(LinearConstraint(FEATURES, np.array([0.0, 1.0]), 0.7), "speed <= ?")
    assert free.summary["true_parameters"] == pytest.approx({"speed": 1.0, "limit": 0.75})
    assert true_parameters(free.summary) == {}
    assert true_parameters({**free.summary, "class": "? speed <= ?"}) == {}
    assert true_parameters(fixed.summary) == pytest.approx({"limit": 0.75})
    *parameters, _, _, _ = charts([free], 1)
    assert len(parameters) == 2
    assert not any("truth" in chart for chart in parameters)
    assert "truth" in charts([fixed], 1)[0]


def test_a_networks_edge_is_drawn_where_its_raw_value_is_zero() -> None:
    network = random_network(features=(Feature("x", "m"), Feature("y", "m")))
    low, high = np.array([-2.0, -2.0]), np.array([2.0, 2.0])
    assert np.ptp(network.raw(np.random.default_rng(0).uniform(low, high, (500, 2)))) > 5
    lines = edges(network, (0, 1), low, high)
    assert lines
    for line in lines:
        assert np.abs(network.raw(line)).max() < 0.05  # it varies by more than 5 in the box
    assert (
        edges(
            random_network(features=(*network.features, Feature("speed", "m/s"))), (0, 1), low, high
        )
        == []
    )


def test_ticks_are_told_apart() -> None:
    assert tick_texts((32.66, 32.67, 32.68)) == ["32.66", "32.67", "32.68"]
    assert tick_texts((0.0, 10.0, 20.0)) == ["0", "10", "20"]


def test_what_was_learned_beside_the_curve_of_budgets_is_drawn() -> None:
    run = run_of(parse_inequality("speed <= 1.2", FEATURES), "speed <= ?")
    run.summary["budget_curve"] = [
        {"parameter": 0.5, "budget": 20.0},
        {"parameter": 1.0, "budget": 0.0},
    ]
    assert len(re.findall(r'class="main"', str(budgets(run)))) == 2
