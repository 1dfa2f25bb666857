"""A point mass on a maze's floor, with the goal in its observation: for policies without a planner.

The floor is the Ant's (4 m cells), the point moves by up to 1 m a step in x and y and stops at the
map's edge. All tasks are one: each episode has a start and a goal of its own, and a policy that
sees the goal serves them all. The reward of a step is exp(-distance / 8 m), and an episode lasts
150 steps: at the goal the point has to stay. Walls, as everywhere, are nothing but a cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.objects import Array, Feature, Trajectory
from ringfence.worlds.sim.floor import CELL, FEATURES, Cell, Layout
from ringfence.worlds.sim.rollouts import Collector, CollectorSpec, LocalCollector, Step

HORIZON = 150
STRIDE = 1.0  # m a step
REWARD_SCALE = 8.0  # m
STATE = 4  # x, y, and the goal's


@dataclass(frozen=True, eq=False)
class PointTask:
    """From one of `starts` to one of `goals`, drawn alike for each episode."""

    layout: Layout
    starts: tuple[Cell, ...]
    goals: tuple[Cell, ...]
    horizon: int = HORIZON

    def __repr__(self) -> str:
        return f"PointTask({self.layout}, {self.starts}, {self.goals}, {self.horizon})"

    @property
    def name(self) -> str:
        return "goal " + " or ".join(f"({row},{col})" for row, col in self.goals)

    @property
    def features(self) -> tuple[Feature, ...]:
        return FEATURES

    @property
    def observation_dim(self) -> int:
        return 6

    @property
    def action_low(self) -> Array:
        return -np.ones(2)

    @property
    def action_high(self) -> Array:
        return np.ones(2)

    def collector(self, spec: CollectorSpec) -> Collector:
        return LocalCollector(self, PointSimulator(self, spec.copies), spec)


def point_reward(xy: Array, goal: Array) -> Array:
    return np.asarray(np.exp(-np.linalg.norm(xy - goal, axis=-1) / REWARD_SCALE))


class PointSimulator:
    """`copies` points that step together; a state is (x, y) and the goal, [4]."""

    def __init__(self, task: PointTask, copies: int) -> None:
        self.copies, self._task = copies, task
        self._state = np.zeros((copies, STATE))
        rows, cols = task.layout.shape
        self._edge = np.array([cols, rows]) * CELL / 2

    def reset(self, which: NDArray[np.intp], rngs: Sequence[np.random.Generator]) -> Array:
        centre = self._task.layout.centre
        for n, rng in zip(which, rngs, strict=True):
            start = self._task.starts[rng.integers(len(self._task.starts))]
            goal = self._task.goals[rng.integers(len(self._task.goals))]
            noise = rng.uniform(-CELL / 4, CELL / 4, 2)
            self._state[n] = np.concatenate([centre(start) + noise, centre(goal)])
        return self._observe()

    def place(self, which: NDArray[np.intp], states: Array) -> Array:
        self._state[which] = states
        return self._observe()

    def step(self, actions: Array) -> Step:
        xy, goal = self._state[:, :2], self._state[:, 2:]
        xy[:] = np.clip(xy + STRIDE * actions, -self._edge, self._edge)
        ended = np.zeros(self.copies, np.bool_)
        return Step(self._observe(), point_reward(xy, goal), xy.copy(), ended)

    def save(self) -> dict[str, Array]:
        return {"state": self._state.copy()}

    def restore(self, saved: Mapping[str, Array]) -> Array:
        self._state = saved["state"].copy()
        return self._observe()

    def close(self) -> None:
        pass

    def _observe(self) -> Array:
        """Position, goal and the way to it, in tens of metres, [copies, 6]."""
        xy, goal = self._state[:, :2], self._state[:, 2:]
        return np.asarray(np.hstack([xy, goal, goal - xy]) / 10.0)


def follow(corners: Array, goal: Array, horizon: int = HORIZON) -> Trajectory:
    """A point that walks a line of corners [m, 2] in full strides and then stays: an expert.

    A stride is at most 1 m in x and in y; the lines of a maze are along one of them.
    """
    xy, at, seen, taken = corners[0].copy(), 1, [corners[0].copy()], []
    for _ in range(horizon):
        if at < len(corners) - 1 and np.abs(corners[at] - xy).max() < 1e-9:
            at += 1
        step = np.clip(corners[at] - xy, -STRIDE, STRIDE)
        xy = xy + step
        seen.append(xy)
        taken.append(step / STRIDE)
    path = np.array(seen)
    target = np.broadcast_to(goal, path.shape)
    return Trajectory(
        observations=np.hstack([path, target, target - path]) / 10.0,
        actions=np.array(taken),
        rewards=point_reward(path[1:], goal),
        features=path[1:],
        terminated=False,
    )
