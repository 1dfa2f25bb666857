"""summary.json: the contract with people and tools (DESIGN: "A run on disk").

The same keys for every world. `true_*` columns and errors come from the world's truth and are for
reading only. A number that can't be had (no truth known, an infinite multiplier) is null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from ringfence.constraints.family import Family
from ringfence.constraints.table import TableConstraint
from ringfence.constraints.written import parse_constraint
from ringfence.game import Record
from ringfence.objects import Behaviour, Constraint, J, NotHere, Solution
from ringfence.players.search import expert_levels
from ringfence.runs.config import Config
from ringfence.selection import Selection
from ringfence.worlds.world import Truth, World

SCHEMA = 2


@dataclass(frozen=True, eq=False)
class Inequality:
    """A truth that is stated in words: an evaluator like a map's."""

    c: Constraint
    known: bool = True

    def true_cost(self, pi: Behaviour) -> float:
        return J(pi, self.c)

    def true_raw(self, pi: Behaviour) -> float:
        return float(pi.visits @ self.c.raw(pi.features))


def truth_of(settings: Any, world: World) -> Truth:
    """The world's own truth, or the inequality that its settings state."""
    text = getattr(settings, "truth", "")
    return Inequality(parse_constraint(text, world.features)) if text else world.truth


def versions(world: World) -> dict[str, str]:
    """Of everything whose numbers can reach a result."""
    return {name: version(name) for name in ("ringfence", "numpy", *world.packages)}


def per_task(name: str, values: Sequence[float | None]) -> dict[str, Any]:
    """A list in task order beside its mean."""
    known = [v for v in values if v is not None]
    mean = float(np.mean(known)) if known and len(known) == len(values) else None
    return {name: list(values), f"{name}_mean": mean}


def finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True, eq=False)
class Reader:
    """What rows are made from: the world, the class, the experts [K], and the truth."""

    world: World
    family: Family
    experts: Sequence[Behaviour]
    truth: Truth

    def constraint(self, c: Constraint) -> dict[str, Any]:
        """A constraint in words and numbers, and how far it is from what can be compared."""
        theta, template = self.family.parameters(c), self.family.template
        row: dict[str, Any] = {"description": c.describe(), "parameters": theta}
        levels = expert_levels(template, self.experts) if template is not None else None
        if levels is not None and theta:
            (value,) = theta.values()
            row |= {f"error_expert_{k}": abs(value - level) for k, level in levels.items()}
        return row | self._cells(c)

    def _cells(self, c: Constraint) -> dict[str, Any]:
        """The forbidden cells, where there are some underneath, and their overlap with the true."""
        cells = self.world.cells
        if cells is None or not self._tells_cells(c):
            return {"forbidden": None, "iou": None}
        forbidden = cells.forbidden(c)
        words = c.describe()
        apart = cells.tasks[0].features != self.world.features
        if not isinstance(c, TableConstraint) and cells.path is not None and apart:
            table = TableConstraint(cells.tasks[0].features, forbidden.astype(float))
            words = f"{table.describe()} ({words})"
        return {"description": words, "forbidden": int(forbidden.sum()), "iou": self.iou(c)}

    def _tells_cells(self, c: Constraint) -> bool:
        """Is it a table of cells, or does the world plan over the cells that it flags?"""
        cells = self.world.cells
        return isinstance(c, TableConstraint) or (cells is not None and cells.path is not None)

    def iou(self, c: Constraint) -> float | None:
        """Intersection over union of the forbidden cells with the true ones."""
        cells = self.world.cells
        if cells is None or cells.walls is None or not self._tells_cells(c):
            return None
        forbidden = cells.forbidden(c)
        return float((forbidden & cells.walls).sum() / (forbidden | cells.walls).sum())

    def error(self, c: Constraint) -> float | None:
        """|theta - theta*| where the class holds the truth; 1 - IoU on maps."""
        if isinstance(self.truth, Inequality):
            return self.family.error(c, self.truth.c)
        overlap = self.iou(c)
        return None if overlap is None else 1 - overlap

    @property
    def true_parameters(self) -> dict[str, float] | None:
        """What the truth has in the place of the learned parameters, if the class holds it."""
        if not isinstance(self.truth, Inequality):
            return None
        return self.family.parameters(self.truth.c) or None

    def figures(self, who: str, c: Constraint, group: Sequence[Behaviour]) -> dict[str, Any]:
        """One side of a row: per task and mean."""
        row = per_task(f"{who}_reward", [pi.reward for pi in group])
        row |= per_task(f"{who}_reward_se", [pi.reward_se for pi in group])
        row |= per_task(f"{who}_length", [pi.length for pi in group])
        row |= per_task(f"{who}_cost", [J(pi, c) for pi in group])
        return row | self.true_columns(who, group)

    def true_columns(self, who: str, group: Sequence[Behaviour]) -> dict[str, Any]:
        known = self.truth.known
        raw = [self.truth.true_raw(pi) if known else None for pi in group]
        cost = [self.truth.true_cost(pi) if known else None for pi in group]
        return per_task(f"{who}_true_raw", raw) | per_task(f"{who}_true_cost", cost)

    def row(
        self,
        record: Record,
        tasks: Sequence[str],
        bound: float | None,
        ledger: Sequence[str],
        reused: Sequence[int | None],
    ) -> dict[str, Any]:
        """Iteration i: c_i, its learners against the experts, and what came of it.

        bound: the time-averaged regret times T, where it is known: by the single-task theorem the
        mean true violation of pi_1..pi_i, less the experts', is at most this. reused: the earlier
        iteration from whose ledger entry a task's solution is.
        """
        own: dict[str, Any] = {"episodes": None, "violations": None}
        return {
            "i": record.i,
            "constraint": self.constraint(record.c),
            "constraint_error": self.error(record.c),
            "updated": self.constraint(record.c_next),
            "updated_error": self.error(record.c_next),
            "best_payoff": record.best_payoff,
            "bound": bound,
            **per_task("delta", list(record.deltas)),
            **per_task("lam", [finite(s.lam) for s in record.solutions]),
            **self.figures("learner", record.c, record.learners),
            **per_task("learner_failed", [left_out(s) for s in record.solutions]),
            **self.figures("expert", record.c, self.experts),
            **per_task("expert_updated_cost", [J(pi, record.c_next) for pi in self.experts]),
            "env_steps": sum(s.env_steps for s in record.solutions),
            "ledger": list(ledger),
            "reused": list(reused),
            **own,
            **self.world.columns(tasks, record.solutions),
        }


def left_out(solution: Solution) -> float:
    """How many of a learner's episodes failed and were not for the constraint player."""
    return float((solution.behaviour.episodes or 0) - (solution.shown.episodes or 0))


def heading(config: Config, world: World, reader: Reader, tasks: Sequence[str]) -> dict[str, Any]:
    """What was played."""
    used = reader.family.used
    names = [f.name for f in world.features]
    views = [v for v in world.views() if all(names[k] in used for k in v["columns"])]
    plane = [k for k, name in enumerate(names) if name in used]
    if len(plane) == 2 and not any(len(v["columns"]) == 2 for v in views):
        views.insert(0, {"kind": "plane", "columns": plane})
    return {
        "schema": SCHEMA,
        "command": config.command,
        "world": world.name,
        "kind": config.world.kind,
        "outcome": "constraint",
        "method": config.game.method,
        "player": config.player.kind,
        "class": config.game.constraint,
        "used": used,
        "expert_budget": getattr(config.player, "expert_budget", None),
        "truth": getattr(config.world, "truth", "") or None,
        "true_parameters": reader.true_parameters,
        "seed": config.seed,
        "versions": versions(world),
        "demonstrations_sha256": config.demos.content_hash,
        "tasks": list(tasks),
        "horizon": world.tasks[0].horizon,
        "features": [{"name": f.name, "unit": f.unit} for f in world.features],
        "views": views or world.views(),
    }


def nothing_to_learn(
    head: Mapping[str, Any], probe: Mapping[str, Any], doubts: Sequence[str]
) -> dict[str, Any]:
    """The summary of a run whose unconstrained learners earned no more than the demonstrators."""
    reason = "no constraint was needed, so no game was played"
    absent = ("constraint", "selection", "heldout", "choices", "budget_curve", "evidence")
    return {
        **head,
        "outcome": "no constraint needed",
        "unconstrained": probe,
        "iterations": [],
        "selected": None,
        **dict.fromkeys(absent),
        "doubts": list(doubts),
        "not_here": dict.fromkeys(("evidence", "interval", "budget_curve"), reason),
        "env_steps": probe["env_steps"],
    }


#: In the place of an analysis, until it is made.
NOT_YET = NotHere("not made yet: the run was stopped before it; 'ringfence resume' makes it")


def with_analyses(summary: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """A summary with what analyses found, or why there is nothing of theirs."""
    here = {name: None if isinstance(x, NotHere) else x for name, x in found.items()}
    return {
        **summary,
        "constraint": {**summary["constraint"], "interval": here.pop("interval")},
        **here,
        "not_here": {n: x.reason for n, x in found.items() if isinstance(x, NotHere)},
    }


def is_whole(summary: Mapping[str, Any]) -> bool:
    """Are all its analyses made?"""
    return NOT_YET.reason not in summary["not_here"].values()


def selection_columns(chosen: Selection) -> dict[str, Any]:
    return {
        "learners": chosen.learners,
        "conflicts": chosen.conflicts,
        "unexplained": list(chosen.unexplained),
        "charged": list(chosen.charged),
        "done_well": list(chosen.done_well),
        "enough_reward": chosen.expert_reward - chosen.expert_reward_se,
        "learner_reward": list(chosen.reward),
        "rewarding": chosen.rewarding,
    }


def heldout_columns(reader: Reader, heldout: Sequence[Behaviour]) -> dict[str, Any]:
    return {
        **per_task("expert_reward", [pi.reward for pi in heldout]),
        **per_task("expert_reward_se", [pi.reward_se for pi in heldout]),
        **reader.true_columns("expert", heldout),
    }
