"""Runs of schema 2 written file by file, as the contract of a run on disk has them: no simulator
and no game is needed to test what is drawn of a plane, a line or a floor."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from ringfence.constraints.constraint_files import to_bytes
from ringfence.constraints.linear import parse_inequality
from ringfence.demos import dataset
from ringfence.disk import write_sealed
from ringfence.objects import Array, Constraint, Demonstrations, Feature, TaskDemos, Trajectory
from saved_constraints import random_network

PLANE = (Feature("x", "m"), Feature("y", "m"), Feature("speed", "m/s"))
FLOOR = PLANE[:2]
LEARNED = ("speed <= 0.9", "speed <= 0.7", "speed <= 0.72")
TRUTH = "speed <= 0.75"
SHAPE = (2, 3)
WALLS = [[0, 1, 0], [0, 0, 0]]
BOTH = ("reward", "reward_se", "length", "cost", "true_raw", "true_cost")


def write_plane_run(run: Path, seed: int = 0, truth: str | None = TRUTH, **more: Any) -> Path:
    """Three iterations of "speed <= ?" on two tasks, with speeds from 0 to 1 m/s."""
    steps = np.linspace(0.0, 1.0, 201)
    episodes = [np.column_stack([k + steps, steps**2, steps]) for k in range(3)]
    learned = [parse_inequality(text, PLANE) for text in LEARNED]
    rows = [
        _row(i, c, {"limit": float(c.offset)}, 2, truth is not None)
        for i, c in enumerate(learned, start=1)
    ]
    interval = {"level": 0.95, "resamples": 20, "parameters": {"limit": [0.6, 0.8]}}
    summary = {
        **_heading("ant", ["a", "b"], PLANE, rows, seed),
        "class": "speed <= ?",
        "used": ["speed"],
        "truth": truth,
        "true_parameters": {"limit": 0.75} if truth else None,
        "views": [{"kind": "plane", "columns": [0, 1]}, {"kind": "line", "columns": [2]}],
        "selected": 2,
        "constraint": {**rows[1]["constraint"], "interval": interval},
        "budget_curve": [{"parameter": 0.5, "budget": 20.0}, {"parameter": 1.0, "budget": 0.0}],
        "doubts": ["the learner earns more than the experts"],
        "not_here": {"evidence": "the world is not finite"},
        **more,
    }
    _write(run, summary, {"kind": "ant", "truth": truth or ""}, learned, PLANE, episodes)
    (run / "policy").mkdir()
    return run


def write_floor_run(run: Path) -> Path:
    """Two iterations of a network on a floor of 2 x 3 cells; its learners' walks were noted."""
    walk = np.linspace([-4.0, 2.0], [4.0, -2.0], 60)
    learned: list[Constraint] = [random_network(features=FLOOR, offset=o) for o in (9.0, 0.25)]
    rows = [_row(i, c, {}, 1, True, iou=0.5) for i, c in enumerate(learned, start=1)]
    for row in rows:
        row["episodes"] = {"arrived": 2, "fell": 0, "late": 0, "dead_ends": 0}
    view = {"kind": "floor", "columns": [0, 1], "shape": list(SHAPE), "cell": 4.0,
            "starts": [[0, 0]], "goals": [[1, 2]], "walls": WALLS}  # fmt: skip
    summary = {
        **_heading("ant-maze", ["goal (1,2)"], FLOOR, rows, 0),
        "class": "mlp",
        "used": ["x", "y"],
        "views": [view],
        "selected": 2,
        "constraint": {**rows[1]["constraint"], "interval": None},
        "not_here": dict.fromkeys(("evidence", "interval", "budget_curve"), "not in this test"),
    }
    world = {"kind": "ant-maze", "map": ["S#.", "..0"]}
    noted = {"policy.xy": np.concatenate([walk, walk]), "policy.length": np.array([60, 60]),
             "policy.start": np.array([0, 1])}  # fmt: skip
    return _write(run, summary, world, learned, FLOOR, [walk, walk[::-1]], noted)


def write_unneeded(run: Path) -> Path:
    """A run that ended with the probe."""
    write_plane_run(run)
    path = run / "summary.json"
    summary = json.loads(path.read_text())
    free = {"learner_reward_mean": 3.0, "expert_reward_mean": 2.5, "env_steps": 1000}
    nothing = ("selected", "constraint", "selection", "heldout", "choices", "budget_curve")
    summary |= dict.fromkeys(nothing) | {"iterations": [], "unconstrained": free}
    path.write_text(json.dumps(summary | {"outcome": "no constraint needed", "doubts": []}))
    return run


def _heading(
    world: str, tasks: Sequence[str], features: Sequence[Feature], rows: Any, seed: int
) -> dict[str, Any]:
    choice = {key: rows[0][key] for key in ("i", "constraint_error", "learner_reward_mean",
              "learner_true_raw_mean", "learner_true_cost_mean")}  # fmt: skip
    return {
        "schema": 2,
        "command": f"ringfence learn --seed {seed}",
        "world": world,
        "kind": world,
        "outcome": "constraint",
        "method": "icl",
        "player": "regression",
        "expert_budget": None,
        "truth": None,
        "true_parameters": None,
        "seed": seed,
        "versions": {"ringfence": "0.2.0", "numpy": "2.0"},
        "demonstrations_sha256": "0123456789abcdef",
        "tasks": list(tasks),
        "horizon": 201,
        "features": [{"name": f.name, "unit": f.unit} for f in features],
        "unconstrained": None,
        "iterations": rows,
        "selection": {"rewarding": True},
        "heldout": None,
        "choices": {"selected": choice, "last": choice, "random": {**choice, "i": None},
                    "truth": None},
        "budget_curve": None,
        "evidence": None,
        "doubts": [],
        "failed_demonstrations": None,
        "env_steps": 12_345,
    }  # fmt: skip


def _row(
    i: int, c: Constraint, parameters: Mapping[str, float], tasks: int, known: bool,
    iou: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    row: dict[str, Any] = {
        "i": i,
        "constraint": {
            "description": c.describe(),
            "parameters": dict(parameters),
            "forbidden": None,
            "iou": iou,
        },
        "constraint_error": 0.1 * i if known else None,
        "best_payoff": 0.1 / i,
        "bound": None,
        "env_steps": 1000,
        "ledger": [f"solve{i}x{k}" for k in range(tasks)],
        "reused": [None] * tasks,
        "episodes": None,
        "violations": None,
    }
    names = [f"{who}_{name}" for who in ("learner", "expert") for name in BOTH]
    for n, name in enumerate(("delta", "lam", "learner_failed", *names)):
        values = [None if "true" in name and not known else n + 0.5 * k + i for k in range(tasks)]
        row |= {name: values, f"{name}_mean": None if None in values else float(np.mean(values))}
    return row


def _write(
    run: Path,
    summary: Mapping[str, Any],
    world: Mapping[str, Any],
    learned: Sequence[Constraint],
    features: tuple[Feature, ...],
    episodes: Sequence[Array],
    noted: Mapping[str, Any] | None = None,
) -> Path:
    run.mkdir(parents=True)
    tasks = tuple(
        TaskDemos(name, tuple(map(_trajectory, episodes)), ()) for name in summary["tasks"]
    )
    dataset.save(Demonstrations(tasks, features, {}), run / "demos")
    for n, c in enumerate(learned):
        save_constraint(run / f"constraints/c_{n:03d}", c)
    save_constraint(run / "constraint", learned[summary["selected"] - 1])
    for row in summary["iterations"]:
        for name in row["ledger"]:
            _solve(run / "ledger" / name, episodes, noted or {})
    lines = [f"{key} = {json.dumps(value)}" for key, value in world.items()]
    (run / "config.toml").write_text(
        f"schema = 2\ncommand = {json.dumps(summary['command'])}\nseed = {summary['seed']}\n\n"
        "[world]\n" + "\n".join(lines) + "\n\n[game]\nepsilon = -1.0\n"
    )
    (run / "timing.json").write_text('{"seconds": 300.0}')
    (run / "summary.json").write_text(json.dumps(summary))
    return run


def save_constraint(folder: Path, c: Constraint) -> None:
    folder.mkdir(parents=True)
    for name, content in to_bytes(c, 0.0, {}).items():
        (folder / name).write_bytes(content)


def _trajectory(features: Array) -> Trajectory:
    count = len(features)
    return Trajectory(
        np.zeros((count + 1, 1)), np.zeros((count, 1)), np.zeros(count), features, False
    )


def _solve(folder: Path, episodes: Sequence[Array], noted: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True)
    features = np.concatenate(list(episodes))
    arrays = {
        "features": features,
        "visits": np.full(len(features), 1 / len(episodes)),
        "scalars": np.array([0.0, 1.0, 0.1, 201.0]),
        **noted,
    }
    kept = {str(k): np.ascontiguousarray(e[::5], np.float32) for k, e in enumerate(episodes)}
    files = {"arrays.safetensors": arrays, "episodes.safetensors": kept}
    write_sealed(folder, {name: safetensors.numpy.save(a) for name, a in files.items()})
