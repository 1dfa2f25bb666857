"""A study of summaries that a test makes up, for tables that need no run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ringfence.reproduce.experiment import Variant, parse
from ringfence.reproduce.study import Study


def study_of(
    folder: Path,
    summaries: Mapping[str, Mapping[int, dict[str, Any]]],
    seeds: int = 1,
    settings: dict[str, Any] | None = None,
    **options: Any,
) -> Study:
    """summaries: by variant and seed."""
    variants = tuple(Variant(name, settings or {}, seeds, f"why {name}") for name in summaries)
    for name, of in summaries.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for seed, summary in of.items():
            (folder / name / f"seed-{seed}.json").write_text(json.dumps(summary))
    experiment = parse("a file", "made-up", b'about = "made up"', folder)
    return Study(experiment, variants, folder, lambda line: None, options=options)


def row(**changes: Any) -> dict[str, Any]:
    """An iteration's row as far as the tables read it: by default a good one."""
    return {
        "i": 1,
        "constraint": {"description": "speed <= 0.74", "parameters": {"limit": 0.74}},
        "constraint_error": 0.01,
        "expert_reward_mean": 100.0,
        "expert_reward_se_mean": 2.0,
        "learner_reward_mean": 96.5,
        "expert_true_raw_mean": -10.0,
        "learner_true_raw_mean": 9.0,
        "expert_true_cost_mean": 10.0,
        "learner_true_cost_mean": 8.0,
        "expert_length_mean": 1000.0,
        "learner_length_mean": 1000.0,
        **changes,
    }


def game(*rows: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A summary of a game with these iterations, of which the first is selected."""
    columns = ("constraint_error", "learner_reward_mean", "learner_true_raw_mean",
               "learner_true_cost_mean")  # fmt: skip
    first = {"i": 1, **{name: rows[0][name] for name in columns}}
    return {
        "schema": 2,
        "method": "icl",
        "outcome": "constraint",
        "class": "speed <= ?",
        "used": ["speed"],
        "true_parameters": {"limit": 0.75},
        "iterations": list(rows),
        "selected": 1,
        "constraint": {**rows[0]["constraint"], "interval": None},
        "choices": {"selected": first, "last": {**first, "i": len(rows)},
                    "random": {**first, "i": None}, "truth": first},
        "env_steps": 1000,
        **changes,
    }  # fmt: skip


#: A point that is hardly trained, for `kind = "limit"`.
POINT = """
about = "a point that is hardly trained"
kind = "limit"
seeds = 2
first_seed = 100

[base]
world.kind = "gym"
world.env = "ringfence.reproduce.limit_worlds:Point"
world.steps = 60
world.features = [{ name = "x", unit = "m", column = 0 }]

[base.solver]
kind = "ppo"
env_steps = 1024
copies = 16
steps = 32
passes = 1
hidden = [16]
evaluation_episodes = 2

[variants.free]
part = "point"
seeds = 1
training.constraint = "none"
training.activation = "steps"
training.delta = 0.0
training.judged_under = ["x <= -0.85"]

[variants.zero]
like = "free"
part = "point"
seeds = 2
training.constraint = "x <= -0.85"

[variants.fifth]
like = "zero"
part = "point"
training = { share_of = "free", share = 0.2 }

[[table]]
rows = "limits"
columns = [["env", "environment"], ["limit", "limit"], ["seed", "seed"], ["reward", "reward"]]
"""
