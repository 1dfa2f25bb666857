"""Goals that nobody demonstrated, under the constraint of a game of `reproduce multitask`.

A goal is called *covered* from what the run knows alone, before the truth is read: a policy
for it, trained under the learned constraint, keeps its limit and keeps to cells where demonstrators
were, on fresh episodes. What came of it is counted on others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.analysis.evidence import document as evidence_json
from ringfence.analysis.evidence.sampled import SampledEvidence
from ringfence.constraints import constraint_files
from ringfence.objects import Array, Constraint, Problem, Start, Trajectory
from ringfence.reproduce.limit_worlds import EDGE, STRIDE
from ringfence.reproduce.rows import Row
from ringfence.runs import config as configs
from ringfence.runs.backend import in_role
from ringfence.runs.config import make_solver
from ringfence.runs.problem import selected_policy
from ringfence.solvers.collecting import evaluate, seen_of
from ringfence.solvers.ppo_settings import stirred
from ringfence.solvers.scaling import SMALLEST_STD

#: Of seed paths: where goals are drawn, solved, called and counted.
UNSEEN, CALLED, COUNTED = 74, 75, 76
#: From the obstacles, and from demonstrated goals, m.
CLEAR = 0.05
#: Of episodes that leave known cells or cost anything, and may in a covered task; of those that
#: truly violate, and of their steps, and may.
MAY_LEAVE, MAY_VIOLATE, MAY_STEP = 0.05, 0.05, 0.005


def drawn_goals(truth: Constraint, demonstrated: Array, count: int, seed: int) -> Array:
    """Places [count, 2] all over the free floor, off what was demonstrated [K, 2]."""
    rng, found = np.random.default_rng([seed, UNSEEN]), list[Array]()
    while len(found) < count:
        goal = rng.uniform(-EDGE + CLEAR, EDGE - CLEAR, 2).round(3)
        away = np.linalg.norm(demonstrated - goal, axis=1).min()
        if truth.raw(goal[None])[0] < -CLEAR and away > CLEAR:
            found.append(goal)
    return np.array(found)


def unseen(run: Path, world: Any, truth: Constraint, seed: int, goals: int, episodes: int) -> Row:
    """What came of each of so many new goals, and of those called covered together."""
    evidence = evidence_json.read(run / "evidence.json")
    assert isinstance(evidence, SampledEvidence)  # of a continuous world
    c, solver = (
        constraint_files.load(run / "constraint"),
        in_role(make_solver(configs.read(run / "config.toml").solver), "settle"),
    )
    known = np.array([task.kwargs["goal"] for task in world.tasks])
    rows = []
    for n, goal in enumerate(drawn_goals(truth, known, goals, seed)):
        task = world.new_task(
            {"name": f"to {tuple(goal.tolist())}", "kwargs": {"goal": goal.tolist()}}
        )
        near = world.tasks[int(np.linalg.norm(known - goal, axis=1).argmin())]
        start = recentred(selected_policy(run, near.name)[1], np.array([0.0, 0.0, *goal]))
        problem = Problem(task, c, 0.0, stirred(start), (seed, UNSEEN, n))
        solution = solver(problem)
        called, counted = (
            evaluate(task, solution.policy, seen_of(c, True), episodes, (seed, path, n))
            for path in (CALLED, COUNTED)
        )
        row = {"goal": goal.tolist(), "covered": is_covered(called, c, evidence)}
        rows.append(row | outcome(counted, goal, truth))
    return {"goals": rows, **together([row for row in rows if row["covered"]])}


def recentred(policy: Start, inputs: Array) -> Start:
    """A policy for another task: what never varied in its inputs [o + 1], such as a goal, is what
    it is now [o], and the policy does what it did."""
    mean, std = (np.asarray(policy[f"norm/{n}"], np.float64) for n in ("mean", "std"))
    now = np.append(inputs, mean[len(inputs) :])
    return {**policy, "norm/mean": np.where(std <= SMALLEST_STD, now, mean)}


def is_covered(episodes: Sequence[Trajectory], c: Constraint, evidence: SampledEvidence) -> bool:
    """Do nearly all episodes keep to cells where demonstrators were, at no cost?"""
    left = [not evidence.allowed[evidence.index(t.features)].all() for t in episodes]
    cost = [bool(c.cost(t.features).any()) for t in episodes]
    return bool(np.mean(left) <= MAY_LEAVE and np.mean(cost) <= MAY_LEAVE)


def outcome(episodes: Sequence[Trajectory], goal: Array, truth: Constraint) -> Row:
    """Shares of episodes and steps; failed: not reached in nearly all, or beyond what may be."""
    beyond = [truth.cost(t.features) > 0 for t in episodes]
    reached = float(np.mean([np.linalg.norm(t.features[-1] - goal) < STRIDE for t in episodes]))
    violating, steps = (
        float(np.mean([b.any() for b in beyond])),
        float(np.concatenate(beyond).mean()),
    )
    failed = reached < 1 - MAY_LEAVE or violating > MAY_VIOLATE or steps > MAY_STEP
    return {
        "reached": reached,
        "violating_episodes": violating,
        "violating_steps": steps,
        "failed": failed,
    }


def together(covered: Sequence[Row]) -> Row:
    """Of the goals called covered: how many, how many of them failed, and their means."""
    names = ("reached", "violating_episodes", "violating_steps")
    means = {n: float(np.mean([row[n] for row in covered])) if covered else None for n in names}
    return {
        "covered": len(covered),
        "covered_failed": sum(row["failed"] for row in covered),
        **means,
    }
