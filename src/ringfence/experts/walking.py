"""Experts of the Ant's maze: the planner on the true map. Only here is the truth read, in the
demonstrators' stead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Demonstrations, TaskDemos, Trajectory
from ringfence.solvers.planner import EXPERT, HELD_OUT, best_moves, plan
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.sim.ant_walk import Walked, walk_groups
from ringfence.worlds.sim.floor import ARRIVED, OUTCOMES, MazeTask


@dataclass(frozen=True)
class Config:
    """How many episodes each expert walks.

    paths: to learn from, from each start; heldout: the same, held out; seed: of their randomness.
    """

    paths: int = 10
    heldout: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.paths < 1 or self.heldout < 0 or self.seed < 0:
            raise InvalidInput(
                "experts: at least 1 path, 0 held-out ones and seed 0 are needed, got "
                f"{self.paths}, {self.heldout} and {self.seed}"
            )


def make_demonstrations(maze: AntMaze, config: Config, threads: int = 2) -> Demonstrations:
    """The planner on the true map. Who falls or is late demonstrates nothing; it is counted.

    Each episode has a stream of its own, (seed; split, task, start, number).
    """
    if not maze.truth.known:
        raise InvalidInput("this map has no '#' cell: its truth is unknown, bring demonstrations")
    splits = ((EXPERT, config.paths), (HELD_OUT, config.heldout))
    groups = [
        [
            plan(task, moves, start, np.random.default_rng([config.seed, split, k, n, j])).walk
            for n, start in enumerate(task.starts)
            for j in range(count)
        ]
        for k, task in enumerate(maze.tasks)
        for moves in [best_moves(maze.truth.walls, task.goal)]
        for split, count in splits
    ]
    walked = walk_groups(groups, maze.horizon, threads)
    train, heldout = walked[::2], walked[1::2]
    demos = [
        TaskDemos(task.name, _arrived(task, a), _arrived(task, b, required=False))
        for task, a, b in zip(maze.tasks, train, heldout, strict=True)
    ]
    ends = np.bincount([w.outcome for group in walked for w in group], minlength=len(OUTCOMES))
    provenance: dict[str, Any] = {
        "world": "ant-maze",
        "experts": "planner on the true map",
        "paths_per_start": config.paths,
        "heldout_per_start": config.heldout,
        "seed": config.seed,
        "episodes": {name: int(n) for name, n in zip(OUTCOMES, ends, strict=True)},
        "versions": {name: version(name) for name in ("ringfence", "numpy", "mujoco")},
    }
    return Demonstrations(tuple(demos), maze.features, provenance)


def _arrived(
    task: MazeTask, walked: Sequence[Walked], required: bool = True
) -> tuple[Trajectory, ...]:
    good = tuple(w.trajectory for w in walked if w.outcome == ARRIVED)
    if required and not good:
        raise SolverFailed(f"experts of task {task.name!r}: none of {len(walked)} arrived")
    return good
