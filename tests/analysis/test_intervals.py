"""Intervals by bootstrap over demonstrations."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.analysis.intervals import bootstrap, interval
from ringfence.constraints.template import parse_template
from ringfence.objects import Trajectory
from ringfence.players.regression import regress
from speed_groups import FEATURES, LEARNER


def test_bootstrap_covers_the_spread_of_trajectories() -> None:
    """The interval of a mean over trajectories has the textbook's width."""
    rng = np.random.default_rng(0)
    levels = rng.normal(1.0, 0.2, 40)
    trajectories = [
        Trajectory(np.zeros((6, 1)), np.zeros((5, 1)), np.zeros(5), np.full((5, 3), v), False)
        for v in levels
    ]
    template = parse_template("speed <= ?", FEATURES)
    samples = bootstrap(lambda e: regress(template, e, [LEARNER]), [trajectories], 400, (0,))
    low, high = interval(samples)
    expected = 2 * 1.96 * levels.std() / np.sqrt(len(levels)) / 2
    assert float((high - low)[0]) == pytest.approx(expected, rel=0.2)
    again = bootstrap(lambda e: regress(template, e, [LEARNER]), [trajectories], 400, (0,))
    np.testing.assert_array_equal(samples, again)
