"""What a run found, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringfence.report.labels import Labels
from ringfence.report.markup import figure_text
from ringfence.report.read import Bools, RunData, visitors
from ringfence.worlds.grid import Cell

LISTED = 10  # more cells than this are counted, not listed


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def some(names: Sequence[str], most: int = LISTED) -> str:
    """Names in a row; the rest of many is counted."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def cell_name(cell: Cell) -> str:
    return f"({cell[0]},{cell[1]})"


def cell_names(region: Bools) -> str:
    return some([cell_name((int(r), int(c))) for r, c in np.argwhere(region)])


def rule(run: RunData) -> str:
    """The selected constraint in a few words."""
    c = run.selected
    if run.config.game.constraint_class == "table":
        return f"{int(c.forbidden.sum())} of {c.forbidden.size} cells are forbidden"
    return c.words


def headline(run: RunData) -> str:
    count = len(run.tasks)
    who = "One task suggests a" if count == 1 else f"{count} tasks share one"
    return f"{who} constraint: {rule(run)}"


def lede(run: RunData) -> str:
    """Reward and violation against the experts, and the overlap with the truth if it is known."""
    row = run.best
    reward = (
        f"Learners that keep to it earn {figure_text(row['learner_reward_mean'])} an episode, "
        f"the experts {figure_text(row['expert_reward_mean'])}."
    )
    if run.walls is None:
        return (
            f"{reward} The map names no forbidden cell, so whether this is the true constraint "
            "can't be measured here; the evidence below says what the demonstrations prove."
        )
    violation = (
        f"They spend {figure_text(row['learner_true_cost_mean'])} steps an episode in truly "
        f"forbidden cells, the experts {figure_text(row['expert_true_cost_mean'])}."
    )
    iou = row["constraint"].get("iou")
    overlap = "" if iou is None else f" {_overlap(run, iou)}"
    return f"{reward} {violation}{overlap}"


def _overlap(run: RunData, iou: float) -> str:
    if iou == 1:
        return "The constraint is the truth, cell for cell (IoU 1)."
    assert run.walls is not None
    return f"Its overlap with the true walls is IoU {iou:.3f}: {difference(run, run.selected)}."


def difference(run: RunData, learned: Any) -> str:
    """How a constraint and the truth differ, in cells."""
    assert run.walls is not None
    extra, missed = learned.forbidden & ~run.walls, run.walls & ~learned.forbidden
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


def ending(run: RunData) -> str:
    """Why the game ended, and how the constraint was chosen."""
    last, game = run.rows[-1], run.config.game
    payoff, count = last["best_payoff"], len(run.rows)
    if payoff is not None and payoff <= game.epsilon:
        why = (
            f"The game ended after {plural(count, 'iteration')}, because no constraint of the "
            "class could tell the learners from the experts any more"
        )
    else:
        why = f"The game was played for all of its {plural(count, 'iteration')}"
    chosen = run.summary["selected"]
    how = "was selected on held-out demonstrations, without the truth"
    if run.summary.get("heldout", {}).get("rewarding") is False:
        how = "earns most and was taken, though none earns as much as the held-out experts"
    return f"{why}; iteration {chosen} {how}."


def iteration(run: RunData, n: int) -> list[str]:
    """What iteration n + 1 was like."""
    row, learned = run.rows[n], run.learned[n]
    count = int(learned.forbidden.sum())
    total = learned.forbidden.size
    said = [f"Iteration {n + 1}: the constraint forbids {count} of {total} cells."]
    if run.walls is not None:
        said.append(f"Against the truth, {difference(run, learned)}.")
    violation = row["learner_true_cost_mean"]
    steps = "" if violation is None else f" and spend {figure_text(violation)} steps in walls"
    said.append(
        f"Learners earn {figure_text(row['learner_reward_mean'])} "
        f"(experts {figure_text(row['expert_reward_mean'])}){steps}."
    )
    return said


def cell_facts(run: RunData, labels: Labels | None) -> dict[Cell, list[str]]:
    """For each cell, what is known about it whatever the iteration."""
    seen = visitors(run)
    goals = {g: t.name for g, t in zip(run.world.goals, run.world.tasks, strict=True)}
    facts = {}
    for r, c in np.ndindex(run.shape):
        said = [f"Row {r}, column {c}"]
        if (r, c) in run.world.starts:
            said.append("A start.")
        if (r, c) in goals:
            said.append(f"The goal of task {goals[(r, c)]}.")
        if run.walls is not None:
            said.append("In truth it is forbidden." if run.walls[r, c] else "In truth it is free.")
        said.append(_experts(run, seen.get((r, c), [])))
        if labels is not None:
            said.append(labels.cells[(r, c)].words)
        facts[(r, c)] = said
    return facts


def _experts(run: RunData, seen: Sequence[tuple[int, int]]) -> str:
    if not seen:
        return "No expert was here."
    paths = sum(count for _, count in seen)
    total = sum(len(run.paths[k]) for k, _ in seen)
    names = some([run.tasks[k] for k, _ in seen], 3)
    return f"Experts were here on {paths} of {total} paths of {names}."
