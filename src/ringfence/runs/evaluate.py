"""A constraint against a known truth and against demonstrations: `ringfence evaluate`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.experts.optimal import expert_behaviours
from ringfence.objects import (
    Constraint,
    Demonstrations,
    J,
    NotHere,
    Problem,
    Solution,
    behaviour_of,
)
from ringfence.runs.counting import CERTAIN, success
from ringfence.runs.summary import Inequality, per_task, truth_of
from ringfence.worlds.finite import FiniteTask
from ringfence.worlds.world import World


def against_truth(
    settings: Any,
    world: World,
    c: Constraint,
    delta: float,
    solver: Callable[[Problem], Solution],
) -> dict[str, Any] | NotHere:
    """How far c is from the truth, where that is known; on finite worlds also what planning each
    task under c earns and violates."""
    truth, cells = truth_of(settings, world), world.cells
    if isinstance(truth, Inequality):
        return {"truth": truth.c.describe()}
    if cells is None or cells.walls is None:
        return NotHere("no truth of this world is known: give --truth, or a map with '#' cells")
    false, missed = cells.forbidden(c) & ~cells.walls, cells.walls & ~cells.forbidden(c)
    union = cells.forbidden(c) | cells.walls
    found: dict[str, Any] = {
        "iou": float((cells.forbidden(c) & cells.walls).sum() / union.sum()),
        "false_walls": np.argwhere(false).tolist(),
        "missed_walls": np.argwhere(missed).tolist(),
    }
    tasks = [task for task in world.tasks if isinstance(task, FiniteTask)]
    return found | (planned(world, tasks, c, delta, solver) if tasks else {})


def planned(
    world: World,
    tasks: list[FiniteTask],
    c: Constraint,
    delta: float,
    solver: Callable[[Problem], Solution],
) -> dict[str, Any]:
    """A task is impossible under c if it can't be done for certain from each of its starts. Where
    not even the limit can be kept, reward and violation are null."""
    solutions = [plan_or_none(solver, Problem(t, c, delta, None, (0,))) for t in tasks]
    pairs = list(zip(tasks, solutions, strict=True))
    learners = [None if s is None else s.behaviour for s in solutions]
    cost = [None if pi is None else world.truth.true_cost(pi) for pi in learners]
    return {
        "tasks": [task.name for task in tasks],
        "impossible": sum(s is None or not accomplished(task, s) for task, s in pairs),
        **per_task("learner_reward", [None if pi is None else pi.reward for pi in learners]),
        **per_task("expert_reward", [pi_E.reward for pi_E in expert_behaviours(world)]),
        **per_task("learner_true_cost", cost),
    }


def accomplished(task: FiniteTask, solution: Solution) -> bool:
    """Does the policy for certain end at the goal?"""
    return (success(task, solution) or 0.0) >= CERTAIN


def plan_or_none(solver: Callable[[Problem], Solution], problem: Problem) -> Solution | None:
    try:
        return solver(problem)
    except InfeasibleLimit:
        return None


def against_demonstrations(
    settings: Any, world: World | None, c: Constraint, demos: Demonstrations
) -> dict[str, Any]:
    """The demonstrators' own cost under c: what a limit must at least grant them.

    Where the truth is an inequality, also the share of demonstrated steps on which both agree.
    """
    if demos.features != c.features:
        own, other = (
            ", ".join(f"{f.name} ({f.unit})" for f in x) for x in (c.features, demos.features)
        )
        raise InvalidInput(f"the demonstrations' features are {other}; the constraint's are {own}")
    train = [J(behaviour_of(d.train), c) for d in demos.tasks]
    heldout = [J(behaviour_of(d.heldout), c) if d.heldout else None for d in demos.tasks]
    found = {
        "tasks": [d.task for d in demos.tasks],
        **per_task("expert_cost", train),
        **per_task("heldout_expert_cost", heldout),
    }
    truth = None if world is None else truth_of(settings, world)
    if isinstance(truth, Inequality):
        points = np.concatenate([t.features for d in demos.tasks for _, t in d.labelled])
        same = (c.cost(points) > 0) == (truth.c.cost(points) > 0)
        found["agreement"] = float(same.mean())
    return found
