"""`ringfence reproduce resets`: does training go faster from states of demonstrations?

The paper's own wish. A finished expert demonstrates; new trainings start a share of their
episodes at states that it was in, beside trainings of the same budget that never do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ringfence.constraints.linear import parse_inequality
from ringfence.errors import InvalidInput
from ringfence.experts.trained import read_weights
from ringfence.objects import Array
from ringfence.report.training import Course, Panel, comparison_figure
from ringfence.runs.files import write_file, write_json
from ringfence.runs.train import starts_hash
from ringfence.solvers.ppo import evaluate
from ringfence.studies.experts import Study
from ringfence.studies.tables import markdown
from ringfence.studies.trainings import (
    SIMULATOR,
    Expert,
    Say,
    Training,
    mean_and_error,
    runs_folder,
    settings,
    smooth,
    trained,
)
from ringfence.worlds.ant import AntTask

#: The seed path of the demonstrations' episodes, beside the expert's own seed.
DEMONSTRATE = 30
COLUMNS = (("reward", ".0f"), ("true_cost", ".1f"), ("speed", ".3f"), ("length", ".0f"))


@dataclass(frozen=True)
class Resets:
    """`share` of episodes start at states of `episodes` demonstrations; `env_steps` of training.

    Short, because it is the beginning of a training that demonstrations could spare.
    """

    share: float = 0.3
    episodes: int = 20
    env_steps: int = 300_000


def reproduce(
    study: Study, out: Path, command: str, say: Say, resets: Resets | None = None
) -> None:
    """Train the first expert's problem with and without; write figure, table and numbers."""
    resets = resets or Resets()
    if study.world != "ant":
        raise InvalidInput(
            "only MuJoCo's Ant can start at demonstrated states; leave --world ant-bullet out"
        )
    expert = study.experts[0]
    say(f"the demonstrator: {expert.name}, seed 0")
    config = settings(study.world, expert, 0, expert.ppo(study.world, study.ppo))
    states = demonstrated_states(trained(study.run(expert, 0), config, say), resets)
    short = replace(expert, env_steps=resets.env_steps)
    done: dict[str, list[Training]] = {"without": [], f"with ({resets.share:.0%})": []}
    for share, trainings in zip((0.0, resets.share), done.values(), strict=True):
        for seed in range(study.seeds):
            say(f"{resets.share if share else 'no'} share from demonstrations, seed {seed}")
            trainings.append(one(study, short, seed, share, states, say))
    out.mkdir(parents=True, exist_ok=True)
    rows = {
        name: [{c: t.summary["stochastic"][c] for c, _ in COLUMNS} for t in trainings]
        for name, trainings in done.items()
    }
    write_json(out / "results.json", {"command": command, "rows": rows})
    write_file(out / "table.md", page(study, short, resets, rows, command).encode())
    panels = [
        Panel("reward_rate", "reward of an episode"),
        Panel("cost", "cost of an episode", limit=expert.delta),
    ]
    courses = {name: [course(t) for t in trainings] for name, trainings in done.items()}
    comparison_figure(courses, panels, out / "resets.png")


def demonstrated_states(expert: Training, resets: Resets) -> Array:
    """All states of fresh stochastic episodes of a finished expert, [n, 29]."""
    task = AntTask()
    policy = read_weights(expert.run)
    raw = parse_inequality(expert.summary["constraint"]["description"], task.features).raw
    seed = (int(expert.summary["seed"]), DEMONSTRATE)
    episodes = evaluate(task, policy, raw, resets.episodes, seed)
    return np.concatenate([task.states_of(episode) for episode in episodes])


def one(study: Study, expert: Expert, seed: int, share: float, states: Array, say: Say) -> Training:
    """One short training; `share` 0 is the plain one."""
    name = f"{expert.name}-{expert.env_steps}" + (f"-resets-{share:g}" if share else "")
    run = runs_folder(study.world) / f"{name}-seed-{seed}"
    ppo = replace(expert.ppo(study.world, study.ppo), start_share=share)
    config = settings(study.world, expert, seed, ppo)
    if not share:
        return trained(run, config, say)
    config = replace(
        config,
        command=f"{config.command} --start-share {share:g} --demos DEMONSTRATIONS",
        starts=starts_hash(states),
    )
    return trained(run, config, say, states)


def course(training: Training) -> Course:
    columns = {name: smooth(training.curves[name]) for name in ("reward_rate", "cost")}
    return Course(training.curves["env_steps"], columns)


def page(
    study: Study,
    expert: Expert,
    resets: Resets,
    rows: Mapping[str, list[dict[str, float]]],
    command: str,
) -> str:
    lines = []
    for name, of in rows.items():
        for seed, row in enumerate(of):
            lines.append([name, str(seed), *[format(row[c], form) for c, form in COLUMNS]])
        means = [mean_and_error([row[c] for row in of], form) for c, form in COLUMNS]
        lines.append([f"**{name}**", "mean", *means])
    return (
        "\n\n".join(
            [
                f"# Episodes that start at an expert's states ({SIMULATOR[study.world]})",
                f"Made by `{command}`: `{expert.constraint}` with limit {expert.delta:g}, "
                f"{expert.env_steps:,} steps of training. With: {resets.share:.0%} of the "
                f"training's episodes start at a state out of {resets.episodes} episodes of the "
                "finished expert of seed 0. Below is the last stochastic policy from the task's "
                f"own starts, mean of {study.ppo.evaluation_episodes} episodes; the figure shows "
                "the training's own rollouts, whose starts differ.",
                markdown(["starts", "seed", *[n.replace("true_", "") for n, _ in COLUMNS]], lines),
                "![reward and cost over steps](resets.png)",
            ]
        )
        + "\n"
    )
