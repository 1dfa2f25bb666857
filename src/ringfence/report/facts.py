"""What a run found, in words: its constraint, its iterations, its cells."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from ringfence.constraints.mlp import MLPConstraint
from ringfence.constraints.table import TableConstraint
from ringfence.objects import Constraint
from ringfence.report.cells import Bools, Cell, Cells, Learned
from ringfence.report.read import Run
from ringfence.report.text import LISTED, cell_names, figure_text, plural, some

FEW = 90  # letters of a constraint in a few words


def rule(run: Run) -> str:
    """The selected constraint in a few words."""
    if run.cells is None or _says_itself(run.learned[run.selected - 1]):
        return textwrap.shorten(run.best["constraint"]["description"], FEW, placeholder=" \u2026")
    forbidden = run.chosen.forbidden
    return f"{int(forbidden.sum())} of {forbidden.size} cells are forbidden"


def _says_itself(c: Constraint) -> bool:
    """Is it shorter said than drawn?"""
    return not isinstance(c, TableConstraint | MLPConstraint)


def title(run: Run) -> str:
    if not run.rows:
        return "No constraint needed"
    count = len(run.tasks)
    return rule(run) if count == 1 else f"{count} tasks share one constraint: {rule(run)}"


def difference(walls: Bools, learned: Learned) -> str:
    """How a constraint and the truth differ, in cells."""
    extra, missed = learned.forbidden & ~walls, walls & ~learned.forbidden
    parts = []
    if extra.any():
        parts.append(f"it forbids {_counted(extra, 'free cell')}")
    if missed.any():
        parts.append(f"it misses {_counted(missed, 'wall cell')}")
    return " and ".join(parts) or "it is the truth, cell for cell"


def _counted(region: Bools, noun: str) -> str:
    """How many cells, and which if they are few."""
    count = int(region.sum())
    return plural(count, noun) + (f" at {cell_names(region)}" if count <= LISTED else "")


def iteration(run: Run, n: int) -> list[str]:
    """What iteration n + 1 was like."""
    row = run.rows[n]

    def value(name: str) -> str:
        return figure_text(row[f"{name}_mean"])

    said = [*_constraint(run, n)]
    said.append(f"Learners earn {value('learner_reward')}, experts {value('expert_reward')}.")
    if row["learner_cost_mean"] is not None:
        said.append(
            f"Learners may cost {value('delta')} an episode and cost {value('learner_cost')}; "
            f"experts cost {value('expert_cost')}."
        )
    if row["learner_true_cost_mean"] is not None:
        what = "True cost" if run.walls is None else "Steps in walls"
        said.append(f"{what}: {value('learner_true_cost')}, experts {value('expert_true_cost')}.")
    if row["learner_failed_mean"]:
        failed = figure_text(sum(n or 0 for n in row["learner_failed"] or ()))
        said.append(f"{failed} of its episodes failed; the constraint player did not see them.")
    return said


def _constraint(run: Run, n: int) -> list[str]:
    description = run.rows[n]["constraint"]["description"]
    if run.cells is None:
        return [f"c{n + 1}: {description}"]
    learned = run.maps[n]
    count, total = int(learned.forbidden.sum()), learned.forbidden.size
    said = [f"Iteration {n + 1}: the constraint forbids {count} of {total} cells."]
    if _says_itself(run.learned[n]):
        said.append(description)
    if run.walls is not None:
        said.append(f"Against the truth, {difference(run.walls, learned)}.")
    return said


# Cells -------------------------------------------------------------------------------------------


def cell_facts(run: Run, cells: Cells) -> dict[Cell, list[str]]:
    """For each cell, what is known about it whatever the iteration."""
    seen = visitors(run, cells)
    every = [(r, c) for r, c in np.ndindex(cells.shape)]
    return {cell: _facts(run, cells, cell, seen.get(cell, [])) for cell in every}


def _facts(run: Run, cells: Cells, cell: Cell, seen: Sequence[tuple[int, int]]) -> list[str]:
    said = [f"Row {cell[0]}, column {cell[1]}"]
    if cell in cells.starts:
        said.append("A start.")
    if cell in cells.goals:
        task = cells.task_of(cell, run.tasks)
        said.append("A goal." if task is None else f"The goal of task {run.tasks[task]}.")
    if cells.walls is not None:
        said.append("In truth it is forbidden." if cells.walls[cell] else "In truth it is free.")
    said.append(_experts(run, seen))
    if run.labels is not None:
        said.append(run.labels.cells[cell].words)
    return said


def visitors(run: Run, cells: Cells) -> dict[Cell, list[tuple[int, int]]]:
    """For each cell that an expert visited: (task index, on how many of its paths)."""
    found: dict[Cell, list[tuple[int, int]]] = {}
    for k, experts in enumerate(run.experts):
        each = np.concatenate([np.unique(cells.path(phi), axis=0) for phi in experts])
        for cell, count in zip(*np.unique(each, axis=0, return_counts=True), strict=True):
            found.setdefault((int(cell[0]), int(cell[1])), []).append((k, int(count)))
    return found


def _experts(run: Run, seen: Sequence[tuple[int, int]]) -> str:
    if not seen:
        return "No expert was here."
    paths = sum(count for _, count in seen)
    total = sum(len(run.experts[k]) for k, _ in seen)
    names = some([run.tasks[k] for k, _ in seen], 3)
    return f"Experts were here on {paths} of {total} paths of {names}."
