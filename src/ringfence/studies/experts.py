"""`ringfence reproduce experts`: constrained RL on the Ant, seed by seed, as tables and a figure.

Velocity and position experts with the paper's budgets and limits, beside an unconstrained PPO of
the same budget and a policy that stands still. Each training is a resumable run; the tables hold
all that is finished, whenever it was run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.constraints.linear import parse_inequality
from ringfence.errors import InvalidInput
from ringfence.experts.trained import read_weights
from ringfence.objects import Array
from ringfence.report.training import Course, courses_figure
from ringfence.runs.files import write_file, write_json
from ringfence.runs.train import UNCONSTRAINED, World, figures_of, make_task
from ringfence.solvers.ppo import evaluate, no_augmentation
from ringfence.solvers.ppo_config import PPOConfig
from ringfence.studies.tables import markdown
from ringfence.studies.trainings import (
    FREE,
    FREE_2M,
    POSITION,
    POSITION_20,
    POSITION_100,
    POSITION_100_SETTLED,
    SIMULATOR,
    SPEED,
    VELOCITY_20,
    VELOCITY_20_SETTLED,
    Expert,
    Say,
    Training,
    expert_run,
    finished,
    mean_and_error,
    runs_folder,
    settings,
    smooth,
    trained_expert,
)
from ringfence.worlds.sim.rollouts import Arrays, ContinuousTask

#: The most telling first.
EXPERTS = (
    *(VELOCITY_20, FREE, POSITION_20, POSITION_100, FREE_2M, VELOCITY_20_SETTLED),
    POSITION_100_SETTLED,
)
JUDGED = (SPEED, POSITION)
#: Of a training, where the table shows its multiplier.
QUARTERS = (0.25, 0.5, 0.75, 1.0)
KINDS = ("stochastic", "deterministic")
FIGURES = (
    ("reward", ".0f"),
    ("length", ".0f"),
    ("speed", ".3f"),
    ("true_cost", ".1f"),
    ("true_raw", ".0f"),
)
NOT_RUN = "not run"


@dataclass(frozen=True)
class Study:
    """What `reproduce` trains: these experts, for seeds 0, 1, .., with these settings."""

    world: World
    seeds: int = 3
    experts: tuple[Expert, ...] = EXPERTS
    ppo: PPOConfig = field(default_factory=PPOConfig)

    def run(self, expert: Expert, seed: int) -> Path:
        return expert_run(self.world, expert, seed)


#: expert's name -> seed -> its training, as far as there is one.
Done = Mapping[str, Mapping[int, Training]]


def reproduce(study: Study, out: Path, command: str, say: Say, only: Sequence[str] = ()) -> None:
    """Train every expert (or `only` these) for every seed, as far as that was not done.

    Table and figure are written anew after each training.
    """
    chosen = choose(study.experts, only)
    out.mkdir(parents=True, exist_ok=True)
    still = judge(make_task(study.world), standing_still(study.world), study.ppo, say)
    write_json(out / "standing-still.json", still)
    for expert in chosen:
        for seed in range(study.seeds):
            say(f"{expert.name}, seed {seed}")
            training = trained_expert(study.world, expert, seed, study.ppo, say)
            if not expert.limited:
                judge_run(training, study, say)
            write_results(study, out, command, still)
    write_results(study, out, command, still)


def choose(experts: Sequence[Expert], only: Sequence[str]) -> list[Expert]:
    names = [expert.name for expert in experts]
    for name in only:
        if name not in names:
            raise InvalidInput(f"there is no expert {name!r}; experts are {', '.join(names)}")
    return [expert for expert in experts if not only or expert.name in only]


def collect(study: Study) -> Done:
    """All finished trainings of these settings, of any seed."""
    done: dict[str, dict[int, Training]] = {}
    for expert in study.experts:
        done[expert.name] = {}
        for path in runs_folder(study.world).glob(f"{expert.name}-seed-*"):
            seed = int(path.name.rpartition("-")[2])
            config = settings(study.world, expert, seed, expert.ppo(study.world, study.ppo))
            training = finished(path, config)
            if training is not None:
                done[expert.name][seed] = training
    return done


def write_results(study: Study, out: Path, command: str, still: dict[str, Any]) -> None:
    done = collect(study)
    for name, trainings in done.items():
        for seed, training in trainings.items():
            write_json(out / f"{name}-seed-{seed}.json", training.summary)
    write_file(out / "table.md", page(study, done, still, command).encode())
    limits = {e.name: e.delta for e in study.experts if e.limited}
    courses = {
        name: {s: Course(t.curves["env_steps"], smoothed(t)) for s, t in done[name].items()}
        for name in limits
    }
    if any(courses.values()):
        courses_figure(courses, limits, out / "multiplier.png")


def smoothed(training: Training) -> dict[str, Array]:
    """The cost is smoothed, the multiplier is as it was."""
    return {"cost": smooth(training.curves["cost"]), "lam": training.curves["lam"]}


# Policies judged under constraints that they were not trained under ----------------------------


def standing_still(world: World) -> Arrays:
    """A policy whose every action is 0."""
    task = make_task(world)
    inputs, actions = task.observation_dim + 1, len(task.action_low)
    return {
        "actor/w0": np.zeros((inputs, actions), np.float32),
        "actor/b0": np.zeros(actions, np.float32),
        "actor/log_std": np.zeros(actions, np.float32),
        "norm/mean": np.zeros(inputs),
        "norm/std": np.ones(inputs),
    }


def judge(
    task: ContinuousTask, policy: Arrays, ppo: PPOConfig, say: Say, kinds: Sequence[str] = KINDS[1:]
) -> dict[str, Any]:
    """kind -> constraint -> figures of as many episodes as an expert's evaluation has."""
    say(f"{ppo.evaluation_episodes} episodes to judge under {' and '.join(JUDGED)}")
    judged: dict[str, Any] = {}
    for k, kind in enumerate(KINDS):
        if kind in kinds:
            episodes = evaluate(
                task,
                policy,
                no_augmentation,  # not under a constraint: nothing to see of it
                ppo.evaluation_episodes,
                (0, k),
                deterministic=kind == "deterministic",
            )
            judged[kind] = {
                text: figures_of(episodes, parse_inequality(text, task.features)) for text in JUDGED
            }
    return judged


def judge_run(training: Training, study: Study, say: Say) -> None:
    """An unconstrained policy under the constraints, once, beside its summary."""
    path = training.run / "judged.json"
    if not path.is_file():
        policy = read_weights(training.run)
        write_json(path, judge(make_task(study.world), policy, study.ppo, say, KINDS))


# Tables ----------------------------------------------------------------------------------------


def page(study: Study, done: Done, still: dict[str, Any], command: str) -> str:
    """table.md; a training that was not run says so."""
    n = study.ppo.evaluation_episodes
    parts = [
        f"# Experts on the Ant ({SIMULATOR[study.world]})",
        f"Made by `{command}`. The number in a name is the limit on an episode's cost. Figures "
        f"are means of {n} episodes; the last line of an expert is the mean over its seeds with "
        "the standard error. Where an expert has settings of its own (they are in the command in "
        "its json), these were chosen while looking at seeds 0 to 2; those of MuJoCo's position-20 "
        "at seeds 3 and 4, after its rollouts and noise had been tried on seed 2.",
        "\n".join(f"- {check(study, expert, done[expert.name])}" for expert in study.experts),
        "## The stochastic policy, which the multiplier controls",
        expert_table(study, done, "stochastic"),
        "## The deterministic policy",
        expert_table(study, done, "deterministic"),
        "## Under constraints that they do not know",
        f"A policy whose actions are 0, and the unconstrained ones; {n} episodes each.",
        reference_table(study, done, still),
        "## The multiplier's course",
        "Mean of the last ten updates at a quarter, half, three quarters and the end of the "
        "training; its highest value; the share of updates in which it was above 0. "
        "`multiplier.png` has the whole course.",
        course_table(study, done),
    ]
    return "\n\n".join(parts) + "\n"


def check(study: Study, expert: Expert, trainings: Mapping[int, Training]) -> str:
    """Does the stochastic policy keep its limit in every seed?"""
    if not expert.limited:
        return f"{expert.name}: no limit"
    costs = [t.summary["stochastic"]["true_cost"] for t in trainings.values()]
    missing = sum(seed not in trainings for seed in range(study.seeds))
    if not costs:
        answer = NOT_RUN
    else:
        answer = "yes" if max(costs) <= expert.delta else f"no ({max(costs):.1f})"
        answer += f" ({missing} of {study.seeds} seeds not run)" if missing else ""
    return f"{expert.name}: stochastic cost within its limit in every seed: {answer}"


def expert_table(study: Study, done: Done, kind: str) -> str:
    lines = []
    for expert in study.experts:
        trainings = done[expert.name]
        for seed in sorted({*range(study.seeds), *trainings}):
            cells = _cells(trainings[seed], kind) if seed in trainings else None
            lines.append([expert.name, str(seed), *(cells or [NOT_RUN] * (len(FIGURES) + 3))])
        if trainings:
            lines.append([f"**{expert.name}**", "mean", *_means(list(trainings.values()), kind)])
    head = ["expert", "seed", *[name.replace("true_", "") for name, _ in FIGURES]]
    return markdown([*head, "multiplier", "steps", "minutes"], lines)


def _cells(t: Training, kind: str) -> list[str]:
    figures = [_figure([t], kind, name, form) for name, form in FIGURES]
    steps = f"{t.summary['env_steps']:,}"
    return [*figures, f"{t.summary['lam']:.3f}", steps, f"{t.seconds / 60:.1f}"]


def _means(trainings: Sequence[Training], kind: str) -> list[str]:
    figures = [_figure(trainings, kind, name, form) for name, form in FIGURES]
    lam = mean_and_error([t.summary["lam"] for t in trainings], ".3f")
    return [*figures, lam, "", mean_and_error([t.seconds / 60 for t in trainings], ".1f")]


def _figure(trainings: Sequence[Training], kind: str, name: str, form: str) -> str:
    """Nothing for the cost of what has no constraint: that is 0 by definition."""
    free = trainings[0].summary["constraint"]["description"] == UNCONSTRAINED
    if free and name.startswith("true_"):
        return ""
    return mean_and_error([t.summary[kind][name] for t in trainings], form)


def reference_table(study: Study, done: Done, still: dict[str, Any]) -> str:
    lines = [["standing still", "", *line] for line in _judged_lines(still)]
    for expert in study.experts:
        for seed, training in sorted(done[expert.name].items()):
            path = training.run / "judged.json"
            if path.is_file():
                judged = _judged_lines(json.loads(path.read_text()))
                lines += [[expert.name, str(seed), *line] for line in judged]
    names = [name.replace("true_", "") for name, _ in FIGURES]
    return markdown(["policy", "seed", "actions", "constraint", *names], lines)


def _judged_lines(judged: dict[str, Any]) -> list[list[str]]:
    return [
        [kind, f"`{text}`", *[format(figures[name], form) for name, form in FIGURES]]
        for kind, of in judged.items()
        for text, figures in of.items()
    ]


def course_table(study: Study, done: Done) -> str:
    lines = []
    for expert in study.experts:
        for seed, training in sorted(done[expert.name].items()) if expert.limited else ():
            lam = training.curves["lam"]
            level = smooth(lam)
            at = [format(level[max(0, round(q * len(lam)) - 1)], ".3f") for q in QUARTERS]
            top, alive = f"{lam.max():.2f}", f"{(lam > 0).mean():.0%}"
            lines.append([expert.name, str(seed), *at, top, alive])
    head = ["expert", "seed", *[f"{q:.0%}" for q in QUARTERS], "highest", "above 0"]
    return markdown(head, lines) if lines else NOT_RUN
