"""summary.json: the contract with people and tools (DESIGN: "A run on disk").

`true_*` columns come from the world's truth and are for reporting only. A number that can't be
had (no truth known, an infinite multiplier) is null.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ringfence.constraints.table import TableConstraint
from ringfence.game import Record
from ringfence.objects import Behaviour, Constraint
from ringfence.runs.config import RunConfig
from ringfence.selection import Selection

SCHEMA = 1


class Truth(Protocol):
    """A world's evaluator, as far as the columns of a summary need it."""

    @property
    def known(self) -> bool: ...

    @property
    def walls(self) -> NDArray[np.bool_]: ...

    def true_cost(self, pi: Behaviour) -> float: ...

    def true_raw(self, pi: Behaviour) -> float: ...


def versions() -> dict[str, str]:
    """Of everything whose numbers can reach a result."""
    names = ("ringfence", "numpy", "scipy", "highspy")
    return {name: importlib.metadata.version(name) for name in names}


def iteration_row(
    record: Record, experts: Sequence[Behaviour], truth: Truth, bound: float
) -> dict[str, Any]:
    """One iteration: c_i, its learners against the experts, and the bound so far.

    `bound` is the time-averaged regret times T: by the single-task theorem the mean true
    violation of pi_1..pi_i, less the experts', is at most this.
    """
    row: dict[str, Any] = {
        "i": record.i,
        "constraint": constraint_row(record.c, truth),
        "constraint_error": constraint_error(record.c, truth),
        "updated": constraint_row(record.c_next, truth),
        "best_payoff": record.best_payoff,
        "bound": bound,
    }
    row |= per_task("delta", list(record.deltas))
    row |= per_task("lam", [finite(s.lam) for s in record.solutions])
    for who, behaviours in (("learner", record.learners), ("expert", experts)):
        row |= per_task(f"{who}_reward", [pi.reward for pi in behaviours])
        row |= per_task(f"{who}_length", [pi.length for pi in behaviours])
        row |= truth_columns(who, behaviours, truth)
    row["env_steps"] = sum(s.env_steps for s in record.solutions)
    return row


def truth_columns(who: str, behaviours: Sequence[Behaviour], truth: Truth) -> dict[str, Any]:
    """true_raw and true_cost per task; null where the world's truth is not known."""
    raw = [truth.true_raw(pi) if truth.known else None for pi in behaviours]
    cost = [truth.true_cost(pi) if truth.known else None for pi in behaviours]
    return per_task(f"{who}_true_raw", raw) | per_task(f"{who}_true_cost", cost)


def constraint_row(c: Constraint, truth: Truth) -> dict[str, Any]:
    row: dict[str, Any] = {"description": c.describe()}
    if isinstance(c, TableConstraint):
        row["forbidden"] = int(c.forbidden.sum())
        row["iou"] = iou(c, truth)
    return row


def constraint_error(c: Constraint, truth: Truth) -> float | None:
    """1 - IoU for tables."""
    overlap = iou(c, truth) if isinstance(c, TableConstraint) else None
    return None if overlap is None else 1 - overlap


def iou(c: TableConstraint, truth: Truth) -> float | None:
    """Intersection over union of the forbidden cells with the true ones."""
    if not truth.known:
        return None
    both = (c.forbidden & truth.walls).sum()
    return float(both / (c.forbidden | truth.walls).sum())


def per_task(name: str, values: Sequence[float | None]) -> dict[str, Any]:
    """A list in task order beside its mean."""
    known = [v for v in values if v is not None]
    mean = float(np.mean(known)) if known and len(known) == len(values) else None
    return {name: list(values), f"{name}_mean": mean}


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def make_summary(
    config: RunConfig,
    tasks: Sequence[str],
    heldout: Sequence[Behaviour],
    rows: Sequence[dict[str, Any]],
    chosen: Selection,
    truth: Truth,
    evidence: dict[str, int],
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "command": config.command,
        "world": config.world.name,
        "method": config.game.method,
        "seed": config.seed,
        "versions": versions(),
        "tasks": list(tasks),
        "iterations": list(rows),
        "selected": chosen.i,
        "constraint": rows[chosen.i - 1]["constraint"],
        "heldout": {
            "reward": chosen.expert_reward,
            "reward_se": chosen.expert_reward_se,
            "learner_reward": list(chosen.reward),
            "gap": list(chosen.gap),
            "rewarding": chosen.rewarding,
            **truth_columns("expert", heldout, truth),
        },
        "evidence": evidence,
        "env_steps": sum(row["env_steps"] for row in rows),
    }
