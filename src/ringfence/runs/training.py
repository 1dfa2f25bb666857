"""Demonstrators of a world whose truth is known, each trained under it, and demonstrations made.

A continuous world's experts are trained in a folder of their own, through its ledger: a killed
training goes on, and one that is done is not done again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ringfence.deploy.policies import load_policy
from ringfence.disk import remove_partials
from ringfence.errors import InvalidInput
from ringfence.experts import optimal
from ringfence.objects import Demonstrations, Problem
from ringfence.runs.backend import Backend, Solves, make_backend
from ringfence.runs.config import build, make_solver
from ringfence.runs.folder import OnEvent, only_driver, quiet, tell_damaged, teller
from ringfence.runs.setting_ranges import check_ranges
from ringfence.runs.summary import versions
from ringfence.worlds.world import World

T = TypeVar("T")


def make_demonstrations(
    settings: Any,
    world: World,
    experts: Mapping[str, Any],
    solver: Any,
    folder: Path,
    *,
    policy: Path | None = None,
    workers: int | Backend = 1,
    on_event: OnEvent = quiet,
    say: Callable[[str], None] = lambda text: None,
) -> Demonstrations:
    """Demonstrations by the world's own kind of experts.

    settings: of the world; experts: of its kind of experts (ringfence.experts.*), where they differ
    from the defaults; solver, folder: of their training, where they are trained; policy: a finished
    run whose policy is the expert.
    """
    where = f"experts of {world.name}"
    if world.experts == "optimal":
        return optimal.make_demonstrations(world, _ranged(where, experts, optimal.ExpertConfig))
    if world.experts == "walking":
        from ringfence.experts import walking

        maze: Any = world
        return walking.make_demonstrations(maze, _ranged(where, experts, walking.Config))
    from ringfence.experts import trained

    config = _ranged(where, experts, trained.Config)
    tasks: Any = world.tasks
    truth = getattr(settings, "truth", "")
    for task in tasks:
        trained.truth_of(truth, task)
    if policy is not None:
        saved = load_policy(policy)
        found, augment = [dict(saved.arrays)], saved.sees
    else:
        found = train_experts(settings, world, config, solver, folder, workers, on_event)
        augment = solver.augment
    provenance = {
        "world": json.loads(json.dumps(asdict(settings))),
        "versions": versions(world),
    }
    return trained.roll_out(tasks, truth, config, found, provenance, say, augment)


def _ranged(where: str, experts: Mapping[str, Any], kind: type[T]) -> T:
    found = build(where, experts, kind)
    check_ranges(where, "experts", found)
    return found


def train_experts(
    settings: Any,
    world: World,
    experts: Any,
    solver: Any,
    folder: Path,
    workers: int | Backend = 1,
    on_event: OnEvent = quiet,
) -> list[dict[str, Any]]:
    """One policy per task, trained in `folder` as far as they are not there."""
    from ringfence.experts.trained import truth_of

    tasks: Any = world.tasks
    problems = [
        Problem(task, truth_of(settings.truth, task), experts.delta, None, (experts.seed, 0, k))
        for k, task in enumerate(tasks)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    with only_driver(folder):
        remove_partials(folder)
        tell = teller(folder, on_event)
        steps = solver.env_steps * len(tasks)
        tell({"event": "start", "tasks": len(tasks), "iterations": 0, "steps": steps})

        def on_record(problem: Problem, record: dict[str, Any]) -> None:
            tell({"event": "update", "i": 0, "k": problem.seed[2], **record})

        def on_solved(problem: Problem, name: str, known: bool) -> None:
            tell({"event": "solved", "i": 0, "k": problem.seed[2], "known": known, "name": name})

        player = make_solver(solver)
        backend = make_backend(workers, player)
        damaged = partial(tell_damaged, tell)
        solves = Solves(folder, settings, solver, player, backend, on_record, on_solved, damaged)
        try:
            return [dict(solution.policy) for solution in solves(problems)]
        finally:
            backend.close()


def require_new(out: Path) -> None:
    if out.exists():
        raise InvalidInput(f"{out}: it exists already; choose another --out")
