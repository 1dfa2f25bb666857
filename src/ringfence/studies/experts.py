"""`ringfence reproduce experts`: constrained RL on the Ant, seed by seed, as one table.

Velocity and position experts with the paper's budgets and limits, beside an unconstrained PPO of
the same budget and a policy that stands still. Each training is a resumable run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.progress import training_line
from ringfence.runs import train
from ringfence.runs.files import write_file, write_json
from ringfence.runs.train import UNCONSTRAINED, TrainConfig, World
from ringfence.solvers.ppo import PPOConfig, Record
from ringfence.studies.tables import markdown

SIMULATOR: dict[World, str] = {"ant": "mujoco", "ant-bullet": "bullet"}
SPEED, POSITION = "speed <= 0.75", "0.5 x - y <= 0"
SAY_EVERY = 50  # updates


@dataclass(frozen=True)
class Expert:
    """A row of the table: what is trained, under which limit, with how many steps."""

    name: str
    constraint: str
    delta: float
    env_steps: int


EXPERTS = (
    Expert("velocity-20", SPEED, 20.0, 1_000_000),
    Expert("position-20", POSITION, 20.0, 2_000_000),
    Expert("position-100", POSITION, 100.0, 2_000_000),
    Expert("unconstrained", UNCONSTRAINED, 0.0, 1_000_000),
)


def reproduce(
    world: World, out: Path, seeds: int, command: str, say: Callable[[str], None]
) -> None:
    """Train every expert for every seed, as far as that was not done; write the table each time."""
    summaries: dict[str, dict[int, Any]] = {expert.name: {} for expert in EXPERTS}
    for expert in EXPERTS:
        for seed in range(seeds):
            say(f"{expert.name}, seed {seed}")
            summaries[expert.name][seed] = one(world, out, expert, seed, say)
            write_json(out / f"{expert.name}-seed-{seed}.json", summaries[expert.name][seed])
            write_file(out / "table.md", table(world, summaries, seeds, command).encode())


def one(
    world: World, out: Path, expert: Expert, seed: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """One expert of one seed, from where its run is."""
    out.mkdir(parents=True, exist_ok=True)
    run = Path("runs") / f"reproduce-{out.name}" / f"{expert.name}-seed-{seed}"
    config = TrainConfig(
        command=f'ringfence solve --world {world} --constraint "{expert.constraint}" '
        f"--delta {expert.delta:g} --steps {expert.env_steps} --seed {seed}",
        seed=seed,
        world=world,
        constraint=expert.constraint,
        delta=expert.delta,
        ppo=PPOConfig(env_steps=expert.env_steps),
    )
    if not run.exists():
        train.create(run, config)

    def report(record: Record) -> None:
        if record.update % SAY_EVERY == 0:
            say(training_line(record, 0.0, 0))

    return train.drive(run, report)


def table(world: World, summaries: dict[str, dict[int, Any]], seeds: int, command: str) -> str:
    """table.md; a training that was not run says so."""
    lines = []
    for expert in EXPERTS:
        done = summaries[expert.name]
        for seed in range(seeds):
            lines.append([expert.name, str(seed), *_cells(done.get(seed))])
        if len(done) == seeds:
            lines.append([f"**{expert.name}**", "mean", *_means(list(done.values()))])
    head = ["expert", "seed", "reward", "length", "speed", "cost", "raw", "lam"]
    head += ["reward (det.)", "speed (det.)", "cost (det.)"]
    return (
        "\n\n".join(
            [
                f"# Experts on the Ant ({SIMULATOR[world]})",
                f"Made by `{command}`. The name's number is the limit on an episode's cost. Reward "
                "to raw are the stochastic policy's, means of 32 episodes; det. is the "
                "deterministic policy's.",
                markdown(head, lines),
            ]
        )
        + "\n"
    )


COLUMNS = (
    ("stochastic", "reward", ".0f"),
    ("stochastic", "length", ".0f"),
    ("stochastic", "speed", ".3f"),
    ("stochastic", "true_cost", ".1f"),
    ("stochastic", "true_raw", ".0f"),
    ("", "lam", ".3f"),
    ("deterministic", "reward", ".0f"),
    ("deterministic", "speed", ".3f"),
    ("deterministic", "true_cost", ".1f"),
)


def _value(summary: dict[str, Any], part: str, name: str) -> float:
    return float(summary[part][name] if part else summary[name])


def _cells(summary: dict[str, Any] | None) -> list[str]:
    if summary is None:
        return ["not run"] * len(COLUMNS)
    return [format(_value(summary, part, name), form) for part, name, form in COLUMNS]


def _means(summaries: Sequence[dict[str, Any]]) -> list[str]:
    return [
        format(float(np.mean([_value(s, part, name) for s in summaries])), form)
        for part, name, form in COLUMNS
    ]
