"""One constrained RL problem on its own: `ringfence solve`.

Also what `transfer` and `evaluate` share with it: naming a constraint, planning under it, and
writing the answer into a folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from ringfence.constraints import files as constraint_files
from ringfence.constraints.linear import parse_inequality
from ringfence.constraints.table import TableConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint, J, Problem, Solution
from ringfence.report import figures
from ringfence.runs.config import WorldConfig
from ringfence.runs.files import json_bytes, write_folder
from ringfence.runs.folder import is_free
from ringfence.runs.summary import finite, versions
from ringfence.runs.worlds import make_world
from ringfence.worlds.finite import FiniteTask, rollout
from ringfence.worlds.grid import GridWorld

PICTURED_PATHS = 20


def read_constraint(spec: str, world: GridWorld) -> tuple[Constraint, float]:
    """A constraint and its limit: "truth", "none", a saved one's folder (or its run), or text."""
    features = world.features
    if spec in ("truth", "none"):
        if spec == "truth" and not world.truth.known:
            raise InvalidInput("constraint 'truth': this map has no '#' cell, its truth is unknown")
        walls = world.truth.walls if spec == "truth" else np.zeros(world.shape)
        return TableConstraint(features, walls.astype(float)), 0.0
    if "<=" in spec or ">=" in spec:
        return parse_inequality(spec, features), 0.0
    folder = Path(spec)
    if (folder / "constraint").is_dir():
        folder = folder / "constraint"
    c, document = constraint_files.load_document(folder)
    require_fit(c, world, str(folder))
    return c, float(document["delta"])


def require_fit(c: Constraint, world: GridWorld, where: str) -> None:
    """A constraint can only be asked about the features, and cells, that it was learned on."""
    names = [f.name for f in world.features]
    if [f.name for f in c.features] != names:
        raise InvalidInput(
            f"{where}: a constraint on {[f.name for f in c.features]}, this world has {names}"
        )
    if isinstance(c, TableConstraint) and c.values.shape != world.shape:
        raise InvalidInput(
            f"{where}: a constraint on {c.values.shape[0]} x {c.values.shape[1]} cells, this world "
            f"has {world.shape[0]} x {world.shape[1]}; give the world it was learned on"
        )


def find_task(world: GridWorld, name: str) -> FiniteTask:
    """A task by its name, "goal (3,9)", or by its number in the world's order."""
    if name.isdigit() and int(name) < len(world.tasks):
        return world.tasks[int(name)]
    for task in world.tasks:
        if task.name == name:
            return task
    raise InvalidInput(
        f"task {name!r}: there is none; use 0-{len(world.tasks) - 1} or one of "
        f"{', '.join(repr(task.name) for task in world.tasks)}"
    )


def solve_one(
    world_config: WorldConfig,
    task_name: str,
    spec: str,
    delta: float | None,
    solver: Callable[[Problem], Solution],
    seed: int,
    out: Path,
    command: str,
) -> dict[str, Any]:
    """Solve one task under a constraint and write policy, summary and picture to `out`."""
    world = make_world(world_config)
    task = find_task(world, task_name)
    c, recorded = read_constraint(spec, world)
    limit = recorded if delta is None else delta
    refuse_existing(out)
    solution = solver(Problem(task, c, limit, start=None, seed=(seed,)))
    summary = {
        "schema": 1,
        "command": command,
        "world": world_config.name,
        "seed": seed,
        "versions": versions(),
        "task": task.name,
        "constraint": {"description": c.describe()},
        "delta": limit,
        **outcome(world, c, solution),
    }
    write_answer(out, world, task, c, solution, summary, seed)
    return summary


def outcome(world: GridWorld, c: Constraint, solution: Solution) -> dict[str, Any]:
    """What a solution earns and costs; `true_cost` is null where the truth is not known."""
    pi = solution.behaviour
    return {
        "reward": pi.reward,
        "cost": J(pi, c),
        "length": pi.length,
        "lam": finite(solution.lam),
        "true_cost": world.truth.true_cost(pi) if world.truth.known else None,
        "env_steps": solution.env_steps,
    }


def refuse_existing(out: Path) -> None:
    if not is_free(out):
        raise InvalidInput(f"{out}: it exists already; choose another --out")


def write_answer(
    out: Path,
    world: GridWorld,
    task: FiniteTask,
    c: Constraint,
    solution: Solution,
    summary: Mapping[str, Any],
    seed: int,
) -> None:
    """policy.safetensors, summary.json and path.png, all or none."""
    arrays = {name: np.ascontiguousarray(array) for name, array in solution.policy.items()}
    pi = np.asarray(solution.policy["pi"], dtype=np.float64)
    files = {
        "policy.safetensors": safetensors.numpy.save(arrays),
        "summary.json": json_bytes(summary),
        "path.png": figures.path_picture(
            world.truth.walls if world.truth.known else None,
            cell_costs(c, world),
            sample_paths(task, pi, seed),
            f"{task.name}, {c.describe()}",
        ),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    write_folder(out, files)


def cell_costs(c: Constraint, world: GridWorld) -> Array:
    """The cost of each cell, [rows, cols]."""
    cells = np.indices(world.shape).reshape(2, -1).T.astype(float)
    return c.cost(cells).reshape(world.shape)


def sample_paths(task: FiniteTask, pi: Array, seed: int) -> list[Array]:
    """Features of a few episodes [T, 2], from all starts in turn."""
    rng = np.random.default_rng([seed, 0])
    starts = np.flatnonzero(task.mdp.start)
    return [
        rollout(task, pi, int(starts[n % len(starts)]), rng).features for n in range(PICTURED_PATHS)
    ]
