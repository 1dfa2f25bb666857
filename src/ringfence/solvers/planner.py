"""The planner: shortest ways over a map of flagged cells, ties broken at random.

The paper's multi-task player has no constrained RL. It averages the learned cost over each cell,
flags the cells whose average exceeds a threshold, and finds waypoints by value iteration with a
penalty per flagged cell: lam is that penalty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Problem, Solution, behaviour_of
from ringfence.solvers.solver import Report, pictured, quiet
from ringfence.worlds.sim.ant_walk import Walk, Walked, walk
from ringfence.worlds.sim.floor import Cell, MazeTask, flag

Bools = NDArray[np.bool_]

#: What entering a flagged cell costs, in moves (the paper's). More than any way is long.
PENALTY = 100.0

STEPS = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])


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
LEARNER, EXPERT, HELD_OUT, ALONE = 0, 1, 2, 4


@dataclass(frozen=True)
class Config:
    """The Ant's maze: shortest ways around the cells that a constraint flags.

    episodes: walked from each start.
    """

    kind: Literal["planner"] = "planner"
    episodes: int = 10

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise InvalidInput(f"[solver] episodes must be at least 1, got {self.episodes}")


def make(config: Config) -> Planner:
    return Planner(config.episodes)


@dataclass(frozen=True)
class Planner:
    """Plans a task over the cells that a constraint flags, and walks `episodes_each` times from
    each start.

    What an answer's policy holds: `flagged` [rows, cols]; `moves` [rows, cols, 4]; and for each
    episode `outcome`, `length`, `returns`, `start` (its number) and `crossed` (flagged cells on
    its route: more than 0 where no way around is left); `xy` [sum of lengths, 2]: all positions,
    episode after episode.

    A game's walks have a stream of the goal's own, whatever the iteration: a plan that has not
    changed is not walked again, because the ledger names it by its moves.
    """

    episodes_each: int = 10
    walk: Callable[[Sequence[Walk], int], list[Walked]] = walk
    at_once: ClassVar[int] = 2  # simulators release the interpreter lock while they step
    learns: ClassVar[bool] = False

    def key(self, problem: Problem, usual: dict[str, Any]) -> dict[str, Any]:
        task = _maze_task(problem)
        moves = best_moves(flag(problem.constraint, task.layout), task.goal)
        return {
            **{name: usual[name] for name in ("schema", "world", "solver", "task")},
            "starts": [list(start) for start in task.starts],
            "moves": np.packbits(moves).tobytes().hex(),
            "seed": list(self._stream(problem)),
        }

    def check(self, problem: Problem) -> None:
        _maze_task(problem)

    def __call__(
        self, problem: Problem, checkpoint: Path | None = None, report: Report = quiet
    ) -> Solution:
        task, seed = _maze_task(problem), self._stream(problem)
        flagged = flag(problem.constraint, task.layout)
        moves = best_moves(flagged, task.goal)
        plans = [
            plan(task, moves, start, np.random.default_rng([*seed, n, j]))
            for n, start in enumerate(task.starts)
            for j in range(self.episodes_each)
        ]
        return self._solution(
            flagged, moves, plans, self.walk([p.walk for p in plans], task.horizon)
        )

    def _stream(self, problem: Problem) -> tuple[int, ...]:
        """The path of random numbers: (seed, of a game or not, goal[, start])."""
        task = _maze_task(problem)
        if len(problem.seed) > 1:
            return (problem.seed[0], LEARNER, *task.goal)
        return (problem.seed[0], ALONE, *task.goal, *task.starts[0])

    def way(self, problem: Problem) -> bool:
        """Can the goal be reached around the flagged cells from every start?"""
        task = _maze_task(problem)
        flagged = flag(problem.constraint, task.layout)
        far = distances(flagged, task.goal)
        return not flagged[task.goal] and all(far[start] < PENALTY for start in task.starts)

    def free(self) -> Planner:
        return self

    def watch(self) -> Planner:
        raise ValueError("a planner has no policy before it plans")

    def episodes(
        self, problem: Problem, solution: Solution, count: int, seed: tuple[int, ...]
    ) -> None:
        return None  # a solution has its own

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
            "start": np.arange(len(runs)) // self.episodes_each,
            "crossed": np.array([flagged[tuple(p.cells[1:].T)].sum() for p in plans]),
            "xy": np.concatenate([t.features for t in trajectories]),
        }
        steps = int(length.sum())
        return Solution(
            policy, PENALTY, behaviour_of(trajectories), steps, pictured=pictured(trajectories)
        )


def _maze_task(problem: Problem) -> MazeTask:
    if not isinstance(problem.task, MazeTask):
        raise InvalidInput(
            f"task {problem.task.name!r} is not one of a maze's floor: the planner can't solve it"
        )
    return problem.task


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
