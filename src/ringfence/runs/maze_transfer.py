"""A new task of the Ant's maze under a learned constraint: `ringfence transfer`.

As runs/transfer.py on the grid: whether the task is covered is said before an Ant takes a step.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence import Evidence
from ringfence.constraints import files as constraint_files
from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.objects import Constraint, Solution
from ringfence.report.floor import FloorPanel, maze_picture
from ringfence.runs import config as configs
from ringfence.runs import evidence as evidence_json
from ringfence.runs import maze as mazes
from ringfence.runs.files import json_bytes, write_folder
from ringfence.runs.single import refuse_existing
from ringfence.runs.summary import versions
from ringfence.runs.transfer import Unknown
from ringfence.runs.worlds import make_maze
from ringfence.solvers.planner import PENALTY, Bools, Planner, distances, flag
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import Cell
from ringfence.worlds.sim.floor import ARRIVED, MazeTask

TRANSFER = 4  # a stream of random numbers, beside the planner's


def is_covered(maze: AntMaze, evidence: Evidence, goal: Cell, start: Cell) -> bool:
    """Can the goal be reached within cells that demonstrators walked?"""
    state = start[0] * maze.grid.shape[1] + start[1]
    return bool(evidences.covered(evidence, maze.grid.task(goal, (start,)), state))


def planning_map(maze: AntMaze, c: Constraint, evidence: Evidence, unknown: Unknown) -> Bools:
    """What the planner goes around: flagged cells, and those that no demonstrator walked."""
    flagged = flag(c, maze.layout)
    return flagged if unknown == "allow" else flagged | ~evidence.allowed.reshape(maze.grid.shape)


def from_run(
    run: Path,
    goal: Cell,
    start: Cell,
    unknown: Unknown,
    seed: int,
    out: Path,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Say whether the task is covered, walk it ten times, and write the answer to `out`."""
    config = configs.read(run / "config.toml")
    maze = make_maze(config.world)
    task = maze.task(goal, (start,))
    path = run / "evidence.json"
    if not path.is_file():
        raise InvalidInput(
            f"{run}: not finished, it has no evidence.json; 'ringfence resume {run}'"
        )
    refuse_existing(out)
    c, evidence = constraint_files.load(run / "constraint"), evidence_json.read(path)
    covered = is_covered(maze, evidence, goal, start)
    say(f"{task.name} from {start}: " + sentence(covered))
    flagged = planning_map(maze, c, evidence, unknown)
    if flag(c, maze.layout)[goal]:
        raise InfeasibleLimit(f"{task.name}: the goal lies in a wall of the learned constraint")
    if distances(flagged, goal)[start] >= PENALTY:
        raise InfeasibleLimit(
            f"{task.name} from {start}: no way under the learned constraint; ask for a "
            "demonstration" + (", or accept the risk with --unknown allow" * (unknown == "avoid"))
        )
    seeds = [(seed, TRANSFER, *goal, *start)]
    (solution,) = Planner(config.solver.episodes).solve_all([task], flagged, seeds)
    summary = {
        "schema": 1,
        "world": config.world.name,
        "task": task.name,
        "start": list(start),
        "unknown": unknown,
        "constraint": {"description": c.describe()},
        "covered": covered,
        "seed": seed,
        "versions": versions(),
        **outcome(maze, task, solution),
    }
    write(out, maze, solution, summary)
    return summary


def sentence(covered: bool) -> str:
    if covered:
        return "covered, it can be done within cells that demonstrators walked"
    return "UNCOVERED, the way leads through cells about which nothing is known"


def outcome(maze: AntMaze, task: MazeTask, solution: Solution) -> dict[str, Any]:
    ends = np.asarray(solution.policy["outcome"])
    known = maze.truth.known
    return {
        "success": float((ends == ARRIVED).mean()),
        "episodes": mazes.outcomes([solution]),
        "reward": solution.behaviour.reward,
        "length": solution.behaviour.length,
        "true_cost": maze.truth.true_cost(solution.behaviour) if known else None,
        "violations": mazes.violations(maze.truth, [task.name], [solution]) if known else None,
        "env_steps": solution.env_steps,
    }


def write(out: Path, maze: AntMaze, solution: Solution, summary: dict[str, Any]) -> None:
    """summary.json, the walks and a picture, all or none."""
    arrays = {name: np.ascontiguousarray(a) for name, a in solution.policy.items()}
    flagged = np.asarray(solution.policy["flagged"], np.bool_)
    walls = maze.truth.walls
    panel = FloorPanel(summary["task"], walls, flagged, mazes.paths(solution))
    files = {
        "walks.safetensors": safetensors.numpy.save(arrays),
        "summary.json": json_bytes(summary),
        "path.png": maze_picture([panel], maze.layout, ".png", columns=1),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    write_folder(out, files)
