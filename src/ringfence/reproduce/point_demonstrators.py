"""Demonstrators of the point among obstacles, who know the truth and plan on a grid of the floor.

They are the best that the truth allows, or wander on their way, within a share of what is best
from where they began. The grid is finer than a learner can tell: one of half the pitch adds about
0.1% to their returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.demos.logs import Log
from ringfence.objects import Array, Constraint, Demonstrations
from ringfence.reproduce.limit_worlds import EDGE, STRIDE
from ringfence.runs.gather import complete, split

EPISODES = 60
#: The seed path of those who wander.
WANDERS = 78
#: Of the grid, m, and how many of it a step may go along an axis.
PITCH = 0.02
REACH = round(STRIDE / PITCH)
#: A step's moves [m, 2], in units of PITCH.
MOVES = (np.argwhere(np.ones((2 * REACH + 1,) * 2)) - REACH).astype(np.int8)
#: Of `raw`: demonstrators who stood on the very edge would break it by rounding.
EDGE_IS_OUT = 1e-6

Mask = NDArray[np.bool_]


def axis() -> Array:
    """Half a pitch off all edges of cells: rounding must not decide in which one somebody is."""
    return np.arange(-EDGE + PITCH / 2, EDGE, PITCH)


@dataclass(frozen=True, eq=False)
class Plan:
    """The best moves through free places, and what is still to be earned.

    moves [steps, n, n, 2]: in units of PITCH; worth [steps + 1, n, n]: the largest sum of rewards
    from a place on, before each step and after the last; free [n, n].
    """

    moves: NDArray[np.int8]
    worth: Array
    free: Mask


def best_moves(goal: Sequence[float], truth: Constraint, steps: int) -> NDArray[np.int8]:
    """Moves [steps, n, n, 2], in units of PITCH, that lead to the largest sum of rewards through
    places that the truth allows."""
    return planned(goal, free_places(truth), steps).moves


def free_places(truth: Constraint) -> Mask:
    """Which places [n, n] of the grid the truth allows."""
    return np.asarray(truth.raw(places().reshape(-1, 2)) < -EDGE_IS_OUT).reshape(2 * (len(axis()),))


def places() -> Array:
    """x and y of the grid's places [n, n, 2], m."""
    return np.stack(np.meshgrid(axis(), axis(), indexing="ij"), axis=-1)


def planned(goal: Sequence[float] | Array, free: Mask, steps: int) -> Plan:
    """Dynamic programming back from an episode's end."""
    n, reach = len(free), REACH
    reward = np.where(free, -np.linalg.norm(places() - np.asarray(goal), axis=-1), -np.inf)
    found, worth = np.zeros((steps, n, n, 2), np.int8), np.zeros((steps + 1, n, n))
    for t in reversed(range(steps)):
        ahead = np.full((n + 2 * reach, n + 2 * reach), -np.inf)
        ahead[reach : reach + n, reach : reach + n] = reward + worth[t + 1]
        options = np.stack(
            [ahead[reach + i : reach + i + n, reach + j : reach + j + n] for i, j in MOVES.tolist()]
        )
        best = options.argmax(axis=0)
        found[t] = MOVES[best]
        worth[t] = np.take_along_axis(options, best[None], axis=0)[0]
    return Plan(found, worth, free)


def demonstrations(
    world: Any, truth: Constraint, seed: int, heldout: float, below: float = 0.0
) -> Demonstrations:
    """Of each task the best episodes that the truth allows, or ones that wander, and earn less than
    the best from their start by at most the share `below`."""
    tasks, free = [], free_places(truth)
    for k, task in enumerate(world.tasks):
        plan = planned(task.kwargs["goal"], free, task.horizon)
        episodes = [walked(task, plan, 1000 * seed + 100 * k + n, below) for n in range(EPISODES)]
        tasks.append(complete(split(task, episodes, heldout), deterministic=True)[0])
    return Demonstrations(tuple(tasks), world.features, {"experts": "planned", "seed": seed})


def walked(task: Any, plan: Plan, seed: int, below: float = 0.0) -> Log:
    """An episode of the environment under the plan, as anybody would record it."""
    env, rng = task.make(), np.random.default_rng([seed, WANDERS])
    seen, actions = [env.reset(seed=seed)[0]], []
    at = index_of(seen[0][:2])
    spare = below * abs(float(plan.worth[0][at]))
    for t in range(task.horizon):
        at = index_of(seen[-1][:2])
        move = plan.moves[t][at]
        if spare:
            move, spare = wandered(plan, np.asarray(task.kwargs["goal"]), t, at, spare, rng)
        actions.append(move * PITCH / STRIDE)
        seen.append(env.step(actions[-1])[0])
    env.close()
    label = f"task {task.name!r}, seed {seed}"
    return Log(label, np.array(seen), np.array(actions), None, None, {}, False, seed)


def wandered(
    plan: Plan, goal: Array, t: int, at: tuple[int, int], spare: float, rng: np.random.Generator
) -> tuple[NDArray[np.int8], float]:
    """A move to any free place, if what it loses can be spared, else the best one; what can still
    be spared then."""
    best = plan.moves[t][at]
    move = MOVES[rng.integers(len(MOVES))]
    to = (at[0] + int(move[0]), at[1] + int(move[1]))
    if not (min(to) >= 0 and max(to) < len(plan.free) and plan.free[to]):
        return best, spare
    earned = float(plan.worth[t + 1][to] - np.linalg.norm(axis()[list(to)] - goal))
    lost = max(float(plan.worth[t][at]) - earned, 0.0)
    return (move, spare - lost) if lost <= spare else (best, spare)


def index_of(xy: Array) -> tuple[int, int]:
    """The place of the grid that is nearest."""
    i, j = np.rint((xy + EDGE) / PITCH - 0.5).astype(int)
    return int(i), int(j)
