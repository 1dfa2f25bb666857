"""The planner: shortest ways over a map of flagged cells, ties broken at random.

The paper's multi-task player has no constrained RL. It averages the learned cost over each cell,
flags the cells whose average exceeds a threshold, and finds waypoints by value iteration with a
penalty per flagged cell: lam is that penalty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.objects import Array, Constraint, Solution, behaviour_of
from ringfence.worlds.sim.ant_walk import Walk, Walked, walk_groups
from ringfence.worlds.sim.floor import CELL, Cell, Layout, MazeTask

Bools = NDArray[np.bool_]

#: A cell is flagged where the mean of the activated cost over it exceeds this (the paper's).
THRESHOLD = 0.5
#: What entering a flagged cell costs, in moves (the paper's). More than any way is long.
PENALTY = 100.0
#: Points per side of a cell's lattice. The paper samples 100,000 points per cell.
LATTICE = 20

STEPS = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])


def cell_means(c: Constraint, layout: Layout, lattice: int = LATTICE) -> Array:
    """The mean activated cost of each cell over lattice^2 points, [rows, cols]."""
    offsets = ((np.arange(lattice) + 0.5) / lattice - 0.5) * CELL
    square = np.stack(np.meshgrid(offsets, offsets), axis=-1).reshape(-1, 2)
    centres = layout.centre(np.indices(layout.shape).reshape(2, -1).T)
    cost = c.cost((centres[:, None] + square).reshape(-1, 2))
    return np.asarray(cost.reshape(*layout.shape, -1).mean(axis=-1))


def flag(c: Constraint, layout: Layout) -> Bools:
    """The cells that the planner goes around, [rows, cols]."""
    return cell_means(c, layout) > THRESHOLD


def distances(flagged: Bools, goal: Cell, penalty: float = PENALTY) -> Array:
    """Value iteration: the least cost of getting from each cell to the goal, [rows, cols].

    A move costs 1, and `penalty` more into a flagged cell.
    """
    price = 1.0 + penalty * flagged
    best = np.full(flagged.shape, np.inf)
    best[goal] = 0.0
    while True:
        through = np.pad(best + price, 1, constant_values=np.inf)
        new = np.min([best, *(_shifted(through, step) for step in STEPS)], axis=0)
        if (new == best).all():
            return np.asarray(best)
        best = new


def _shifted(padded: Array, step: NDArray[np.intp]) -> Array:
    """The neighbour's entry for each cell."""
    rows, cols = padded.shape[0] - 2, padded.shape[1] - 2
    return padded[1 + step[0] : 1 + step[0] + rows, 1 + step[1] : 1 + step[1] + cols]


def best_moves(flagged: Bools, goal: Cell, penalty: float = PENALTY) -> Bools:
    """The moves that lie on a best way to the goal, [rows, cols, 4]; none at the goal."""
    best = distances(flagged, goal, penalty)
    price = np.pad(best + 1.0 + penalty * flagged, 1, constant_values=np.inf)
    moves = np.stack([_shifted(price, step) == best for step in STEPS], axis=-1)
    moves[goal] = False
    return moves


def route(moves: Bools, start: Cell, rng: np.random.Generator) -> NDArray[np.intp]:
    """Cells [n, 2] from start to goal, each next one drawn from the best moves alike."""
    cells = [np.array(start)]
    while (options := np.flatnonzero(moves[tuple(cells[-1])])).size:
        cells.append(cells[-1] + STEPS[rng.choice(options)])
    return np.array(cells, np.intp)


def corners(cells: NDArray[np.intp]) -> NDArray[np.intp]:
    """The cells [m, 2] between the first and the last one where a route turns."""
    steps = np.diff(cells, axis=0)
    turns = (np.diff(steps, axis=0) != 0).any(axis=1)
    return np.asarray(cells[1:-1][turns])


# The policy player ------------------------------------------------------------------------------

#: Streams of random numbers, the second part of each seed path.
LEARNER, EXPERT, HELD_OUT = 0, 1, 2

WalkGroups = Callable[[Sequence[Sequence[Walk]], int, int], list[list[Walked]]]


@dataclass(frozen=True)
class Planner:
    """Plans each task over a map of flagged cells, and walks `episodes` times from each start.

    What an answer's policy holds: `flagged` [rows, cols]; `moves` [rows, cols, 4]; and for each
    episode `outcome`, `length`, `returns`, `start` (its number) and `crossed` (flagged cells on
    its route: more than 0 where no way around is left); `xy` [sum of lengths, 2]: all positions,
    episode after episode.
    """

    episodes: int = 10
    threads: int = 2
    walk: WalkGroups = walk_groups

    def solve_all(
        self, tasks: Sequence[MazeTask], flagged: Bools, seeds: Sequence[tuple[int, ...]]
    ) -> list[Solution]:
        """All tasks' episodes together; task k draws its random numbers from seeds[k] alone."""
        moves = [best_moves(flagged, task.goal) for task in tasks]
        plans = [
            [
                plan(task, m, start, np.random.default_rng([*seed, n, j]))
                for n, start in enumerate(task.starts)
                for j in range(self.episodes)
            ]
            for task, m, seed in zip(tasks, moves, seeds, strict=True)
        ]
        walks = [[p.walk for p in group] for group in plans]
        walked = self.walk(walks, tasks[0].horizon, self.threads)
        return [
            self._solution(flagged, m, group, runs)
            for m, group, runs in zip(moves, plans, walked, strict=True)
        ]

    def _solution(
        self, flagged: Bools, moves: Bools, plans: Sequence[Plan], runs: Sequence[Walked]
    ) -> Solution:
        trajectories = [run.trajectory for run in runs]
        length = np.array([len(t) for t in trajectories])
        policy = {
            "flagged": flagged.astype(np.uint8),
            "moves": moves.astype(np.uint8),
            "outcome": np.array([run.outcome for run in runs]),
            "length": length,
            "returns": np.array([t.rewards.sum() for t in trajectories]),
            "start": np.arange(len(runs)) // self.episodes,
            "crossed": np.array([flagged[tuple(p.cells[1:].T)].sum() for p in plans]),
            "xy": np.concatenate([t.features for t in trajectories]),
        }
        return Solution(policy, PENALTY, behaviour_of(trajectories), int(length.sum()))


@dataclass(frozen=True, eq=False)
class Plan:
    """A route of cells [n, 2] and the walk along it."""

    cells: NDArray[np.intp]
    walk: Walk


def plan(task: MazeTask, moves: Bools, start: Cell, rng: np.random.Generator) -> Plan:
    """Draw one episode's places and one of the best routes."""
    begin, goal = task.places(start, rng)
    cells = route(moves, start, rng)
    return Plan(cells, Walk(begin, goal, task.layout.centre(corners(cells))))
