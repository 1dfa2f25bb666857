"""Environments and functions that a TOML file of the tests names."""

from __future__ import annotations

import gymnasium
import numpy as np


class Walk(gymnasium.Env):
    """x moves by the action; the reward is the way to the right; x and its speed are in info."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, stride: float = 0.1) -> None:
        self.stride = stride

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.v = self.np_random.uniform(-0.1, 0.1), 0.0
        return np.array([self.x, self.v], np.float32), {}

    def step(self, action):
        self.v = self.stride * float(action[0])
        self.x += self.v
        info = {"x": self.x, "speed": abs(self.v) / self.stride}
        return np.array([self.x, self.v], np.float32), self.v, False, False, info


def make_walk(stride: float = 0.1) -> Walk:
    return Walk(stride)


def speed(before, actions, after):
    """Features of the transition: how far the step went."""
    return np.abs(after[:, :1] - before[:, :1]) / 0.1


def leftwards(before, actions, after):
    return before[:, 0] - after[:, 0]
