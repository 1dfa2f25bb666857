"""A constraint against demonstrations or a known truth: `ringfence evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringfence.constraints.table import TableConstraint
from ringfence.demos.dataset import Demonstrations
from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.experts.optimal import expert_behaviours
from ringfence.objects import Constraint, J, Problem, Solution, behaviour_of
from ringfence.runs.summary import iou, per_task
from ringfence.worlds.finite import FiniteTask, occupancy
from ringfence.worlds.grid import GridWorld

#: A policy accomplishes its task if it ends at the goal with at least this probability.
CERTAIN = 0.999


def against_truth(
    world: GridWorld, c: Constraint, delta: float, solver: Callable[[Problem], Solution]
) -> dict[str, Any]:
    """Overlap with the true cells, and what planning each task under c earns and violates.

    A task is impossible under c if it can't be done for certain from each of its starts. Where
    not even the limit can be kept, reward and violation are null.
    """
    if not world.truth.known:
        raise InvalidInput("this map has no '#' cell: there is no truth to evaluate against")
    solutions = [plan_or_none(solver, Problem(t, c, delta, None, (0,))) for t in world.tasks]
    learners = [None if s is None else s.behaviour for s in solutions]
    result: dict[str, Any] = {"tasks": [task.name for task in world.tasks]}
    if isinstance(c, TableConstraint):
        result |= cell_scores(c, world)
    pairs = zip(world.tasks, solutions, strict=True)
    result["impossible"] = sum(s is None or not accomplished(task, s) for task, s in pairs)
    result |= per_task("learner_reward", [None if pi is None else pi.reward for pi in learners])
    result |= per_task("expert_reward", [pi_E.reward for pi_E in expert_behaviours(world)])
    cost = [None if pi is None else world.truth.true_cost(pi) for pi in learners]
    return result | per_task("learner_true_cost", cost)


def accomplished(task: FiniteTask, solution: Solution) -> bool:
    """Does the policy for certain end at the goal?"""
    return arrival(task, solution) >= CERTAIN


def arrival(task: FiniteTask, solution: Solution) -> float:
    """The probability of standing in a state of the highest reward (the goal) at the last step."""
    rho = occupancy(task.mdp, np.asarray(solution.policy["pi"], dtype=np.float64))
    best = task.mdp.reward.max(axis=1) >= task.mdp.reward.max()
    return float(rho[-1, best].sum())


def plan_or_none(solver: Callable[[Problem], Solution], problem: Problem) -> Solution | None:
    try:
        return solver(problem)
    except InfeasibleLimit:
        return None


def cell_scores(c: TableConstraint, world: GridWorld) -> dict[str, Any]:
    """IoU, and the wrong cells by name: false walls and missed ones."""
    false, missed = c.forbidden & ~world.truth.walls, world.truth.walls & ~c.forbidden
    return {
        "iou": iou(c, world.truth),
        "false_walls": [[int(r), int(col)] for r, col in np.argwhere(false)],
        "missed_walls": [[int(r), int(col)] for r, col in np.argwhere(missed)],
    }


def against_demonstrations(c: Constraint, demos: Demonstrations) -> dict[str, Any]:
    """The demonstrators' own cost under c: what a limit must at least grant them."""
    names: Sequence[str] = [d.task for d in demos.tasks]
    train = [J(behaviour_of(d.train), c) for d in demos.tasks]
    heldout = [J(behaviour_of(d.heldout), c) if d.heldout else None for d in demos.tasks]
    return {
        "tasks": list(names),
        **per_task("expert_cost", train),
        **per_task("heldout_expert_cost", heldout),
    }
