"""Lines stand where the constraints' edges are."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.constraints.linear import LinearConstraint
from ringfence.objects import Feature
from ringfence.report.draw.geometry import borders, edges, lane, levels, limits, thinned
from ringfence.worlds.sim.floor import FEATURES as XY
from ringfence.worlds.sim.floor import Layout
from saved_constraints import TABLE, random_network

FEATURES = (Feature("x", "m"), Feature("speed", "m/s"))
LAYOUT = Layout((2, 3))
LOW, HIGH = np.array([-2.0, -2.0]), np.array([2.0, 2.0])


def test_a_border_is_as_long_as_it_should_be() -> None:
    region = np.zeros((3, 4), dtype=bool)
    region[0, :2] = region[2, 3] = True
    assert len(borders(region)) == 6 + 4


def test_lanes_stay_within_their_cells_and_apart() -> None:
    lanes = [lane([(0, 0), (0, 1)], n) for n in range(1, 30)]
    for line in lanes:
        assert (np.floor(line) == [(0, 0), (0, 1)]).all()
    assert len({tuple(line[0]) for line in lanes}) == len(lanes)


def test_a_thinned_path_keeps_both_ends() -> None:
    points = np.arange(14.0).reshape(7, 2)
    assert thinned(points, 100).tolist() == points.tolist()
    found = thinned(points, 3)
    assert len(found) <= 4
    assert (found[[0, -1]] == points[[0, -1]]).all()
    assert thinned(points[:1], 3).tolist() == [[0.0, 1.0]]


def test_levels_run_where_the_cost_is_a_half() -> None:
    """log(1 + x - 1) = 0.5 at x = e^0.5 m: a line from top to bottom, in columns of 4 m."""
    (line,) = levels(LinearConstraint(XY, np.array([1.0, 0.0]), 1.0), LAYOUT, 0.5)
    np.testing.assert_allclose(line[:, 1], 1.5 + np.exp(0.5) / 4, atol=0.025)
    assert np.ptp(line[:, 0]) == 2


def test_no_line_is_drawn_for_a_constraint_of_zero() -> None:
    assert levels(LinearConstraint(XY, np.zeros(2), 0.0), LAYOUT, 0.5) == []
    assert edges(LinearConstraint(XY, np.zeros(2), 0.0), (0, 1), LOW, HIGH) == []


def test_a_networks_edge_is_drawn_where_its_raw_value_is_zero() -> None:
    network = random_network(features=XY)
    assert np.ptp(network.raw(np.random.default_rng(0).uniform(LOW, HIGH, (500, 2)))) > 5
    lines = edges(network, (0, 1), LOW, HIGH)
    assert lines
    for line in lines:
        assert np.abs(network.raw(line)).max() < 0.05  # it varies by more than 5 in the box
    wider = random_network(features=(*XY, Feature("speed", "m/s")))
    assert edges(wider, (0, 1), LOW, HIGH) == []
    assert edges(TABLE, (0, 1), LOW, HIGH) == []


@pytest.mark.parametrize("weights", [(1.0, 2.0), (-3.0, 0.5)])
def test_a_straight_edge_runs_across_the_box(weights: tuple[float, float]) -> None:
    c = LinearConstraint(XY, np.array(weights), 0.3)
    (line,) = edges(c, (0, 1), LOW, HIGH)
    np.testing.assert_allclose(c.raw(line), 0, atol=1e-12)


def test_a_limit_is_where_raw_is_zero_whatever_the_scale() -> None:
    assert limits(LinearConstraint(FEATURES, np.array([0, 2.0]), 1.3), 1, 0, 1) == [0.65]
    assert limits(LinearConstraint(FEATURES, np.array([1.0, 1.0]), 1.0), 1, 0, 1) == []
    assert limits(LinearConstraint(FEATURES, np.zeros(2), 0.0), 1, 0, 1) == []


def test_a_network_on_one_feature_may_have_several_limits() -> None:
    network = random_network(features=FEATURES[1:], offset=0.0)
    found = limits(network, 0, -3.0, 3.0)
    assert len(found) == 2
    assert np.abs(network.raw(np.array(found)[:, None])).max() < 0.05
    assert limits(random_network(features=FEATURES), 1, -3.0, 3.0) == []
