"""Hand-made trajectories for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.objects import Feature, Trajectory

FEATURES = (Feature("speed", "m/s"), Feature("x", "m"))


def trajectory(T: int = 4, seed: int = 0, terminated: bool = False, **changes: Any) -> Trajectory:
    """A continuous episode; observations [T+1, 3], actions [T, 2], features [T, 2]."""
    rng = np.random.default_rng(seed)
    fields = {
        "observations": rng.normal(size=(T + 1, 3)),
        "actions": rng.normal(size=(T, 2)),
        "rewards": 10 + rng.normal(size=T),
        "features": rng.normal(size=(T, 2)),
    }
    return Trajectory(**{**fields, "terminated": terminated, **changes})


def grid_path(cells: list[tuple[int, int]], reward: float = 1.0) -> Trajectory:
    """A path over cells whose observations are indices, on a grid ten wide."""
    states = [10.0 * row + col for row, col in cells]
    T = len(cells)
    return Trajectory(
        np.array([*states, states[-1]])[:, None],
        np.zeros((T, 1)),
        np.full(T, reward),
        np.array(cells, dtype=float),
        terminated=False,
    )
