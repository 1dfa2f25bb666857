"""The AntMaze on the way into and out of a game: experts, checks, and its paths as cells.

Only `make_demonstrations` reads the truth, in the demonstrators' stead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis import evidence as evidences
from ringfence.constraints.table import TableConstraint
from ringfence.demos.checks import Finding
from ringfence.demos.dataset import Demonstrations, TaskDemos
from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Array, Constraint, Solution, Trajectory
from ringfence.solvers.planner import EXPERT, HELD_OUT, best_moves, flag, plan
from ringfence.worlds.ant_maze import AntMaze, MazeTruth
from ringfence.worlds.finite import FiniteTask
from ringfence.worlds.grid import FEATURES as CELLS
from ringfence.worlds.sim.ant_walk import Walked, walk_groups
from ringfence.worlds.sim.floor import ARRIVED, CELL, OUTCOMES, Layout, MazeTask

# Experts ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MazeExperts:
    """How many episodes each expert walks from each start, to train on and held out."""

    paths: int = 10
    heldout: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if self.paths < 1 or self.heldout < 0 or self.seed < 0:
            raise InvalidInput(
                "experts: at least 1 path, 0 held-out ones and seed 0 are needed, got "
                f"{self.paths}, {self.heldout} and {self.seed}"
            )


def make_demonstrations(maze: AntMaze, config: MazeExperts, threads: int = 2) -> Demonstrations:
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


def check(demos: Demonstrations, maze: AntMaze) -> list[Finding]:
    """What the world has to say about demonstrations: tasks, features, ends, claimed walls."""
    tasks = {task.name: task for task in maze.tasks}
    if [f.name for f in demos.features] != [f.name for f in maze.features]:
        names = ", ".join(f.name for f in demos.features)
        return [Finding("error", "features", f"{names}; the Ant's maze has x and y")]
    findings = []
    for d in demos.tasks:
        if d.task not in tasks:
            known = ", ".join(tasks)
            message = f"this world has no such task; there are: {known}"
            findings.append(Finding("error", f"task {d.task!r}", message))
            continue
        goal = tasks[d.task].goal
        for label, t in d.labelled:
            if not np.array_equal(maze.layout.cell(t.features[-1]), goal):
                findings.append(Finding("warning", label, f"it does not end in the goal's {goal}"))
            if maze.truth.known and (bad := crossing(maze.truth, t.features)):
                findings.append(Finding("warning", label, f"it crosses a claimed wall: {bad}"))
    return findings


def crossing(truth: MazeTruth, xy: Array) -> str:
    """Where a path is in a wall or outside, in words; "" if nowhere."""
    bad = truth.violates(xy)
    if not bad.any():
        return ""
    cells, steps = np.unique(truth.layout.cell(xy[bad]), axis=0, return_counts=True)
    where = ", ".join(f"({r},{c}) {n} steps" for (r, c), n in zip(cells, steps, strict=True))
    return f"{where}; {depth(truth, xy[bad]):.2f} m deep"


def depth(truth: MazeTruth, xy: Array) -> float:
    """The largest distance of points [n, 2] from the nearest free cell, m."""
    free = truth.layout.centre(np.argwhere(~truth.walls))
    beyond = np.maximum(np.abs(xy[:, None] - free) - CELL / 2, 0)
    return float(np.linalg.norm(beyond, axis=-1).min(axis=1).max())


# Paths and constraints as cells -------------------------------------------------------------------


def as_table(c: Constraint, layout: Layout) -> TableConstraint:
    """The cells that a constraint on (x, y) flags, as the grid's constraint."""
    return TableConstraint(CELLS, flag(c, layout).astype(np.float64))


def groups_of(task: FiniteTask, maze: AntMaze, demos: TaskDemos) -> list[evidences.Group]:
    """Demonstrations as evidence compares them: cells visited, and moves from cell to cell.

    A demonstrator's return is that of the grid's task, T less the moves to the goal's cell; a
    step across a corner counts as two.
    """
    cols, horizon = maze.grid.shape[1], maze.grid.horizon
    by_start: dict[int, list[NDArray[np.intp]]] = {}
    for t in demos.train:
        cells = maze.layout.cell_path(t.observations[:, :2])
        by_start.setdefault(int(cells[0, 0] * cols + cells[0, 1]), []).append(cells)
    groups = []
    for start, paths in sorted(by_start.items()):
        visitors = np.zeros(task.mdp.num_states)
        for cells in paths:
            visitors[np.unique(cells[:, 0] * cols + cells[:, 1])] += 1
        moves = [int(np.abs(np.diff(cells, axis=0)).sum()) for cells in paths]
        returns = np.array([max(horizon - m, 0) for m in moves], np.float64)
        groups.append(evidences.Group(task, start, visitors, returns))
    return groups


# What an answer of the planner holds --------------------------------------------------------------


def paths(solution: Solution) -> list[Array]:
    """The positions [T, 2] of each episode."""
    xy = np.asarray(solution.policy["xy"], np.float64)
    return np.split(xy, np.cumsum(solution.policy["length"])[:-1])


def outcomes(solutions: Sequence[Solution]) -> dict[str, int]:
    """How many episodes ended how, and how many plans had to cross flagged cells."""
    ends = np.concatenate([s.policy["outcome"] for s in solutions])
    count = np.bincount(ends, minlength=len(OUTCOMES))
    crossed = int(np.count_nonzero(np.concatenate([s.policy["crossed"] for s in solutions])))
    return {name: int(n) for name, n in zip(OUTCOMES, count, strict=True)} | {"dead_ends": crossed}


def violations(
    truth: MazeTruth, tasks: Sequence[str], solutions: Sequence[Solution]
) -> list[dict[str, Any]]:
    """Every episode that was in a wall or outside: where, for how many steps, how deep."""
    found = []
    for task, solution in zip(tasks, solutions, strict=True):
        for n, xy in enumerate(paths(solution)):
            if words := crossing(truth, xy):
                steps = int(truth.violates(xy).sum())
                found.append({"task": task, "episode": n, "steps": steps, "where": words})
    return found
