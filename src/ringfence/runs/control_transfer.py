"""A task on a continuous world under a learned constraint: `ringfence transfer`.

The task is a new one, or one of the run's own, on which its policy is trained on.

DIR/transfer.toml   all that determines the result
    constraint.json, weights.safetensors   the saved constraint, a copy
    start.safetensors   the policy that training begins from, where it does
    ledger/ checkpoints/ episodes/   of the solve: a killed transfer goes on with `resume`
    policy/         policy.safetensors
    summary.json    reward, cost, violations, with an exact interval for their chance

With a clearance, training is under the constraint moved inwards by it (`tightened`); counted is the
constraint as it was learned. An episode violates that if it costs more than delta. The truth, where
it is known, has costs of its own, so it is counted against what the demonstrators' episodes cost by
it: `true_limit`, the most of any; `true_limit_is` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.binomial import binomial_interval
from ringfence.constraints import files as constraint_files
from ringfence.constraints.linear import tightened
from ringfence.demos import dataset as demonstrations
from ringfence.deploy import policies
from ringfence.errors import InvalidInput
from ringfence.objects import Constraint, Problem, Start, Trajectory, widened
from ringfence.runs import config as configs
from ringfence.runs import control_config
from ringfence.runs.control_config import ControlWorld
from ringfence.runs.control_solver import ControlSolver
from ringfence.runs.control_world import make_tasks, make_truth, world_versions
from ringfence.runs.files import read_json, remove_partials, write_folder, write_json
from ringfence.runs.folder import OnEvent, only_driver, refuse_existing, teller
from ringfence.runs.ledger import Ledger
from ringfence.runs.start import read_start, start_files, start_hash
from ringfence.runs.summary import finite
from ringfence.solvers.ppo import evaluate, seen_of
from ringfence.solvers.ppo_config import PPOConfig
from ringfence.solvers.ppo_state import Record
from ringfence.worlds.gym import GymTask
from ringfence.worlds.sim.replay import trial
from ringfence.worlds.sim.rollouts import ContinuousTask
from ringfence.worlds.sim.task_checks import check_task

FILE = "transfer.toml"
#: The last number of the seed path of the episodes that are counted.
COUNTED = 70
CONFIDENCE = 0.95
#: What true violations are counted against: where the demonstrations are known, and where not.
SHOWN = "the most that a demonstration costs"
NOT_SHOWN = "any true cost counts, as the demonstrations are not beside the constraint"


@dataclass(frozen=True)
class Settings:
    """delta: the limit on an episode's cost; episodes: how many are counted afterwards;
    true_limit: the most that a demonstration truly costs, where that is known; clearance: to be
    kept from the constraint; start: the hash of the policy that training begins from; train:
    without it that policy is only told of the clearance, by its input of the constraint's value."""

    delta: float
    episodes: int = 100
    true_limit: float | None = None
    clearance: float = 0.0
    start: str = ""
    train: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.delta < np.inf:
            raise InvalidInput(f"the limit delta must be at least 0 and finite, got {self.delta}")
        if self.episodes < 2:
            raise InvalidInput(f"--episodes must be at least 2, got {self.episodes}")


@dataclass(frozen=True)
class TransferConfig:
    command: str
    seed: int
    world: ControlWorld
    transfer: Settings
    ppo: PPOConfig


def to_toml(config: TransferConfig) -> str:
    lines = [
        f"schema = {configs.SCHEMA}",
        f"command = {configs.toml_value(config.command)}",
        f"seed = {config.seed}",
    ]
    for name in ("world", "transfer", "ppo"):
        lines += configs.section_lines(name, getattr(config, name))
    return "\n".join(lines) + "\n"


def read(path: Path) -> TransferConfig:
    document = configs.read_document(path)
    return TransferConfig(
        configs.scalar(path, document, "command", str),
        configs.seed_of(path, document),
        configs.section(path, document, "world", ControlWorld),
        configs.section(path, document, "transfer", Settings),
        configs.section(path, document, "ppo", PPOConfig),
    )


def read_task(text: str) -> tuple[ControlWorld, PPOConfig]:
    """FILE.toml or FILE.toml:TASK: a world with one task, and the settings of its training."""
    name, colon, task = text.partition(".toml:")
    path = Path(name + ".toml" if colon else text)
    document = control_config.user_document(path)
    world = configs.section(path, document, "world", ControlWorld)
    if colon:
        chosen = tuple(t for t in world.tasks if t.name == task)
        if not chosen:
            there = ", ".join(t.name for t in world.tasks) or "none"
            raise InvalidInput(f"{path}: there is no task {task!r}; it has {there}")
        world = replace(world, tasks=chosen)
    if len(world.tasks) > 1:
        names = ", ".join(t.name for t in world.tasks)
        raise InvalidInput(f"{path}: several tasks ({names}); choose one with --task {path}:NAME")
    return world, configs.section(path, document, "ppo", PPOConfig)


def own_task(run: Path, name: str | None) -> tuple[ControlWorld, PPOConfig, Start]:
    """A task of a finished game, with its settings and the policy of the selected iterate."""
    if not (run / "summary.json").is_file():
        raise InvalidInput(f"{run}: not finished; 'ringfence resume {run}'")
    config, summary = control_config.read(run / "config.toml"), read_json(run / "summary.json")
    tasks: list[str] = summary["tasks"]
    if name is None and len(tasks) > 1:
        raise InvalidInput(
            f"{run}: several tasks ({', '.join(tasks)}); choose one with --task NAME"
        )
    k = 0 if name is None else _index(run, tasks, name)
    if summary["outcome"] != "constraint":
        raise InvalidInput(f"{run}: no constraint was needed, so there is none to train under")
    ledger = Ledger(run / "ledger")
    solution = ledger.get(summary["iterations"][summary["selected"] - 1]["ledger"][k])
    if solution is None:
        raise InvalidInput(f"{run}: the selected policy is not in its ledger; play the game again")
    world = replace(config.world, tasks=config.world.tasks[k : k + 1])
    ppo = replace(config.ppo, start_share=0.0)  # lam goes on with the policy
    return world, ppo, solution.policy


def _index(run: Path, tasks: list[str], name: str) -> int:
    if name not in tasks:
        raise InvalidInput(f"{run}: there is no task {name!r}; it has {', '.join(tasks)}")
    return tasks.index(name)


def saved_folder(place: Path) -> Path:
    """A saved constraint, or that of a run."""
    return place / "constraint" if (place / "constraint").is_dir() else place


def create(out: Path, config: TransferConfig, constraint: Path, start: Start | None = None) -> None:
    """A new folder, after all that can be checked before the training."""
    refuse_existing(out)
    c, document = constraint_files.load_document(constraint)
    tightened(c, config.transfer.clearance)
    if not config.transfer.train:
        require_policy(config, start)
    (task,) = make_tasks(config.world)
    check_task(task, c.features)
    truth = make_truth(config.world, task.features).c
    if truth is not None:
        most = costliest(constraint.parent, document["provenance"], truth)
        config = replace(config, transfer=replace(config.transfer, true_limit=most))
    if isinstance(task, GymTask):
        trial(task)
    names = ("constraint.json", "weights.safetensors")
    files = {name: (constraint / name).read_bytes() for name in names}
    config = replace(config, transfer=replace(config.transfer, start=start_hash(start)))
    files |= start_files(start)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_folder(out, {FILE: to_toml(config).encode(), **files})


def require_policy(config: TransferConfig, start: Start | None) -> None:
    if start is None:
        raise InvalidInput("--steps 0 needs a policy that there is: leave --task FILE.toml out")
    if config.transfer.clearance and not config.ppo.augment:
        raise InvalidInput(
            "this policy does not see the constraint's value (augment = false), so it can't keep a "
            "clearance untrained: give --steps"
        )


def costliest(run: Path, provenance: Mapping[str, Any], truth: Constraint) -> float | None:
    """The most that a demonstration costs; None unless the constraint was learned in this run."""
    if not ((run / "config.toml").is_file() and (run / "demos").is_dir()):
        return None
    demos = demonstrations.load(run / "demos")
    if demonstrations.content_hash(demos) != provenance.get("demonstrations_sha256"):
        return None
    episodes = [t for task in demos.tasks for _, t in task.labelled]
    width = len(truth.features)
    return max(float(truth.cost(widened(t, width)).sum()) for t in episodes)


def drive(out: Path, on_event: OnEvent) -> dict[str, Any]:
    """Train and count, from wherever it was; returns the summary."""
    if (out / "summary.json").is_file():  # written last
        return read_json(out / "summary.json")
    config = read(out / FILE)
    c = constraint_files.load(out)
    (task,) = make_tasks(config.world)
    with only_driver(out):
        remove_partials(out)
        tell = teller(out, on_event)
        steps = config.ppo.env_steps if config.transfer.train else 0
        tell({"event": "start", "what": "transfer", "tasks": 1, "iterations": 0, "steps": steps})

        def on_record(problem: Problem, record: Record) -> None:
            tell({"event": "update", "i": 0, "k": 0, **asdict(record)})

        def on_solved(problem: Problem, name: str, known: bool) -> None:
            tell({"event": "solved", "i": 0, "k": 0, "known": known, "name": name})

        solver = ControlSolver(out, config.world, config.ppo, {}, {}, on_record, on_solved)
        kept = tightened(c, config.transfer.clearance)
        start = read_start(out, config.transfer.start)
        if config.transfer.train:
            problem = Problem(task, kept, config.transfer.delta, start, (config.seed,))
            (solution,) = solver([problem])
            policy, lam, steps = solution.policy, finite(solution.lam), solution.env_steps
        else:
            assert start is not None  # see `create`
            policy, lam, steps = start, None, 0
        raw = seen_of(kept, config.ppo.augment)
        seed, count = (config.seed, COUNTED), config.transfer.episodes
        tell({"event": "counting", "episodes": count})
        episodes = evaluate(task, policy, raw, count, seed)
        write_folder(out / "policy", policies.to_bytes(policy, task, _about(config, c)))
        summary = {**summarise(config, task, c, episodes), "lam": lam, "env_steps": steps}
        write_json(out / "summary.json", summary)
    return summary


def _about(config: TransferConfig, c: Constraint) -> dict[str, Any]:
    """What the policy was trained for."""
    return {
        "world": config.world.name,
        "constraint": c.describe(),
        "delta": config.transfer.delta,
        "clearance": config.transfer.clearance,
        "seed": config.seed,
        "ppo": asdict(config.ppo),
    }


def summarise(
    config: TransferConfig, task: ContinuousTask, c: Constraint, episodes: Sequence[Trajectory]
) -> dict[str, Any]:
    delta, truth = config.transfer.delta, make_truth(config.world, task.features).c
    rewards = np.array([t.rewards.sum() for t in episodes])
    return {
        "schema": 1,
        "command": config.command,
        "world": config.world.name,
        "task": task.name,
        "seed": config.seed,
        "versions": world_versions(config.world),
        "constraint": {"description": c.describe()},
        "delta": delta,
        "clearance": config.transfer.clearance,
        "episodes": len(episodes),
        "confidence": CONFIDENCE,
        "length": float(np.mean([len(t) for t in episodes])),
        "reward": float(rewards.mean()),
        "reward_se": float(rewards.std(ddof=1) / np.sqrt(len(rewards))),
        **violations("", c, episodes, delta),
        "truth": config.world.truth or None,
        **({} if truth is None else true_violations(config.transfer, truth, episodes)),
    }


def true_violations(
    settings: Settings, truth: Constraint, episodes: Sequence[Trajectory]
) -> dict[str, Any]:
    """Of the truth, with what it is counted against: delta belongs to the learned constraint."""
    shown = settings.true_limit
    limit, words = (0.0, NOT_SHOWN) if shown is None else (shown, SHOWN)
    counted = violations("true_", truth, episodes, limit)
    return {**counted, "true_limit": limit, "true_limit_is": words}


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
        "cost_se": float(cost.std(ddof=1) / np.sqrt(len(cost))),
        "raw": float(raw.mean()),
        "violating_episodes": count,
        "violation_chance": [low, high],
    }
    return {f"{prefix}{name}": value for name, value in figures.items()}
