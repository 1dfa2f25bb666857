"""`ringfence solve` on continuous tasks: a training, begun and driven to its end."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np

from ringfence.cli.progress import training_progress
from ringfence.commands import print_numbers
from ringfence.demos import dataset as demos
from ringfence.deploy.policies import load_policy
from ringfence.errors import InvalidInput
from ringfence.objects import Array
from ringfence.runs import train as training
from ringfence.runs.config import build, read_entries
from ringfence.runs.frames import draw_frames
from ringfence.runs.scalars import Scalars
from ringfence.solvers.ppo_config import PPOConfig
from ringfence.solvers.ppo_state import Record
from ringfence.worlds import named
from ringfence.worlds.ant import AntTask


def train(options: Namespace) -> None:
    """`solve` on a continuous task: PPO with a controlled multiplier."""
    named.from_working_directory()
    if options.constraint == "truth":
        raise InvalidInput(
            f"{options.world} has no truth of its own; state a constraint, such as "
            '--constraint "speed <= 0.75" or --constraint "0.5 x - y <= 0", or none'
        )
    task = training.make_task(options.world, options.feature, options.horizon)
    constraint, delta = training.read_constraint(options.constraint, task.features)
    starts = demonstrated_starts(options)
    config = training.TrainConfig(
        command=options.command_line,
        seed=options.seed,
        world=options.world,
        constraint=constraint,
        delta=delta if options.delta is None else options.delta,
        ppo=build(
            "--ppo",
            {
                "env_steps": options.steps,
                "multiplier": options.multiplier,
                "start_share": options.start_share,
                **read_entries("--ppo", options.ppo),
            },
            PPOConfig,
        ),
        features=tuple(options.feature),
        horizon=options.horizon or 0,
        starts="" if starts is None else training.starts_hash(starts),
    )
    start = None if options.policy is None else load_policy(options.policy).arrays
    training.create(options.out, config, starts, start)
    finish_training(options.out)


def demonstrated_starts(options: Namespace) -> Array | None:
    """The states in --demos where a --start-share of the episodes begins."""
    if not 0 <= options.start_share <= 1:
        raise InvalidInput(f"--start-share must be between 0 and 1, got {options.start_share}")
    if (options.start_share > 0) != (options.demos is not None):
        raise InvalidInput("--start-share and --demos need each other")
    if options.demos is None:
        return None
    if options.world != "ant":
        raise InvalidInput("only MuJoCo's Ant can start at demonstrated states")
    given = [t for task in demos.load(options.demos).tasks for t in task.train]
    return np.concatenate([AntTask().states_of(t) for t in given])


def finish_training(run: Path) -> None:
    named.from_working_directory()
    with training_progress() as progress, Scalars(run) as scalars:

        def report(record: Record) -> None:
            scalars(record)
            progress(record)

        summary = training.drive(run, report)
    print(f"{summary['world']} under {summary['constraint']['description']}")
    print_numbers(summary, ("delta", "lam", "env_steps"))
    for kind in ("stochastic", "deterministic"):
        print(f"{kind} policy, mean of {summary[kind]['episodes']} episodes:")
        names = ("reward", "length", "speed", "true_cost", "true_raw")
        print_numbers(summary[kind], tuple(n for n in names if n in summary[kind]))
    print(draw_frames(run))
    print(f"saved to {run}")
