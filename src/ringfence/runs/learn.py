"""The driver of a run: plays the game, stores what happens, and adds what only it may know.

Learning and selection get tasks, demonstrations and players. The world's truth is touched in one
way, through `runs/summary.py`, after the learning step, to add columns to the report.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.analysis import evidence as evidences
from ringfence.analysis import theory
from ringfence.constraints import files as constraint_files
from ringfence.constraints.classes import ConstraintClass, LinearClass, TableClass, with_constant
from ringfence.demos import dataset as demonstrations
from ringfence.demos.dataset import Demonstrations
from ringfence.errors import InvalidInput
from ringfence.experts import optimal as maker
from ringfence.game import Rules, play
from ringfence.objects import Behaviour, Constraint, J, Problem, Solution, Task, behaviour_of
from ringfence.players.convex import FTRL, Regression, ftrl
from ringfence.runs import config as configs
from ringfence.runs import evidence as evidence_json
from ringfence.runs import folder
from ringfence.runs.backends import SolveAll, constraint_folder
from ringfence.runs.config import GameConfig, RunConfig
from ringfence.runs.files import remove_partials, write_folder, write_json
from ringfence.runs.folder import (
    Event,
    OnEvent,
    only_driver,
    read_demos,
    refuse_existing,
    teller,
)
from ringfence.runs.summary import iteration_row, make_summary, versions
from ringfence.runs.worlds import make_solver, make_world
from ringfence.selection import select
from ringfence.worlds.finite import FiniteTask
from ringfence.worlds.grid import GridWorld


@dataclass(frozen=True, eq=False)
class Experts:
    """What the demonstrations of the run's tasks amount to, in task order."""

    tasks: tuple[FiniteTask, ...]
    train: tuple[Behaviour, ...]
    heldout: tuple[Behaviour, ...]
    groups: tuple[evidences.Group, ...]


def create(run: Path, config: RunConfig, demos: Demonstrations) -> None:
    """A new run directory with its configuration and demonstrations: whole, or not at all."""
    refuse_existing(run)
    check(config, demos)
    folder.create(run, configs.to_toml(config), demos)


def check(config: RunConfig, demos: Demonstrations) -> None:
    """Refuse what can't be played before anything is written."""
    make_rules(config.game)
    make_solver(config.solver)
    chosen_demos(config, make_world(config.world).tasks, demos)


def drive(run: Path, workers: int, on_event: OnEvent) -> dict[str, Any]:
    """Play a created run to its end, from wherever it was; returns the summary."""
    config = configs.read(run / "config.toml")
    with only_driver(run):
        remove_partials(run)
        return _drive(run, config, workers, on_event)


def _drive(run: Path, config: RunConfig, workers: int, on_event: OnEvent) -> dict[str, Any]:
    world = make_world(config.world)
    experts = read_experts(run, config, world)
    F_c, player = make_player(config.game, world, experts.train)
    rules = make_rules(config.game)
    began = time.monotonic()

    tell = teller(run, on_event)
    ledger_names: dict[tuple[int, ...], str] = {}

    def on_solved(problem: Problem, name: str, known: bool) -> None:
        ledger_names[problem.seed] = name
        i, k = problem.seed[1:]
        tell({"event": "solved", "i": i, "k": k, "task": problem.task.name, "known": known})

    backend = SolveAll(run, workers, on_solved)

    def solve_all(problems: Sequence[Problem]) -> list[Solution]:
        i, c = problems[0].seed[1], problems[0].constraint
        save_constraint(run / constraint_folder(i), config, c, experts.train, i)
        return backend(problems)

    tell({"event": "start", "tasks": len(experts.tasks), "iterations": rules.iterations})
    records, rows, seconds = [], [], []
    try:
        game = play(experts.tasks, experts.train, solve_all, player, rules, config.seed)
        for record in game:
            records.append(record)
            bound = theory.regret(F_c, player.T, experts.train, records).bound[-1]
            row = iteration_row(record, experts.train, world.truth, float(bound))
            row["ledger"] = [
                ledger_names[(config.seed, record.i, k)] for k in range(len(experts.tasks))
            ]
            rows.append(row)
            seconds.append(round(time.monotonic() - began, 3))
            tell({"event": "iteration", "total": rules.iterations, **progress_columns(row)})
    finally:
        backend.close()

    chosen = select(records, experts.heldout)
    c = records[chosen.i - 1].c
    evidence = evidences.label(experts.groups)
    save_constraint(run / "constraint", config, c, experts.train, chosen.i)
    write_json(run / "evidence.json", evidence_json.document(evidence, experts.groups, c, world))
    names = [task.name for task in experts.tasks]
    summary = make_summary(
        config, names, experts.heldout, rows, chosen, world.truth, evidence.counts()
    )
    write_json(run / "summary.json", summary)
    write_json(run / "timing.json", {"iteration_end_s": seconds, "workers": workers})
    tell({"event": "selected", "i": chosen.i, "description": c.describe()})
    return summary


def read_experts(run: Path, config: RunConfig, world: GridWorld) -> Experts:
    """The run's tasks with their experts, sampled or exact."""
    demos = read_demos(run, config.demos.content_hash)
    by_name = {task.name: task for task in world.tasks}
    chosen = chosen_demos(config, world.tasks, demos)
    tasks = tuple(by_name[d.task] for d in chosen)
    if config.demos.experts == "exact":
        exact = dict(
            zip((t.name for t in world.tasks), maker.expert_behaviours(world), strict=True)
        )
        behaviours = tuple(exact[task.name] for task in tasks)
        return Experts(tasks, behaviours, behaviours, maker.exact_groups(world, tasks))
    return Experts(
        tasks,
        tuple(behaviour_of(d.train) for d in chosen),
        tuple(behaviour_of(d.heldout) for d in chosen),
        tuple(
            g
            for task, d in zip(tasks, chosen, strict=True)
            for g in evidences.groups_of(task, d.train)
        ),
    )


def chosen_demos(
    config: RunConfig, tasks: Sequence[Task], demos: Demonstrations
) -> list[demonstrations.TaskDemos]:
    """The demonstrations of the game's tasks, if the game can be played with them."""
    known = [task.name for task in tasks]
    given = [d.task for d in demos.tasks]
    chosen = [d for d in demos.tasks if not config.game.tasks or d.task in config.game.tasks]
    for name in (*config.game.tasks, *(d.task for d in chosen)):
        if name not in known or name not in given:
            raise InvalidInput(
                f"task {name!r} is not in the world or has no demonstrations; "
                f"there are: {', '.join(name for name in given if name in known)}"
            )
    if config.game.method == "icl" and len(chosen) != 1:
        raise InvalidInput(
            f"icl learns from one task, {len(chosen)} are given; choose one with --task, "
            "or use --method mt-icl"
        )
    for d in chosen:
        if not d.heldout and config.demos.experts == "sampled":
            raise InvalidInput(
                f"task {d.task!r} has no held-out demonstrations; selection needs at least one"
            )
    return chosen


def make_player(
    game: GameConfig, world: GridWorld, experts: Sequence[Behaviour]
) -> tuple[ConstraintClass, Regression | FTRL]:
    """The constraint class, restricted if the game says so, and the player over it."""
    features = world.features
    F_c: ConstraintClass
    if game.constraint_class == "table":
        F_c = TableClass(features, world.shape)
    else:
        psi = with_constant(world.tasks[0].points[0])
        F_c = LinearClass(features, 1.0, float(np.linalg.norm(psi, axis=1).max()))
    if game.restricted:
        F_c = F_c.restricted(experts)
    T = float(world.horizon)
    if game.player == "ftrl":
        return F_c, ftrl(F_c, T, game.iterations)
    return F_c, Regression(F_c, T)


def make_rules(game: GameConfig) -> Rules:
    if game.iterations < 1:
        raise InvalidInput(f"a game needs at least 1 iteration, got {game.iterations}")
    return Rules(game.iterations, game.epsilon, game.method == "mt-icl", game.buffer, game.anneal)


def save_constraint(
    folder: Path, config: RunConfig, c: Constraint, experts: Sequence[Behaviour], i: int
) -> None:
    """Store c_i with the limit that the training demonstrations have under it."""
    delta = max(J(pi_E, c) for pi_E in experts)
    provenance = {
        "iteration": i,
        "method": config.game.method,
        "player": config.game.player,
        "restricted": config.game.restricted,
        "seed": config.seed,
        "demonstrations_sha256": config.demos.content_hash,
        "experts": config.demos.experts,
        "versions": versions(),
    }
    write_folder(folder, constraint_files.to_bytes(c, delta, provenance))


def progress_columns(row: dict[str, Any]) -> Event:
    """What a person wants to see of an iteration while it runs."""
    columns = ("i", "learner_reward_mean", "expert_reward_mean", "learner_true_cost_mean")
    return {**{name: row[name] for name in columns}, "constraint": row["constraint"]}
