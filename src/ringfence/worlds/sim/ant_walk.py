"""Ants that walk along routes, many together: one +x policy, turned by the Ant's symmetries.

The controller was trained by constrained RL to walk along +x at 1.5 m/s or less; `controller/` has
its weights, its configuration and how to train it again. An Ant on a route is told at each step
to walk towards a point a little ahead of it on its line, and its view is turned so that this
direction is +x; of the four ways to name its legs it keeps the one that suits its heading.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from ringfence.objects import Array, Trajectory
from ringfence.worlds.ant import NV, AntSimulator, AntTask, model
from ringfence.worlds.sim import ant_symmetry as symmetry
from ringfence.worlds.sim.floor import ARRIVED, FELL, LATE, REACHED, reward
from ringfence.worlds.sim.rollouts import Actor

#: The speed that the controller's extra input is measured from, m/s.
SPEED_LIMIT = 1.5
#: How far ahead of itself on its line an Ant aims, and how near to the end of a line it turns, m;
#: and by how much its direction turns in a step at most, in radians. On staircases of 4 m, turning
#: at once 1 of 1,564 turns ended in a fall, by 0.07 or 0.1 a step 3 of 1,920 (1.34 m/s); by 0.05
#: none of 1,589 (1.43 m/s), and with TURN = 2 no Ant was more than 1.4 m off its line.
LOOK_AHEAD = 1.5
TURN = 2.0
SLEW = 0.05
#: What an Ant walks in a step, m. Near its goal it may turn faster, so that its circle is never
#: wider than its distance from the goal: it would walk around it for ever.
STEP = 0.075
#: The legs are renamed when the heading is further than this from the direction, in radians. More
#: than an eighth of a turn, so that an Ant half-way between two names keeps the one it has.
RENAME = np.pi / 3


@dataclass(frozen=True, eq=False)
class Walk:
    """One episode to be walked: start and goal (x, y), and the corners [m, 2] on the way."""

    start: Array
    goal: Array
    corners: Array


@dataclass(frozen=True, eq=False)
class Walked:
    """How it went: outcome is ARRIVED, FELL or LATE. Observations [T+1, 29] begin with x and y."""

    trajectory: Trajectory
    outcome: int


@cache
def controller() -> Actor:
    """The policy that ships with the package."""
    data = files("ringfence.worlds").joinpath("controller/policy.safetensors").read_bytes()
    return Actor(safetensors.numpy.load(data))


def walk_groups(
    groups: Sequence[Sequence[Walk]], horizon: int, threads: int = 2
) -> list[list[Walked]]:
    """Walk all groups of episodes, `threads` groups at a time.

    A group's Ants step together and nothing else does, so that its bytes depend neither on the
    other groups nor on the threads: simulators release the interpreter lock while they step.
    """
    with ThreadPoolExecutor(max_workers=threads) as pool:
        return list(pool.map(lambda walks: walk(walks, horizon), groups))


def walk(walks: Sequence[Walk], horizon: int) -> list[Walked]:
    """One group: each Ant until it arrives, falls or is late."""
    if not walks:
        return []
    n, actor = len(walks), controller()
    simulator, pilot = AntSimulator(AntTask(), n), Pilot(walks)
    goals = np.array([w.goal for w in walks])
    xy = np.array([w.start for w in walks])
    seen = simulator.place(np.arange(n), standing(xy))
    speed_input, outcome, length = np.zeros(n), np.full(n, LATE), np.full(n, horizon)
    walking = np.arange(n)
    states, taken, paid = [np.hstack([xy, seen])], [], []
    for t in range(horizon):
        direction, quarters = pilot.steer(xy, seen)
        inputs = np.column_stack([symmetry.view(seen, direction, quarters), speed_input])
        actions = symmetry.torques(np.clip(actor.mean(inputs), -1, 1), quarters)
        step = simulator.step(actions, walking)
        xy, seen, speed_input = (
            step.features[:, :2],
            step.observations,
            step.features[:, 2] - SPEED_LIMIT,
        )
        states.append(np.hstack([xy, seen]))
        taken.append(actions)
        paid.append(reward(xy, goals))
        arrived = np.linalg.norm(xy - goals, axis=1) <= REACHED
        # An Ant on its back never gets up, though Ant-v5 calls it healthy.
        fallen = step.terminated | (symmetry.upright(seen) < 0)
        ended = walking[(arrived | fallen)[walking]]
        outcome[ended] = np.where(arrived[ended], ARRIVED, FELL)
        length[ended] = t + 1
        walking = np.setdiff1d(walking, ended)
        if not len(walking):
            break
    return [
        Walked(_trajectory(np.array(states), np.array(taken), np.array(paid), i, T, end), end)
        for i, (T, end) in enumerate(zip(length.tolist(), outcome.tolist(), strict=True))
    ]


def standing(xy: Array) -> Array:
    """States [n, 29] of Ants at rest in their first pose, at the points xy [n, 2]."""
    states = np.tile(np.concatenate([model().qpos0, np.zeros(NV)]), (len(xy), 1))
    states[:, :2] = xy
    return states


def _trajectory(
    states: Array, actions: Array, rewards: Array, i: int, T: int, outcome: int
) -> Trajectory:
    return Trajectory(
        observations=states[: T + 1, i],
        actions=actions[:T, i],
        rewards=rewards[:T, i],
        features=states[1 : T + 1, i, :2],
        terminated=outcome != LATE,
    )


class Pilot:
    """Tells each Ant of a group where to go, from corner to corner."""

    def __init__(self, walks: Sequence[Walk]) -> None:
        lines = [np.vstack([w.start, w.corners.reshape(-1, 2), w.goal]) for w in walks]
        longest = max(len(line) for line in lines)
        self._points = np.array(
            [np.vstack([line, np.repeat(line[-1:], longest - len(line), 0)]) for line in lines]
        )
        self._last = np.array([len(line) - 2 for line in lines])
        self._at = np.zeros(len(walks), np.intp)
        self._quarters = np.zeros(len(walks), np.intp)
        self._direction: Array | None = None

    def steer(self, xy: Array, seen: Array) -> tuple[Array, NDArray[np.intp]]:
        """Positions [n, 2] and observations [n, 27] -> direction [n], names of the legs [n]."""
        along, end, unit = self._line(xy)
        turning = (end - along < TURN) & (self._at < self._last)
        if turning.any():
            self._at[turning] += 1
            along, end, unit = self._line(xy)
        origin = self._points[np.arange(len(xy)), self._at]
        aim = origin + np.minimum(along + LOOK_AHEAD, end)[:, None] * unit
        wanted = np.arctan2(aim[:, 1] - xy[:, 1], aim[:, 0] - xy[:, 0])
        direction = self._turned(wanted, np.linalg.norm(self._points[:, -1] - xy, axis=1))
        off = symmetry.yaw(seen) - direction + 0.5 * np.pi * self._quarters
        off = np.abs((off + np.pi) % (2 * np.pi) - np.pi)
        best = symmetry.nearest_quarters(seen, direction)
        self._quarters = np.where(off > RENAME, best, self._quarters)
        return direction, self._quarters

    def _turned(self, wanted: Array, left: Array) -> Array:
        """The direction, turned towards the wanted one (at once at the start).

        left [n]: the distance to the goal, m.
        """
        if self._direction is None:
            self._direction = wanted
        off = (wanted - self._direction + np.pi) % (2 * np.pi) - np.pi
        most = np.maximum(SLEW, 2 * STEP / np.maximum(left, REACHED))
        self._direction = self._direction + np.clip(off, -most, most)
        return self._direction

    def _line(self, xy: Array) -> tuple[Array, Array, Array]:
        """How far along its line each Ant is, the line's length, and its direction [n, 2]."""
        rows = np.arange(len(xy))
        a, b = self._points[rows, self._at], self._points[rows, self._at + 1]
        end = np.linalg.norm(b - a, axis=1)
        unit = (b - a) / np.maximum(end, 1e-9)[:, None]
        return np.asarray(((xy - a) * unit).sum(axis=1)), end, unit
