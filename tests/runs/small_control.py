"""A tiny game on the Ant: demonstrations of a random policy, a few hundred steps per solve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from random_policies import policy_for
from ringfence.objects import Demonstrations, TaskDemos
from ringfence.runs.control_config import (
    CloneConfig,
    ControlConfig,
    ControlDemos,
    ControlGame,
    ControlWorld,
)
from ringfence.solvers.ppo import PPOConfig, evaluate
from ringfence.worlds.ant import AntTask

HORIZON = 30
PPO = PPOConfig(
    env_steps=2 * 16 * 16,
    copies=16,
    steps=16,
    batch=128,
    passes=1,
    hidden=(16,),
    evaluation_episodes=2,
    checkpoint_every=1,
)


def demos() -> Demonstrations:
    task = AntTask(horizon=HORIZON)
    runs = evaluate(task, policy_for(task), lambda phi: np.zeros(len(phi)), 6, (7,))
    return Demonstrations((TaskDemos("ant", tuple(runs[:4]), tuple(runs[4:])),), task.features, {})


def small(constraint: str = "speed <= ?", **game: object) -> ControlConfig:
    settings = {"iterations": 2, "resamples": 20, "probe": False, **game}
    return ControlConfig(
        command="ringfence learn",
        seed=0,
        world=ControlWorld("ant", steps=HORIZON, truth="speed <= 0.5"),
        demos=ControlDemos(),
        game=ControlGame(constraint, **settings),  # type: ignore[arg-type]
        clone=CloneConfig(steps=20),
        ppo=PPO,
    )


def with_world(config: ControlConfig, **changes: object) -> ControlConfig:
    return replace(config, world=replace(config.world, **changes))  # type: ignore[arg-type]


def quiet(event: dict) -> None:
    """Events of a run that nobody watches."""


def result(run: Path) -> dict[str, bytes]:
    """The bytes that must not depend on how a run came to its end."""
    names = ["summary.json", "config.toml"]
    parts = ("constraint/*", "constraints/*/*", "policy/*", "start/*", "ledger/*/*", "episodes/*/*")
    for pattern in parts:
        names += sorted(str(p.relative_to(run)) for p in run.glob(pattern))
    return {name: (run / name).read_bytes() for name in names}
