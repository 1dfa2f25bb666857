"""A continuous world whose best policies are known in closed form.

A point crosses a field from left to right, a column a step, and chooses its height anew in each
column. What a step earns depends on where it is (smooth, above 0); discs are forbidden. The best
policy under any constraint is the best allowed height of each column. Features are (x, y).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ringfence.objects import Array, Feature, Trajectory

FEATURES = (Feature("x", "m"), Feature("y", "m"))
STEPS, HEIGHTS = 24, 241
HIGH = 3.0
#: Is a place not to be entered? [n, 2] -> [n]
Barred = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Crossing:
    """bumps [n, 4]: x, y, width and size of what is earned; discs [m, 3]: x, y, radius; noise: of a
    step's reward."""

    bumps: Array
    discs: Array
    noise: float = 0.0
    width: float = 6.0

    def reward(self, at: Array) -> Array:
        x, y, wide, size = self.bumps.T
        away = (at[:, :1] - x) ** 2 + (at[:, 1:] - y) ** 2
        return np.asarray(1.0 + (size * np.exp(-away / wide**2)).sum(axis=1))

    def forbidden(self, at: Array) -> Array:
        x, y, radius = self.discs.T
        return np.asarray(((at[:, :1] - x) ** 2 + (at[:, 1:] - y) ** 2 < radius**2).any(axis=1))

    def columns(self, rng: np.random.Generator) -> Array:
        """Where an episode's steps are, [STEPS]: the first is drawn at random."""
        stride = self.width / STEPS
        return stride * (np.arange(STEPS) + rng.random())

    def episode(self, barred: Barred, rng: np.random.Generator, lost: float = 0.0) -> Trajectory:
        """The best heights that aren't barred; lost: the share of what these earn that is given up,
        by worse heights that aren't barred either."""
        x = self.columns(rng)
        y = np.linspace(-HIGH, HIGH, HEIGHTS)
        grid = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
        earned = np.where(barred(grid), -np.inf, self.reward(grid)).reshape(STEPS, HEIGHTS)
        best = earned.argmax(axis=1)
        top = earned[np.arange(STEPS), best]
        if lost:
            best = self._worse(earned, best, (1 - lost) * top.sum(), rng)
        chosen = grid.reshape(STEPS, HEIGHTS, 2)[np.arange(STEPS), best]
        rewards = self.reward(chosen) + self.noise * rng.standard_normal(STEPS)
        seen = np.vstack([[x[0], 0.0], chosen])
        return Trajectory(seen, chosen[:, 1:], rewards, chosen, terminated=False)

    def _worse(self, earned: Array, best: Array, enough: float, rng: np.random.Generator) -> Array:
        """Heights drawn at random in some columns, as long as they still earn enough."""
        chosen = best.copy()
        for t in rng.permutation(STEPS):
            options = np.flatnonzero(np.isfinite(earned[t]))
            tried = chosen.copy()
            tried[t] = rng.choice(options)
            if earned[np.arange(STEPS), tried].sum() >= enough:
                chosen = tried
        return chosen

    def episodes(self, barred: Barred, count: int, seed: int, lost: float = 0.0) -> list[Trajectory]:
        rng = np.random.default_rng(seed)
        return [self.episode(barred, rng, lost) for _ in range(count)]


def random_crossing(seed: int, noise: float = 0.0) -> Crossing:
    """Several bumps, and discs on and around some of them."""
    rng = np.random.default_rng(seed)
    bumps = np.column_stack(
        [rng.uniform(0, 6, 6), rng.uniform(-2, 2, 6), rng.uniform(0.4, 1.2, 6), rng.uniform(1, 4, 6)]
    )
    on = rng.choice(6, 3, replace=False)
    places = bumps[on, :2] + rng.normal(0, 0.3, (3, 2))
    return Crossing(bumps, np.column_stack([places, rng.uniform(0.3, 0.9, 3)]), noise)
