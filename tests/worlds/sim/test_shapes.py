"""Environments that do not return what they declared: clear errors."""

from __future__ import annotations

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from random_policies import policy_for
from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Feature
from ringfence.worlds.gym import GymTask
from ringfence.worlds.sim.rollouts import CollectorSpec


class Odd(gymnasium.Env):
    """`wrong` comes with two numbers in the place of one, from the fourth step on."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, wrong: str) -> None:
        self.wrong, self.steps = wrong, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2 if self.wrong == "reset" else 1, np.float32), {}

    def step(self, action):
        self.steps += 1
        late = self.steps > 3
        seen = np.zeros(2 if late and self.wrong == "step" else 1, np.float32)
        reward = np.zeros(2) if late and self.wrong == "reward" else 0.0
        return seen, reward, False, False, {"x": 0.0}


def make_reset() -> Odd:
    return Odd("reset")


def make_step() -> Odd:
    return Odd("step")


def make_reward() -> Odd:
    return Odd("reward")


def make_right() -> Odd:
    return Odd("")


TASK = GymTask(f"{__name__}:make_right", (Feature("x", "m"),), steps=20)


@pytest.mark.parametrize(
    ("maker", "error", "message"),
    [
        ("make_reset", InvalidInput, r"after a reset, Odd returned an observation of shape \(2,\)"),
        ("make_step", SolverFailed, r"after a step, Odd .* shape \(2,\), but .* has \(1,\)"),
        ("make_reward", SolverFailed, r"Odd returned a reward of shape \(2,\), not a number"),
    ],
)
def test_a_wrong_shape_is_named(maker: str, error: type[Exception], message: str) -> None:
    task = replace(TASK, env=f"{__name__}:{maker}")
    collector = task.collector(CollectorSpec(2, lambda p: p[:, 0], (0,)))
    with pytest.raises(error, match=message):
        collector.collect(policy_for(task), 8, 0)


def test_right_shapes_pass() -> None:
    chunk = TASK.collector(CollectorSpec(2, lambda p: p[:, 0], (0,))).collect(
        policy_for(TASK), 8, 0
    )
    assert chunk.rewards.shape == (8, 2)
