from __future__ import annotations

import numpy as np
import pytest

from ringfence.analysis.saturation import coverage, edges, press, saturation, standing_apart
from ringfence.constraints.template import parse_template
from ringfence.objects import Feature, Trajectory

SPEED = (Feature("speed", "m/s"),)
UP, DOWN = (parse_template(text, SPEED) for text in ("speed <= ?", "speed >= ?"))


def episodes(paces, spread=0.2, steps=200, seed=0) -> list[Trajectory]:
    """Speeds that sway below each driver's pace."""
    rng = np.random.default_rng(seed)
    found = []
    for pace in paces:
        speed = pace - spread * np.abs(rng.normal(size=(steps, 1)))
        nothing = np.zeros((steps + 1, 1))
        found.append(Trajectory(nothing, nothing[1:], speed[:, 0], speed, False))
    return found


def test_an_edge_is_the_tightest_limit_within_the_budget() -> None:
    (t,) = episodes([1.0])
    (edge,) = edges(UP, [t], 0.0)
    assert edge == pytest.approx(t.features.max())
    (edge,) = edges(UP, [t], 2.0)
    cost = np.log1p(np.maximum(t.features - edge, 0)).sum()
    assert cost == pytest.approx(2.0, abs=1e-9)


@pytest.mark.parametrize("budget", [0.0, 2.0])
def test_drivers_at_one_limit_are_saturated_and_drivers_of_their_own_pace_are_not(budget) -> None:
    together, apart = episodes([1.3] * 20), episodes(np.linspace(0.4, 1.2, 20))
    assert saturation(UP, "t", together, budget).severity == "ok"
    found = saturation(UP, "t", apart, budget)
    assert found.severity == "warning"
    assert "don't look saturated" in found.message


def test_a_driver_who_sways_freely_is_not_saturated() -> None:
    rng = np.random.default_rng(0)
    runs = [
        Trajectory(t.observations, t.actions, t.rewards, 1 + 0.4 * rng.normal(size=(200, 1)), False)
        for t in episodes([1.0] * 10)
    ]
    assert press(UP, runs, 2.0).disagreement < 0.5
    assert saturation(UP, "t", runs, 2.0).severity == "warning"


def test_the_figures_have_no_unit() -> None:
    runs = episodes(np.linspace(0.4, 1.2, 20))
    scaled = [
        Trajectory(t.observations, t.actions, t.rewards, 50 * t.features, False) for t in runs
    ]
    one, two = press(UP, runs, 0.0), press(UP, scaled, 0.0)
    assert two.disagreement == pytest.approx(one.disagreement)
    assert two.distance == pytest.approx(one.distance)


@pytest.mark.parametrize(("template", "sign"), [(UP, 1.0), (DOWN, -1.0)])
def test_an_episode_beyond_the_others_stands_apart_on_the_looser_side_only(template, sign) -> None:
    runs = [
        Trajectory(t.observations, t.actions, t.rewards, sign * t.features, False)
        for t in episodes([1.0] * 12 + [2.0, 0.1])
    ]
    found = standing_apart(template, [(str(n), t) for n, t in enumerate(runs)], 0.5)
    assert [f.where for f in found] == ["12"]


def test_coverage_counts_cells_of_the_spanned_range() -> None:
    points = np.array([[0.0, 0.0], [1.0, 1.0], [0.05, 0.0]])
    (found,) = coverage(points, (Feature("x", "m"), Feature("y", "m")))
    assert "x 0 to 1 m, 2 of 10 cells" in found.message
    assert "together 2% of the cells" in found.message
