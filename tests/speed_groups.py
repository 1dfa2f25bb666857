"""Experts and learners over x, y and speed, for tests of players over inequalities."""

from __future__ import annotations

import numpy as np

from ringfence.objects import Behaviour, Feature

FEATURES = (Feature("x", "m"), Feature("y", "m"), Feature("speed", "m/s"))
T = 100.0


def group(seed: int, n: int = 200, shift: tuple[float, ...] = (0.0, 0.0, 0.0)) -> Behaviour:
    """An episode of T steps in expectation over n random points."""
    rng = np.random.default_rng(seed)
    visits = rng.uniform(0.1, 1, n)
    points = rng.normal(size=(n, 3)) * [3, 2, 0.3] + [5, 4, 1] + np.array(shift)
    return Behaviour(points, visits * T / visits.sum(), 0.0, 0.0, T, 10)


EXPERT, LEARNER, OTHER = group(0), group(1, shift=(1, -2, 1)), group(2, 77, (0, -1, 2))
