"""summary.json of a run on a continuous world. `true_*` and errors are for reading only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringfence.constraints.template import Template
from ringfence.game import Record
from ringfence.objects import Behaviour, Constraint, J, Solution
from ringfence.players.search import budget_curve, expert_levels
from ringfence.runs.control_config import ControlConfig
from ringfence.runs.control_player import parameters
from ringfence.runs.control_world import Truth, world_versions
from ringfence.runs.summary import finite, per_task
from ringfence.selection import Selection, choose

SCHEMA = 1


@dataclass(frozen=True, eq=False)
class Reader:
    """What the rows are made from: the class, the experts [K], and the truth if there is one."""

    template: Template | None
    experts: Sequence[Behaviour]
    truth: Truth

    def constraint(self, c: Constraint) -> dict[str, Any]:
        """A constraint in words and numbers, and how far it is from what can be compared."""
        theta = parameters(self.template, c)
        levels = expert_levels(self.template, self.experts) if self.template else None
        row: dict[str, Any] = {"description": c.describe(), "parameters": theta}
        if levels is not None and theta:
            (value,) = theta.values()
            row |= {f"error_expert_{k}": abs(value - level) for k, level in levels.items()}
        return row

    @property
    def true_parameters(self) -> dict[str, float] | None:
        """What the truth has in the place of the learned parameters, if the class holds it."""
        if self.template is None or self.truth.c is None:
            return None
        return parameters(self.template, self.truth.c) or None

    def error(self, c: Constraint) -> float | None:
        """|theta - theta*|, where the class holds the truth."""
        true, theta = self.true_parameters, parameters(self.template, c)
        if self.template is None or true is None or not theta:
            return None
        return self.template.error(*(np.array(list(t.values())) for t in (theta, true)))

    def figures(self, who: str, c: Constraint, group: Sequence[Behaviour]) -> dict[str, Any]:
        """One side of a row: per task and mean."""
        row = per_task(f"{who}_reward", [pi.reward for pi in group])
        row |= per_task(f"{who}_reward_se", [pi.reward_se for pi in group])
        row |= per_task(f"{who}_length", [pi.length for pi in group])
        row |= per_task(f"{who}_cost", [J(pi, c) for pi in group])
        row |= per_task(f"{who}_true_raw", [self.truth.raw(pi) for pi in group])
        row |= per_task(f"{who}_true_cost", [self.truth.cost(pi) for pi in group])
        return row


def iteration_row(record: Record, reader: Reader, ledger: Sequence[str]) -> dict[str, Any]:
    """Iteration i: c_i, its learners against the experts, and what came of it."""
    return {
        "i": record.i,
        "constraint": reader.constraint(record.c),
        "constraint_error": reader.error(record.c),
        "updated": reader.constraint(record.c_next),
        "updated_error": reader.error(record.c_next),
        "best_payoff": record.best_payoff,
        **per_task("delta", list(record.deltas)),
        **per_task("lam", [finite(s.lam) for s in record.solutions]),
        **reader.figures("learner", record.c, record.learners),
        **per_task("learner_failed", [left_out(s) for s in record.solutions]),
        **reader.figures("expert", record.c, reader.experts),
        "env_steps": sum(s.env_steps for s in record.solutions),
        "ledger": list(ledger),
    }


def left_out(solution: Solution) -> float:
    """How many of a learner's episodes failed and were not for the constraint player."""
    return float((solution.behaviour.episodes or 0) - (solution.shown.episodes or 0))


COMPARED = (
    "constraint_error",
    "learner_reward_mean",
    "learner_true_raw_mean",
    "learner_true_cost_mean",
)


def choices(rows: Sequence[dict[str, Any]], chosen: Selection) -> dict[str, Any]:
    """The selected iterate beside the last, a random one (on average), and the best by the truth.

    The truth-knowing choice has selection's rule with the true violation in the place of the gap.
    """
    last = len(rows) - 1
    table: dict[str, Any] = {
        "selected": _choice(rows[chosen.i - 1]),
        "last": _choice(rows[last]),
        "random": {"i": None, **{name: _mean(rows, name) for name in COMPARED}},
        "truth": None,
    }
    if all(row["learner_true_cost_mean"] is not None for row in rows):
        gap = [row["learner_true_cost_mean"] - row["expert_true_cost_mean"] for row in rows]
        enough = chosen.expert_reward - chosen.expert_reward_se
        eligible = [n for n in range(len(rows)) if chosen.reward[n] >= enough]
        table["truth"] = _choice(rows[choose(eligible, gap, chosen.reward)])
    return table


def _choice(row: dict[str, Any]) -> dict[str, Any]:
    return {"i": row["i"], **{name: row[name] for name in COMPARED}}


def _mean(rows: Sequence[dict[str, Any]], name: str) -> float | None:
    values = [row[name] for row in rows]
    return None if any(v is None for v in values) else float(np.mean(values))


def make_summary(
    config: ControlConfig,
    tasks: Sequence[str],
    used: Sequence[str],
    reader: Reader,
    heldout: Sequence[Behaviour],
    rows: Sequence[dict[str, Any]],
    chosen: Selection,
    interval: dict[str, Any] | None,
    probe: dict[str, Any] | None,
) -> dict[str, Any]:
    selected = rows[chosen.i - 1]
    curve = budget_curve(reader.template, reader.experts) if reader.template else []
    return {
        **heading(config, tasks, used),
        "outcome": "constraint",
        "true_parameters": reader.true_parameters,
        "unconstrained": probe,
        "iterations": list(rows),
        "selected": chosen.i,
        "constraint": {**selected["constraint"], "interval": interval},
        "choices": choices(rows, chosen),
        "budget_curve": [{"parameter": theta, "budget": budget} for theta, budget in curve],
        "heldout": {
            **per_task("reward", [pi.reward for pi in heldout]),
            "enough_reward": chosen.expert_reward - chosen.expert_reward_se,
            "learner_reward": list(chosen.reward),
            "gap": list(chosen.gap),
            "rewarding": chosen.rewarding,
            **per_task("expert_true_raw", [reader.truth.raw(pi) for pi in heldout]),
            **per_task("expert_true_cost", [reader.truth.cost(pi) for pi in heldout]),
        },
        "env_steps": sum(row["env_steps"] for row in rows) + (probe or {}).get("env_steps", 0),
    }


def nothing_to_learn(
    config: ControlConfig, tasks: Sequence[str], used: Sequence[str], probe: dict[str, Any]
) -> dict[str, Any]:
    """The summary of a run whose unconstrained learner earned no more than the demonstrators."""
    return {
        **heading(config, tasks, used),
        "outcome": "no constraint needed",
        "unconstrained": probe,
        "iterations": [],
        "selected": None,
        "env_steps": probe["env_steps"],
    }


def heading(config: ControlConfig, tasks: Sequence[str], used: Sequence[str]) -> dict[str, Any]:
    game = config.game
    return {
        "schema": SCHEMA,
        "command": config.command,
        "world": config.world.name,
        "method": game.method,
        "player": game.player,
        "class": game.constraint,
        "used": list(used),
        "expert_budget": game.expert_budget if game.player == "payoff" else None,
        "truth": config.world.truth or None,
        "seed": config.seed,
        "versions": world_versions(config.world),
        "demonstrations_sha256": config.demos.content_hash,
        "tasks": list(tasks),
    }
