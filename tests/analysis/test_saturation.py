from __future__ import annotations

import numpy as np
import pytest

from ringfence.analysis.edges import edges
from ringfence.analysis.saturation import coverage, press, saturation, standing_apart
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
    assert press(UP, runs, 2.0).pressing < 0.27
    assert saturation(UP, "t", runs, 2.0).severity == "warning"


def of(values: np.ndarray) -> Trajectory:
    nothing = np.zeros((len(values) + 1, 1))
    return Trajectory(nothing, nothing[1:], np.zeros(len(values)), values[:, None], False)


def test_a_start_is_no_edge() -> None:
    """A runner that never comes back near to where it began shows no limit behind it."""
    rng = np.random.default_rng(0)
    away = [of(np.linspace(0, 40, 400) + 0.1 * rng.normal(size=400)) for _ in range(10)]
    assert press(DOWN, away, 0.0).disagreement < 0.1
    assert saturation(DOWN, "t", away, 0.0).severity == "warning"
    back = [of(np.abs(40 * np.sin(np.linspace(0, 9, 400))) ** 0.3) for _ in range(10)]
    assert press(DOWN, back, 40.0).pressing > 0  # what comes back to its start is counted


def test_who_stays_at_the_edge_from_the_first_step_on_presses() -> None:
    assert press(UP, [of(np.full(50, 1.0)) for _ in range(5)], 1.0).pressing == 1.0


def test_a_large_budget_is_no_slack() -> None:
    """The edges agree, far below what nearly every step does."""
    found = press(UP, episodes([1.3] * 20, spread=0.02), 100.0)
    assert found.edges[1] < 1.0
    assert found.saturated(100.0)


def test_one_slow_demonstrator_is_forgiven_and_several_are_not() -> None:
    assert saturation(UP, "t", episodes([1.3] * 9 + [0.5]), 2.0).severity == "ok"
    assert saturation(UP, "t", episodes([1.3] * 7 + [0.5] * 3), 2.0).severity == "warning"


@pytest.mark.parametrize(("used", "severity"), [(2.0, "ok"), (1.6, "ok"), (0.88, "warning")])
def test_an_unused_budget_is_told_where_it_is_recorded(used: float, severity: str) -> None:
    found = saturation(UP, "t", episodes([1.3] * 20), 2.0, used)
    assert found.severity == severity
    assert ("they use 0.88 of a budget of 2 per episode (44%)" in found.message) == (used < 1)


def test_few_episodes_are_not_checked() -> None:
    found = saturation(UP, "t", episodes([1.3] * 3), 2.0)
    assert found.severity == "note"
    assert "3 episodes, 4 are needed" in found.message


def test_the_figures_have_no_unit() -> None:
    runs = episodes(np.linspace(0.4, 1.2, 20))
    scaled = [
        Trajectory(t.observations, t.actions, t.rewards, 50 * t.features, False) for t in runs
    ]
    one, two = press(UP, runs, 0.0), press(UP, scaled, 0.0)
    assert two.disagreement == pytest.approx(one.disagreement)
    assert two.pressing == pytest.approx(one.pressing)


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
