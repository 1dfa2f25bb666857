"""What an update of `solvers/ppo.py` changes, and its way to disk and back.

A checkpoint holds all that the next update depends on, so that a solve that was stopped ends in the
bytes of one that was not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Problem
from ringfence.solvers import checkpoints
from ringfence.solvers.networks import Params, Statistics
from ringfence.solvers.ppo_config import PPOConfig
from ringfence.worlds.sim.rollouts import Collector

#: Bytes of a checkpoint mean the same only within one schema.
SCHEMA = 4


@dataclass(frozen=True)
class Record:
    """One update. Reward and length: means over the episodes that ended in it, None if none did.

    `cost` is an episode's, estimated as horizon * mean step cost; `reward_rate` likewise.
    """

    update: int
    updates: int
    env_steps: int
    reward: float | None
    length: float | None
    reward_rate: float
    cost: float
    delta: float
    lam: float
    policy_loss: float
    value_loss: float
    std: float


@dataclass(frozen=True)
class Multiplier:
    """lam and the controller's memory: the error's integral and the smoothed cost."""

    lam: float = 0.0
    integral: float = 0.0
    cost: float | None = None


@dataclass(frozen=True, eq=False)
class Kept:
    """A policy that may be handed out, its update, and what an episode earned (0 until judged)."""

    policy: dict[str, NDArray[Any]]
    update: int
    reward: float = 0.0


@dataclass(frozen=True, eq=False)
class Learner:
    """Everything that an update changes."""

    params: Params
    opt_state: Params
    scale: NDArray[np.float32]  # [2, 2]: mean and std of the critic's targets (reward, cost)
    statistics: Statistics
    multiplier: Multiplier
    recent: tuple[tuple[float, float, float], ...] = ()  # (reward, cost, falls) per horizon
    kept: Kept | None = None  # the best so far
    candidate: Kept | None = None  # to be judged by rollouts that are to come
    updates: int = 0

    def policy(self) -> dict[str, NDArray[Any]]:
        """The arrays that act, and those that a later solve may start from."""
        flat: dict[str, NDArray[Any]] = {
            f"{name}/{key}": np.asarray(value)
            for name, arrays in self.params.items()
            for key, value in arrays.items()
        }
        return {
            **flat,
            "critic/scale": np.asarray(self.scale),
            "norm/mean": self.statistics.mean,
            "norm/std": self.statistics.std,
            "norm/count": np.array(self.statistics.count),
            "multiplier/integral": np.array(self.multiplier.integral),
        }


# Checkpoints -----------------------------------------------------------------------------------


def fingerprint(problem: Problem, config: PPOConfig, starts: Array | None) -> str:
    """What a checkpoint belongs to: the problem and all that determines its result."""
    c = problem.constraint
    probe = np.random.default_rng(0).standard_normal((64, len(c.features)))
    digest = sha256(c.raw(probe).tobytes() + c.cost(probe).tobytes())
    if starts is not None:
        digest.update(starts.tobytes())
    for key, value in sorted((problem.start or {}).items()):
        digest.update(key.encode() + value.tobytes())
    described = {
        "schema": SCHEMA,
        "task": repr(problem.task),
        "constraint": c.describe(),
        "delta": problem.delta,
        "seed": problem.seed,
        "config": {k: v for k, v in asdict(config).items() if k != "checkpoint_every"},
        "arrays": digest.hexdigest(),
    }
    return json.dumps(described, sort_keys=True)


def save_checkpoint(
    folder: Path,
    learner: Learner,
    records: list[Record],
    collector: Collector,
    mark: str,
) -> None:
    """All that the next update depends on, in place of the checkpoint before."""
    leaves = jax.tree.leaves((learner.params, learner.opt_state))
    arrays: dict[str, NDArray[Any]] = {f"leaf/{i}": np.asarray(x) for i, x in enumerate(leaves)}
    arrays |= {"mean": learner.statistics.mean, "var": learner.statistics.var}
    arrays["scale"] = learner.scale
    arrays |= {f"collector/{k}": v for k, v in collector.save().items()}
    handed: dict[str, Kept | None] = {"kept": learner.kept, "candidate": learner.candidate}
    for name, one in handed.items():
        arrays |= {f"{name}/{k}": v for k, v in one.policy.items()} if one else {}
    values = {
        "mark": mark,
        "count": learner.statistics.count,
        "multiplier": asdict(learner.multiplier),
        "recent": learner.recent,
        **{name: [one.update, one.reward] if one else None for name, one in handed.items()},
        "updates": learner.updates,
        "records": [asdict(r) for r in records],
    }
    checkpoints.write(folder, arrays, values)


def load_checkpoint(
    folder: Path, fresh: Learner, collector: Collector, mark: str
) -> tuple[Learner, list[Record]]:
    """The inverse; restores the collector. Refuses a checkpoint of another problem."""
    found = checkpoints.read(folder)
    if found is None:
        return fresh, []
    arrays, values = found
    if values["mark"] != mark:
        raise InvalidInput(
            f"{folder} is the checkpoint of another problem or configuration: use another folder"
        )

    old, structure = jax.tree.flatten((fresh.params, fresh.opt_state))
    leaves = [arrays[f"leaf/{i}"] for i in range(len(old))]
    params, opt_state = jax.tree.unflatten(structure, leaves)
    learner = Learner(
        params,
        opt_state,
        arrays["scale"],
        Statistics(arrays["mean"], arrays["var"], values["count"]),
        Multiplier(**values["multiplier"]),
        tuple((a, b, c) for a, b, c in values["recent"]),
        _kept("kept", arrays, values),
        _kept("candidate", arrays, values),
        values["updates"],
    )
    collector.restore(_under("collector/", arrays))
    return learner, [Record(**r) for r in values["records"]]


def _kept(name: str, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> Kept | None:
    return Kept(_under(f"{name}/", arrays), *values[name]) if values[name] else None


def _under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)}
