"""Constrained RL on a continuous task, on disk: `ringfence solve --world ant`.

DIR/solve.toml      all that determines the result
    checkpoint/     from which a killed solve goes on, to the same bytes
    policy/         policy.safetensors and policy.json
    curves.csv      one line per update
    summary.json    evaluation, stochastic and deterministic
    path.png        episodes from above, over the constraint
    timing.json     wall-clock time, which no result depends on
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors.numpy

from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Problem, Trajectory
from ringfence.report.topview import top_view
from ringfence.runs import config as configs
from ringfence.runs.files import json_bytes, remove_partials, write_file, write_folder, write_json
from ringfence.runs.summary import versions
from ringfence.solvers.ppo import PPO, PPOConfig, Record, Result
from ringfence.worlds.ant import AntTask
from ringfence.worlds.ant_bullet import AntBulletTask
from ringfence.worlds.rollouts import ContinuousTask

FILE = "solve.toml"
PICTURED = 8  # episodes in the picture
UNCONSTRAINED = "none"

World = Literal["ant", "ant-bullet"]


@dataclass(frozen=True)
class TrainConfig:
    """One constrained RL problem and how it is solved. constraint: an inequality, or "none"."""

    command: str
    seed: int
    world: World
    constraint: str
    delta: float
    ppo: PPOConfig


@dataclass(frozen=True)
class _Problem:
    world: World
    constraint: str
    delta: float


def to_toml(config: TrainConfig) -> str:
    problem = _Problem(config.world, config.constraint, config.delta)
    lines = [
        f"schema = {configs.SCHEMA}",
        f"command = {json_bytes(config.command).decode().strip()}",
        f"seed = {config.seed}",
        *configs.section_lines("problem", problem),
        *configs.section_lines("ppo", config.ppo),
    ]
    return "\n".join(lines) + "\n"


def read(run: Path) -> TrainConfig:
    path = run / FILE
    document = configs.read_document(path)
    problem = configs.section(path, document, "problem", _Problem)
    return TrainConfig(
        command=configs.scalar(path, document, "command", str),
        seed=configs.scalar(path, document, "seed", int),
        world=problem.world,
        constraint=problem.constraint,
        delta=problem.delta,
        ppo=configs.section(path, document, "ppo", PPOConfig),
    )


def create(run: Path, config: TrainConfig) -> None:
    """A new folder with its configuration, if the problem can be posed at all."""
    if run.exists():
        raise InvalidInput(
            f"{run}: it exists already; go on with 'ringfence resume {run}' or choose another --out"
        )
    make_problem(config)
    run.parent.mkdir(parents=True, exist_ok=True)
    write_folder(run, {FILE: to_toml(config).encode()})


def make_task(world: World) -> ContinuousTask:
    return AntTask() if world == "ant" else AntBulletTask()


def make_problem(config: TrainConfig) -> Problem:
    task = make_task(config.world)
    if config.constraint == UNCONSTRAINED:
        zero = np.zeros(len(task.features))
        c = LinearConstraint(tuple(task.features), zero, 0.0)
    else:
        c = parse_inequality(config.constraint, task.features)
    if not config.delta >= 0:
        raise InvalidInput(f"--delta must be at least 0, got {config.delta}")
    return Problem(task, c, config.delta, start=None, seed=(config.seed,))


def drive(run: Path, on_record: Callable[[Record], None]) -> dict[str, Any]:
    """Solve, from wherever it was; returns the summary."""
    config = read(run)
    remove_partials(run)
    problem = make_problem(config)
    began = time.monotonic()
    result = PPO(config.ppo, checkpoint=run / "checkpoint", progress=on_record).solve(problem)
    seconds = time.monotonic() - began
    c = problem.constraint
    assert isinstance(c, LinearConstraint)
    summary = {
        "schema": 1,
        "command": config.command,
        "world": config.world,
        "seed": config.seed,
        "versions": {**versions(), **simulator_version(config.world)},
        "constraint": {"description": config.constraint},
        "delta": config.delta,
        "lam": result.solution.lam,
        "env_steps": result.solution.env_steps,
        "stochastic": figures_of(result.stochastic, c),
        "deterministic": figures_of(result.deterministic, c),
    }
    write_policy(run / "policy", config, result)
    write_file(run / "curves.csv", curves(result.records))
    paths = result.stochastic[:PICTURED]
    title = f"{config.world}, {config.constraint}"
    write_file(run / "path.png", top_view(paths, c, title))
    write_json(run / "timing.json", {"seconds": seconds})
    write_json(run / "summary.json", summary)
    return summary


def simulator_version(world: World) -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in (("mujoco",) if world == "ant" else ("pybullet",))}


def figures_of(trajectories: Sequence[Trajectory], c: LinearConstraint) -> dict[str, float]:
    """Means over episodes; true_* because here the constraint is the truth."""

    def per_episode(value: Callable[[Trajectory], float]) -> Array:
        return np.array([value(t) for t in trajectories])

    speed = [f.name for f in c.features].index("speed")
    reward = per_episode(lambda t: float(t.rewards.sum()))
    cost = per_episode(lambda t: float(c.cost(t.features).sum()))
    length = per_episode(lambda t: float(len(t)))
    return {
        "episodes": len(trajectories),
        "reward": float(reward.mean()),
        "reward_se": float(reward.std(ddof=1) / np.sqrt(len(reward))),
        "length": float(length.mean()),
        "speed": float(per_episode(lambda t: float(t.features[:, speed].mean())).mean()),
        "true_raw": float(per_episode(lambda t: float(c.raw(t.features).sum())).mean()),
        "true_cost": float(cost.mean()),
        "true_cost_se": float(cost.std(ddof=1) / np.sqrt(len(cost))),
        "true_cost_per_step": float(cost.sum() / length.sum()),
    }


def write_policy(folder: Path, config: TrainConfig, result: Result) -> None:
    arrays = {name: np.asarray(a, order="C") for name, a in result.solution.policy.items()}
    document = {
        "schema": 1,
        "world": config.world,
        "constraint": config.constraint,
        "delta": config.delta,
        "seed": config.seed,
        "ppo": asdict(config.ppo),
        "arrays": {name: list(array.shape) for name, array in arrays.items()},
    }
    files = {"policy.safetensors": safetensors.numpy.save(arrays)}
    write_folder(folder, {**files, "policy.json": json_bytes(document)})


def curves(records: Sequence[Record]) -> bytes:
    """CSV, one line per update; an empty cell where no episode ended."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [f.name for f in fields(Record)]
    writer.writerow(names)
    writer.writerows([[getattr(r, name) for name in names] for r in records])
    return text.getvalue().encode()
