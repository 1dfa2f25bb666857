"""A point on a line, for what needs no Ant: reward is its speed, features are (x, speed)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringfence.constraints.linear import parse_inequality
from ringfence.objects import Feature, Problem
from ringfence.worlds.sim.rollouts import CollectorSpec, LocalCollector, Step


@dataclass(frozen=True)
class Line:
    """Speed = action; `poison` makes one quantity NaN at a step; episodes may be cut early."""

    poison: str = ""
    poison_step: int = 20
    cut_every: int = 0
    features: tuple[Feature, ...] = (Feature("x", "m"), Feature("speed", "m/s"))
    horizon: int = 50
    observation_dim: int = 2
    name: str = "line"

    @property
    def action_low(self):
        return -np.ones(1)

    @property
    def action_high(self):
        return np.ones(1)

    def collector(self, spec: CollectorSpec):
        return LocalCollector(self, LineSimulator(self, spec.copies), spec)


class LineSimulator:
    def __init__(self, task: Line, copies: int) -> None:
        self.copies, self._task = copies, task
        self._x, self._clock = np.zeros(copies), 0

    def reset(self, which, rngs):
        self._x[which] = [0.1 * r.standard_normal() for r in rngs]
        return self._observe()

    def place(self, which, states):
        self._x[which] = states[:, 0]
        return self._observe()

    def step(self, actions):
        self._clock += 1
        self._x += 0.1 * actions[:, 0]
        reward, features = actions[:, 0].copy(), np.column_stack([self._x, actions[:, 0]])
        observation, poison = self._observe(), self._task.poison
        if self._clock == self._task.poison_step:
            {"observation": observation, "reward": reward, "feature": features}.get(
                poison, np.empty(1)
            )[0] = np.nan
        cut, every = np.zeros(self.copies, np.bool_), self._task.cut_every
        cut[:] = every > 0 and self._clock % every == 0
        return Step(observation, reward, features, np.abs(self._x) > 100, cut)

    def save(self):
        return {"x": self._x.copy(), "clock": np.array([float(self._clock)])}

    def restore(self, saved):
        self._x, self._clock = saved["x"].copy(), int(saved["clock"][0])
        return self._observe()

    def close(self):
        pass

    def _observe(self):
        return np.column_stack([self._x, np.ones(self.copies)])


def line_problem(delta: float = 5.0, **task) -> Problem:
    line = Line(**task)
    return Problem(line, parse_inequality("speed <= 0.3", line.features), delta, None, (0,))
