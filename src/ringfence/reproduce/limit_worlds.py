"""Small environments with something to keep within, for `reproduce limits` and `multitask`.

Plain Gymnasium, made by the names that the experiments' files give; what each has to keep is
written there. Two need packages of the extra `limits`, which are imported when they are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from ringfence.objects import Array

#: Of the point, m a step along each axis, and half the side of its floor, m.
STRIDE, EDGE = 0.1, 1.0
#: How far a driver sees, m.
SIGHT = 100.0
#: "r" is where the point mass of a maze starts, "g" where it goes to; the floor is 7 m x 5 m.
MAZE = [
    [1, 1, 1, 1, 1, 1, 1],
    [1, 0, 0, 0, 0, 0, 1],
    [1, "r", 0, 0, 0, "g", 1],
    [1, 0, 0, 0, 0, 0, 1],
    [1, 1, 1, 1, 1, 1, 1],
]
#: A road of few cars, of which `Ahead` tells what is seen (highway-env's own tables
#: of all cars take three quarters of a step's time).
ROAD = {
    "observation": {"type": "AttributesObservation", "attributes": []},
    "action": {"type": "ContinuousAction", "longitudinal": True, "lateral": False},
    "lanes_count": 4,
    "vehicles_count": 2,
    "simulation_frequency": 5,
    "duration": 10_000,  # s: an episode's length is the task's
}


class Point(gymnasium.Env[Any, Any]):
    """A point on a square floor, from its left edge to a goal at the right, with a velocity action.

    Observation: x, y and the goal's, m. The reward of a step is minus the distance to the goal.
    goal: where it is, if it is always there; starts: one of which an episode then begins at; slip:
    how far a step may miss along each axis, m: by as much to either side or not at all; noise: the
    standard deviation of what a normal draw adds to each step's reward, m.
    """

    def __init__(
        self,
        goal: Sequence[float] | None = None,
        starts: Sequence[Sequence[float]] = (),
        slip: float = 0.0,
        noise: float = 0.0,
    ) -> None:
        self._goal, self._starts, self._slip, self._noise = goal, starts, slip, noise
        self.observation_space = Box(-EDGE, EDGE, (4,), np.float64)
        self.action_space = Box(-1.0, 1.0, (2,), np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        y, goal_y = self.np_random.uniform(-0.8, 0.8, 2)
        self._state = np.array([-0.9, y, 0.9, goal_y])
        if self._goal is not None:
            start = self._starts[int(self.np_random.integers(len(self._starts)))]
            self._state = np.array([*start, *self._goal], np.float64)
        return self._state.copy(), {}

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        xy, goal = self._state[:2], self._state[2:]
        missed = self._slip * self.np_random.integers(-1, 2, 2) if self._slip else 0.0
        xy[:] = np.clip(xy + STRIDE * np.clip(action, -1, 1) + missed, -EDGE, EDGE)
        reward = -float(np.linalg.norm(goal - xy))
        if self._noise:
            reward += self._noise * float(self.np_random.standard_normal())
        return self._state.copy(), reward, False, False, {}


class PlanarSpeed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """info["speed"], m/s, of an environment that tells both velocities in the plane."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        seen, reward, terminated, truncated, info = super().step(action)
        speed = float(np.hypot(info["x_velocity"], info["y_velocity"]))
        return seen, reward, terminated, truncated, {**info, "speed": speed}


class Ahead(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Of a highway: the own speed, the next car's gap and speed less the own, in tens of m and s.

    Without a car within SIGHT it is as if one went there as fast.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = Box(-np.inf, np.inf, (3,), np.float64)

    def observation(self, observation: Any) -> Array:
        road: Any = self.env.unwrapped
        own = road.vehicle
        front, _ = road.road.neighbour_vehicles(own)
        gap = SIGHT if front is None else min(SIGHT, float(front.position[0] - own.position[0]))
        faster = 0.0 if gap == SIGHT else float(front.speed - own.speed)
        return np.array([own.speed, gap, faster]) / 10.0


def cart_reward(before: Array, actions: Array, after: Array) -> Array:
    """CartPole's 1 for a step upright, and the cart's position in m, [N]."""
    return 1.0 + after[:, 0]


def car_reward(before: Array, actions: Array, after: Array) -> Array:
    """MountainCar's height above the valley, 0 to 2, less its 0.1 for the square of the force."""
    return 1.0 + np.sin(3 * after[:, 0]) - 0.1 * np.square(actions[:, 0])


def point_maze() -> gymnasium.Env[Any, Any]:
    """Gymnasium-Robotics' point mass on an open floor, from left to right, rewarded if near."""
    import gymnasium_robotics

    gymnasium.register_envs(gymnasium_robotics)
    return gymnasium.make("PointMaze_OpenDense-v3", maze_map=MAZE, max_episode_steps=-1)


def highway() -> gymnasium.Env[Any, Any]:
    """highway-env's straight road: the throttle alone, few other cars, rewarded up to 30 m/s."""
    from highway_env.envs.highway_env import HighwayEnv

    return Ahead(HighwayEnv(ROAD))
