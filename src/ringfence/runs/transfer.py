"""A new task under a learned constraint: `ringfence transfer`.

Before anything is solved, the evidence of the run says whether the task is covered: whether it
can be done within cells that the demonstrations showed to be allowed. With unknown "avoid" the
policy keeps to those cells where that is possible; with "allow" it may use every cell that the
learned constraint does not forbid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence import Evidence
from ringfence.constraints import files as constraint_files
from ringfence.constraints.table import TableConstraint
from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.objects import Problem, Solution
from ringfence.runs import config as configs
from ringfence.runs import evidence as evidence_json
from ringfence.runs.evaluate import accomplished, arrival, plan_or_none
from ringfence.runs.single import outcome, refuse_existing, write_answer
from ringfence.runs.summary import versions
from ringfence.runs.worlds import make_world
from ringfence.worlds.finite import FiniteTask
from ringfence.worlds.grid import Cell, GridWorld

Unknown = Literal["avoid", "allow"]

#: A task that is done with less than this probability can't be done.
POSSIBLE = 1e-6


@dataclass(frozen=True, eq=False)
class Transfer:
    """One task from one start: what was said before, and what came of it.

    solution is None where the constraint leaves no way at all (`success` is then False).
    """

    task: FiniteTask
    covered: bool
    solution: Solution | None
    success: bool


def transfer(
    world: GridWorld,
    c: TableConstraint,
    evidence: Evidence,
    goal: Cell,
    start: Cell,
    unknown: Unknown,
    solver: Callable[[Problem], Solution],
) -> Transfer:
    """Say whether reaching `goal` from `start` is covered, then solve it with limit 0."""
    task = world.task(goal, (start,))
    covered = evidences.covered(evidence, task, int(task.mdp.start.argmax()))
    planned = planning_constraint(c, evidence, unknown)
    solution = plan_or_none(solver, Problem(task, planned, 0.0, start=None, seed=(0,)))
    success = solution is not None and accomplished(task, solution)
    return Transfer(task, covered, solution, success)


def planning_constraint(
    c: TableConstraint, evidence: Evidence, unknown: Unknown
) -> TableConstraint:
    """c itself, or c with every cell forbidden that no demonstration showed to be allowed."""
    if unknown == "allow":
        return c
    shown = evidence.allowed.reshape(c.values.shape)
    return TableConstraint(c.features, np.maximum(c.values, ~shown))


def from_run(
    run: Path,
    goal: Cell,
    start: Cell,
    unknown: Unknown,
    solver: Callable[[Problem], Solution],
    seed: int,
    out: Path,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Transfer a finished run's constraint to a task, and write the answer to `out`."""
    config = configs.read(run / "config.toml")
    world = make_world(config.world)
    for name, place in (("goal", goal), ("start", start)):
        if place[0] >= world.shape[0] or place[1] >= world.shape[1]:
            raise InvalidInput(
                f"{name} {place}: outside the map of {world.shape[0]} x {world.shape[1]} cells"
            )
    c, evidence = read_result(run)
    refuse_existing(out)
    done = transfer(world, c, evidence, goal, start, unknown, solver)
    say(coverage_sentence(done, start, unknown))
    if done.solution is None or arrival(done.task, done.solution) < POSSIBLE:
        raise InfeasibleLimit(
            f"{done.task.name} from {start}: no way under the learned constraint"
            + (
                " within cells known to be allowed; ask for a demonstration, or accept the risk "
                "with --unknown allow"
                if unknown == "avoid"
                else "; ask for a demonstration of this task"
            )
        )
    summary = {
        "schema": 1,
        "world": config.world.name,
        "task": done.task.name,
        "start": list(start),
        "unknown": unknown,
        "constraint": {"description": c.describe()},
        "covered": done.covered,
        "success": done.success,
        "arrival": arrival(done.task, done.solution),
        "unknown_cells": unknown_cells(done.solution, evidence, world),
        "seed": seed,
        "versions": versions(),
        **outcome(world, c, done.solution),
    }
    write_answer(out, world, done.task, c, done.solution, summary, seed)
    return summary


def read_result(run: Path) -> tuple[TableConstraint, Evidence]:
    """A finished run's selected constraint and evidence."""
    path = run / "evidence.json"
    if not path.is_file():
        raise InvalidInput(
            f"{run}: not finished, it has no evidence.json; 'ringfence resume {run}'"
        )
    c = constraint_files.load(run / "constraint")
    if not isinstance(c, TableConstraint):
        raise InvalidInput(f"{run}: transfer needs a table constraint, this is {c.describe()!r}")
    return c, evidence_json.read(path)


def coverage_sentence(done: Transfer, start: Cell, unknown: Unknown) -> str:
    """What is known before the task is run."""
    head = f"{done.task.name} from {start}: "
    if done.covered:
        return head + "covered, it can be done within cells that demonstrators walked"
    if unknown == "avoid":
        return head + "UNCOVERED, no way within cells that demonstrators walked"
    return head + "UNCOVERED, the way leads through cells about which nothing is known"


def unknown_cells(solution: Solution, evidence: Evidence, world: GridWorld) -> list[list[int]]:
    """The cells of the plan that no demonstration showed to be allowed."""
    cells = solution.behaviour.features.astype(int)
    shown = evidence.allowed.reshape(world.shape)
    return [[int(r), int(c)] for r, c in cells if not shown[r, c]]
