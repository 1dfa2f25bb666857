"""What a policy does, counted: violations with their exact interval, success, paths, curves."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.binomial import binomial_interval
from ringfence.disk import reading
from ringfence.objects import (
    Array,
    Constraint,
    Solution,
    Task,
    Trajectory,
)
from ringfence.worlds.finite import FiniteTask, occupancy, rollout, whole_policy
from ringfence.worlds.sim.floor import ARRIVED

CONFIDENCE = 0.95
#: A task that is done with at least this probability is done for certain.
CERTAIN = 0.999
#: For a picture of a finite world's policy: how many paths, and their stream of random numbers.
PATHS, PICTURED = 20, 0


def standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def success(task: Task, solution: Solution) -> float | None:
    """How surely the task is accomplished: the chance of standing in a state of the highest reward
    (the goal) at the last step, to within NOT_STORED, or the share of walks that arrived. None: it
    has no goal."""
    if isinstance(task, FiniteTask) and task.horizon is not None:
        rho = occupancy(task.mdp, whole_policy(task.mdp, solution.policy))
        best = task.mdp.reward.max(axis=1) >= task.mdp.reward.max()
        return min(1.0, float(rho[-1, best].sum()))
    if "outcome" in solution.policy:
        return float((np.asarray(solution.policy["outcome"]) == ARRIVED).mean())
    return None


def sample_paths(task: FiniteTask, solution: Solution, seed: int) -> tuple[Array, ...]:
    """Features of a few episodes [T, d], from all starts in turn."""
    if task.horizon is None:
        return ()
    rng = np.random.default_rng([seed, PICTURED])
    starts = np.flatnonzero(task.mdp.start)
    pi = whole_policy(task.mdp, solution.policy)
    return tuple(
        rollout(task, pi, int(starts[n % len(starts)]), rng).features for n in range(PATHS)
    )


def violations(
    prefix: str, c: Constraint, episodes: Sequence[Trajectory], delta: float
) -> dict[str, Any]:
    """Of a constraint: an episode violates it if its cost sums to more than delta."""
    cost = np.array([float(c.cost(t.features).sum()) for t in episodes])
    raw = np.array([float(c.raw(t.features).sum()) for t in episodes])
    count = int((cost > delta).sum())
    low, high = binomial_interval(count, len(cost), CONFIDENCE)
    figures: Mapping[str, Any] = {
        "cost": float(cost.mean()),
        "cost_se": standard_error(cost),
        "raw": float(raw.mean()),
        "violating_episodes": count,
        "violation_chance": [low, high],
    }
    return {f"{prefix}{name}": value for name, value in figures.items()}


def curves(records: Sequence[Mapping[str, Any]]) -> bytes:
    """CSV, one line per update; an empty cell where no episode ended."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(records[0])
    writer.writerows([list(record.values()) for record in records])
    return text.getvalue().encode()


def read_curves(path: Path) -> dict[str, Array]:
    """The columns of a curves.csv, [updates] each; NaN where a cell is empty."""
    with reading(path), open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name] or "nan") for row in rows]) for name in rows[0]}
