"""Constrained RL on a continuous task, on disk: `ringfence solve --world ant`.

DIR/solve.toml      all that determines the result
    starts.safetensors  states of demonstrations to start episodes at, where asked for
    start.safetensors   the policy that training begins from, where it does
    checkpoint/     from which a killed solve goes on, to the same bytes
    policy/         policy.safetensors and policy.json
    curves.csv      one line per update
    summary.json    evaluation, stochastic and deterministic
    path.png        episodes from above, over the constraint (where features are x and y)
    timing.json     wall-clock time, which no result depends on
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.constraints.saved import load
from ringfence.deploy import policies
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Feature, Problem, Start, Trajectory
from ringfence.report.topview import top_view
from ringfence.runs import config as configs
from ringfence.runs.files import (
    json_bytes,
    read_json,
    remove_partials,
    write_file,
    write_folder,
    write_json,
)
from ringfence.runs.folder import only_driver, refuse_existing
from ringfence.runs.start import read_start, start_files, start_hash
from ringfence.runs.summary import versions
from ringfence.solvers.ppo import PPO, Result, first_learner
from ringfence.solvers.ppo_config import PPOConfig
from ringfence.solvers.ppo_state import Record
from ringfence.worlds.ant import AntTask
from ringfence.worlds.ant_bullet import AntBulletTask
from ringfence.worlds.gym import GymTask
from ringfence.worlds.sim.rollouts import ContinuousTask

FILE, STARTS = "solve.toml", "starts.safetensors"
PICTURED = 8  # episodes in the picture
UNCONSTRAINED = "none"
LIMIT = 20.0  # on an episode's cost, where nobody says otherwise

World = Literal["ant", "ant-bullet"]
#: Before the id, or the "module:function", of a Gymnasium environment.
GYM = "gym:"


@dataclass(frozen=True)
class TrainConfig:
    """One constrained RL problem and how it is solved. constraint: an inequality, or "none".

    world: "ant", "ant-bullet" or "gym:" and a Gymnasium environment, whose `features` are keys
    of its info ("name" or "name:unit") and whose episodes have `horizon` steps (0: as
    registered). starts: the hash of the states where `ppo.start_share` of the episodes begin;
    start: that of the policy that training begins from, with its critics and its multiplier.
    """

    command: str
    seed: int
    world: str
    constraint: str
    delta: float
    ppo: PPOConfig
    features: tuple[str, ...] = ()
    horizon: int = 0
    starts: str = ""
    start: str = ""


@dataclass(frozen=True)
class _Problem:
    world: str
    constraint: str
    delta: float
    features: tuple[str, ...] = ()
    horizon: int = 0
    starts: str = ""
    start: str = ""


def to_toml(config: TrainConfig) -> str:
    problem = _Problem(*[getattr(config, f.name) for f in fields(_Problem)])
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
        seed=configs.seed_of(path, document),
        ppo=configs.section(path, document, "ppo", PPOConfig),
        **asdict(problem),
    )


def starts_hash(starts: Array) -> str:
    return sha256(np.ascontiguousarray(starts, np.float64).tobytes()).hexdigest()


def create(
    run: Path, config: TrainConfig, starts: Array | None = None, start: Start | None = None
) -> None:
    """A new folder with its configuration (and starts [n, s]), if the problem can be posed.

    start: the policy to train on from.
    """
    refuse_existing(run)
    problem = make_problem(config, start)
    if start is not None:
        first_learner(problem, cast(ContinuousTask, problem.task), config.ppo)  # do shapes agree?
    config = replace(config, start=start_hash(start))
    files = {FILE: to_toml(config).encode(), **start_files(start)}
    if starts is not None:
        if starts_hash(starts) != config.starts:
            raise ValueError("the configuration names other starts than these")
        files[STARTS] = safetensors.numpy.save({"states": np.ascontiguousarray(starts, np.float64)})
    write_folder(run, files)


def read_starts(run: Path, config: TrainConfig) -> Array | None:
    """The states that the configuration names, or None if it names none."""
    if not config.starts:
        return None
    path = run / STARTS
    if not path.is_file():
        raise InvalidInput(f"{run}: {STARTS} is missing, which {FILE} names; begin a new run")
    try:
        starts: Array = safetensors.numpy.load_file(path)["states"]
    except (KeyError, SafetensorError):
        starts = np.empty(0)
    if starts_hash(starts) != config.starts:
        raise InvalidInput(f"{path}: not the states that {FILE} names; begin a new run")
    return starts


def make_task(
    world: str, features: Sequence[str] = (), horizon: int | None = None
) -> ContinuousTask:
    """The task that a configuration names."""
    if world.startswith(GYM):
        pairs = [text.partition(":") for text in features]
        declared = tuple(Feature(name, unit) for name, _, unit in pairs)
        return GymTask(world.removeprefix(GYM), declared, steps=horizon or None)
    if world not in ("ant", "ant-bullet"):
        raise InvalidInput(f"there is no world {world!r} to train in")
    if features or horizon:
        raise InvalidInput(f"{world} has its own features and horizon; leave them out")
    return AntTask() if world == "ant" else AntBulletTask()


def make_problem(config: TrainConfig, start: Start | None = None) -> Problem:
    task = make_task(config.world, config.features, config.horizon)
    if task.horizon < 1:
        raise InvalidInput(f"an episode must have at least one step, got {task.horizon}")
    if config.constraint == UNCONSTRAINED:
        zero = np.zeros(len(task.features))
        c = LinearConstraint(tuple(task.features), zero, 0.0)
    else:
        c = parse_inequality(config.constraint, task.features)
    if not config.delta >= 0:
        raise InvalidInput(f"--delta must be at least 0, got {config.delta}")
    return Problem(task, c, config.delta, start, seed=(config.seed,))


def read_constraint(spec: str, features: Sequence[Feature]) -> tuple[str, float]:
    """What --constraint means, as an inequality (or "none"), with the limit it was saved with."""
    if not Path(spec).is_dir():
        return spec, LIMIT
    saved, units = load(spec), {f.name: f.unit for f in features}
    c = saved.constraint
    if not isinstance(c, LinearConstraint) or c.activation != "log":
        raise InvalidInput(
            f"{spec}: not an inequality ({c.describe()}); train under it with "
            f"'ringfence transfer {spec} --task FILE.toml'"
        )
    for f in c.features:
        if units.get(f.name, f.unit) != f.unit:
            raise InvalidInput(
                f"{spec}: it has {f.name!r} in {f.unit}, this world in {units[f.name]}; bring both "
                "to one unit"
            )
    return c.inequality(), saved.delta


def drive(run: Path, on_record: Callable[[Record], None]) -> dict[str, Any]:
    """Solve, from wherever it was; returns the summary."""
    if (run / "summary.json").is_file():  # written last
        return read_json(run / "summary.json")
    with only_driver(run):
        return _drive(run, on_record)


def _drive(run: Path, on_record: Callable[[Record], None]) -> dict[str, Any]:
    config = read(run)
    remove_partials(run)
    problem = make_problem(config, read_start(run, config.start))
    clock = Clock(run / "timing.json")

    def report(record: Record) -> None:
        if record.update % config.ppo.checkpoint_every == 0:
            clock.write()
        on_record(record)

    solver = PPO(
        config.ppo,
        starts=read_starts(run, config),
        checkpoint=run / "checkpoint",
        progress=report,
    )
    result = solver.solve(problem)
    c = problem.constraint
    assert isinstance(c, LinearConstraint)
    summary = {
        "schema": 1,
        "command": config.command,
        "world": config.world,
        "seed": config.seed,
        "versions": {**versions(), **solver_versions(config.world)},
        "constraint": {"description": config.constraint},
        "delta": config.delta,
        "lam": result.solution.lam,
        "env_steps": result.solution.env_steps,
        "update": result.handed_out,
        "stochastic": figures_of(result.stochastic, c),
        "deterministic": figures_of(result.deterministic, c),
    }
    task = cast(ContinuousTask, problem.task)
    write_folder(run / "policy", policy_files(config, task, result))
    write_file(run / "curves.csv", curves(result.records))
    if {"x", "y"} <= {f.name for f in c.features}:
        title = f"{config.world}, {config.constraint}"
        write_file(run / "path.png", top_view(result.stochastic[:PICTURED], c, title))
    clock.write()
    write_json(run / "summary.json", summary)
    return summary


class Clock:
    """Seconds of work that a result took, over all its sessions: timing.json.

    Written with each checkpoint: what a killed session did after its last one is lost and done
    again, and so counts once.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._began = path, time.monotonic()
        before = read_json(path) if path.is_file() else {}
        self._before = float(before.get("seconds", 0.0))

    def write(self) -> None:
        write_json(self._path, {"seconds": self._before + time.monotonic() - self._began})


def solver_versions(world: str) -> dict[str, str]:
    """Of what the result depends on, beside what every run does."""
    simulator = {"ant": "mujoco", "ant-bullet": "pybullet"}.get(world, "gymnasium")
    return {name: version(name) for name in ("jax", "jaxlib", "optax", simulator)}


def figures_of(trajectories: Sequence[Trajectory], c: LinearConstraint) -> dict[str, float]:
    """Means over episodes; true_* because here the constraint is the truth."""

    def per_episode(value: Callable[[Trajectory], float]) -> Array:
        return np.array([value(t) for t in trajectories])

    def mean_of(feature: int) -> float:
        return float(per_episode(lambda t: float(t.features[:, feature].mean())).mean())

    names = [f.name for f in c.features]
    reward = per_episode(lambda t: float(t.rewards.sum()))
    cost = per_episode(lambda t: float(c.cost(t.features).sum()))
    length = per_episode(lambda t: float(len(t)))
    return {
        "episodes": len(trajectories),
        "reward": float(reward.mean()),
        "reward_se": float(reward.std(ddof=1) / np.sqrt(len(reward))),
        "length": float(length.mean()),
        **({"speed": mean_of(names.index("speed"))} if "speed" in names else {}),
        "true_raw": float(per_episode(lambda t: float(c.raw(t.features).sum())).mean()),
        "true_cost": float(cost.mean()),
        "true_cost_se": float(cost.std(ddof=1) / np.sqrt(len(cost))),
        "true_cost_per_step": float(cost.sum() / length.sum()),
    }


def policy_files(config: TrainConfig, task: ContinuousTask, result: Result) -> dict[str, bytes]:
    about = {
        "world": config.world,
        "features": list(config.features),
        "constraint": config.constraint,
        "delta": config.delta,
        "seed": config.seed,
        "ppo": asdict(config.ppo),
    }
    return policies.to_bytes(result.solution.policy, task, about)


def curves(records: Sequence[Record]) -> bytes:
    """CSV, one line per update; an empty cell where no episode ended."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [f.name for f in fields(Record)]
    writer.writerow(names)
    writer.writerows([[getattr(r, name) for name in names] for r in records])
    return text.getvalue().encode()


def read_curves(path: Path) -> dict[str, Array]:
    """The columns of a curves.csv, [updates] each; NaN where a cell is empty."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {f.name: np.array([float(row[f.name] or "nan") for row in rows]) for f in fields(Record)}
