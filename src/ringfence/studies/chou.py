"""`ringfence reproduce baselines`: Chou et al.'s method on the velocity and position constraints.

It uses the same demonstrations as ICL with the same seed. Both of its trainings begin at the clone,
so that fewer steps will do than the paper's expert has. The table shows ICL's figures beside it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.constraints.template import parse_template
from ringfence.objects import Problem, Solution, Trajectory, behaviour_of
from ringfence.players.rivals.chou import Outcome, chou
from ringfence.runs.control_config import ControlWorld
from ringfence.runs.control_solver import ControlSolver
from ringfence.runs.control_summary import Reader
from ringfence.runs.control_world import make_tasks, make_truth, world_versions
from ringfence.runs.files import remove_partials, write_file, write_json
from ringfence.runs.folder import only_driver
from ringfence.runs.train import World
from ringfence.solvers.cloning import CloningConfig, clone
from ringfence.solvers.ppo import evaluate, no_augmentation
from ringfence.solvers.ppo_config import PPOConfig
from ringfence.solvers.ppo_state import Record
from ringfence.studies import icl, icl_tables
from ringfence.studies.tables import markdown
from ringfence.studies.trainings import SIMULATOR, mean_and_error

EXPERIMENTS = (icl.VELOCITY, icl.POSITION_)
#: Of PPO's loss, on the sum of log standard deviations.
ENTROPY = 0.01
#: Where not PPO's own: as ICL's on PyBullet, with less error there (0.032, at PPO's own 0.044). For
#: position it would be too low: two of three explorers never earned more than the experts.
RATES = {("ant-bullet", "velocity"): 1e-4}
EPISODES = 64  # of the explorer, from which the better ones are taken
STEPS = 300_000
EPISODE_STREAM = 70
SAY_EVERY = 50  # updates

Say = Callable[[str], None]


def reproduce(
    world: World,
    seeds: int,
    out: Path,
    command: str,
    say: Say,
    ppo: PPOConfig | None = None,
) -> None:
    """Every seed of both experiments, as far as that was not done."""
    out.mkdir(parents=True, exist_ok=True)
    for experiment in EXPERIMENTS:
        rate = RATES.get((world, experiment.name), PPOConfig().learning_rate)
        settings = ppo or PPOConfig(env_steps=STEPS, margin=0.0, learning_rate=rate)
        study = icl.Study(world, experiment, seeds)
        for seed in range(seeds):
            path = out / f"{experiment.name}-seed-{seed}.json"
            if not path.is_file():
                say(f"Chou et al., {experiment.name}, seed {seed}")
                write_json(path, one(study, seed, command, settings, say))
            write_file(out / "table.md", table(world, seeds, out, command).encode())


def one(study: icl.Study, seed: int, command: str, ppo: PPOConfig, say: Say) -> dict[str, Any]:
    """One seed, from where its run is."""
    began = time.monotonic()
    demos = icl.demonstrations(study, seed, say)
    world = icl.world_of(study)
    (task,) = make_tasks(world)
    template = parse_template(study.experiment.constraint, task.features)
    run = Path("runs") / f"reproduce-chou-{study.name}" / f"seed-{seed}"
    run.mkdir(parents=True, exist_ok=True)
    train = demos.tasks[0].train
    with only_driver(run):
        remove_partials(run)
        start = clone(train, task, (seed, 0, 0), CloningConfig(hidden=ppo.hidden, log_std=None))
        explorer = solver(run, world, replace(ppo, entropy_weight=ENTROPY), say)

        def episodes(solution: Solution) -> list[Trajectory]:
            seeds = (seed, EPISODE_STREAM)
            return evaluate(task, solution.policy, no_augmentation, EPISODES, seeds)

        outcome = chou(
            task,
            template,
            train,
            start,
            explorer.one,
            episodes,
            solver(run, world, ppo, say).one,
            seed,
        )
    reader = Reader(template, [behaviour_of(train)], make_truth(world, task.features))
    return {
        "schema": 1,
        "command": command,
        "method": "chou",
        "world": world.name,
        "seed": seed,
        "versions": world_versions(world),
        "truth": world.truth,
        "class": study.experiment.constraint,
        **figures(outcome, reader),
        "seconds": time.monotonic() - began,
    }


def figures(outcome: Outcome, reader: Reader) -> dict[str, Any]:
    row: dict[str, Any] = {
        "episodes": outcome.tried,
        "better": outcome.better,
        "explorer_reward": outcome.explored.behaviour.reward,
    }
    if outcome.c is None or outcome.solution is None:
        return {**row, "outcome": "no episode earned more than the experts", "result": None,
                "env_steps": outcome.explored.env_steps}  # fmt: skip
    result = {
        "constraint": reader.constraint(outcome.c),
        "constraint_error": reader.error(outcome.c),
        **reader.figures("learner", outcome.c, [outcome.solution.behaviour]),
        **reader.figures("expert", outcome.c, reader.experts),
    }
    steps = outcome.explored.env_steps + outcome.solution.env_steps
    return {**row, "outcome": "constraint", "result": result, "env_steps": steps}


def solver(run: Path, world: ControlWorld, ppo: PPOConfig, say: Say) -> ControlSolver:
    def on_record(problem: Problem, record: Record) -> None:
        if record.update % SAY_EVERY == 0:
            say(
                f"  update {record.update}/{record.updates}  reward {record.reward_rate:.0f}  "
                f"cost {record.cost:.1f}  lam {record.lam:.3f}"
            )

    return ControlSolver(run, world, ppo, {}, {}, on_record, lambda *_: None)


# The table -------------------------------------------------------------------------------------


def table(world: World, seeds: int, out: Path, command: str) -> str:
    parts = [
        f"# Chou et al. and ICL on the Ant ({SIMULATOR[world]})",
        f"Made by `{command}`; ICL's rows are those of the folders of `results/` that `ringfence "
        "reproduce velocity` and `position` wrote. Mean and standard error over seeds. Positive "
        "reward gaps: the experts earn more; positive cost gaps: the experts violate more.",
    ]
    for experiment in EXPERIMENTS:
        parts += [f"## {experiment.name.capitalize()}", rows(world, experiment, seeds, out)]
    return "\n\n".join(parts) + "\n"


def rows(world: World, experiment: icl.Experiment, seeds: int, out: Path) -> str:
    """Chou et al. and every way of ICL, first, last and selected iterate."""
    lines = []
    for name, study in games(icl.Study(world, experiment, seeds)).items():
        found = list(icl_tables.read(out.parent / study.name, seeds).values())
        played = [s for s in found if s["iterations"]]
        for which, row in icl_tables.ITERATES.items():
            cells = _line([row(s) for s in played], found, seeds)
            lines.append([f"ICL, {name}", which, *cells])
    paths = [out / f"{experiment.name}-seed-{seed}.json" for seed in range(seeds)]
    ours = [json.loads(p.read_text()) for p in paths if p.is_file()]
    results = [s["result"] for s in ours if s["result"] is not None]
    lines.append(["Chou et al.", "only one", *_line(results, ours, seeds)])
    columns = [name for name, _ in icl_tables.COLUMNS[:4]]
    head = ["method", "iterate", *columns, "environment steps", "seeds with a constraint"]
    return markdown(head, lines)


def games(plain: icl.Study) -> dict[str, icl.Study]:
    """The ways of ICL that are compared."""
    return {
        "regression": plain,
        "weighted": replace(plain, player="weighted"),
        "payoff": replace(plain, player="payoff"),
        "regression, saturated demonstrations": replace(plain, saturated=True),
        "regression, saturated demonstrations, each solve until it earns their reward": replace(
            plain, saturated=True, stop_share=1.0
        ),
        "payoff, saturated demonstrations": replace(plain, player="payoff", saturated=True),
        "regression, network on the full state": replace(plain, constraint="mlp", full_state=True),
    }


def _line(rows: list[dict[str, Any]], runs: list[dict[str, Any]], seeds: int) -> list[str]:
    """Cells of one iterate: rows are its figures in the runs that have a constraint."""
    if not runs:
        return [icl_tables.NOT_RUN] * 6
    values = [icl_tables.figures(row)[:4] for row in rows]
    cells = []
    for n, (_, form) in enumerate(icl_tables.COLUMNS[:4]):
        known = [float(value) for v in values if (value := v[n]) is not None]
        cells.append(mean_and_error(known, form) if known else "-")
    steps = float(np.mean([s["env_steps"] for s in runs]))
    return [*cells, f"{steps:,.0f}", f"{len(rows)} of {len(runs)} run ({seeds} wanted)"]
