"""The sides of a game on a continuous world: tasks, demonstrations, and what these amount to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ringfence.demos.attempts import failed
from ringfence.demos.dataset import Demonstrations, TaskDemos, of_tasks
from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour, behaviour_of, widened
from ringfence.runs.control_config import ControlConfig
from ringfence.runs.control_world import make_tasks
from ringfence.runs.own_demos import check_shapes, check_units
from ringfence.worlds.sim.rollouts import ContinuousTask


@dataclass(frozen=True, eq=False)
class Sides:
    """The run's tasks with their demonstrations and what these amount to, in task order.

    failed: how many demonstrations of each were left out.
    """

    tasks: tuple[ContinuousTask, ...]
    demos: tuple[TaskDemos, ...]
    train: tuple[Behaviour, ...]
    heldout: tuple[Behaviour, ...]
    failed: tuple[int, ...]


def make_sides(config: ControlConfig, demos: Demonstrations) -> Sides:
    """Tasks and demonstrations, matched by name (a single one needs none)."""
    tasks = make_tasks(config.world)
    if config.game.method == "icl" and len(tasks) != 1:
        raise InvalidInput(f"icl learns from one task, the world has {len(tasks)}; use mt-icl")
    given = of_tasks(demos, [task.name for task in tasks])
    fit = [fitting(task, d, demos) for task, d in zip(tasks, given, strict=True)]
    chosen = [without_failed(d) for d in fit] if config.game.drop_failed else fit
    return Sides(
        tasks,
        tuple(chosen),
        tuple(behaviour_of(d.train) for d in chosen),
        tuple(behaviour_of(d.heldout) for d in chosen),
        tuple(len(all_.labelled) - len(d.labelled) for all_, d in zip(fit, chosen, strict=True)),
    )


def without_failed(d: TaskDemos) -> TaskDemos:
    """A task's demonstrations less those that failed at it."""
    trajectories = [t for _, t in d.labelled]
    kept = [None if f else t for t, f in zip(trajectories, failed(trajectories), strict=True)]
    train, heldout = (
        tuple(t for t in side if t is not None)
        for side in (kept[: len(d.train)], kept[len(d.train) :])
    )
    if not train or not heldout:
        raise InvalidInput(
            f"task {d.task!r}: without the failed demonstrations there are {len(train)} training "
            f"and {len(heldout)} held-out ones; give more, or don't drop the failed ones"
        )
    return TaskDemos(d.task, train, heldout)


def fitting(task: ContinuousTask, d: TaskDemos, demos: Demonstrations) -> TaskDemos:
    """A task's demonstrations with the task's features; observations are added where they are."""
    if not d.heldout:
        raise InvalidInput(
            f"task {d.task!r} has no held-out demonstrations; selection needs at least one"
        )
    have, want = [f.name for f in demos.features], [f.name for f in task.features]
    if have != want and (have != want[: len(have)] or len(want) - len(have) != _width(d)):
        raise InvalidInput(
            f"the demonstrations have the features {', '.join(have)}, task {task.name!r} has "
            f"{', '.join(want)}"
        )
    check_units(task, demos.features)
    if have != want:
        train, heldout = (
            tuple(replace(t, features=widened(t, len(want))) for t in side)
            for side in (d.train, d.heldout)
        )
        d = TaskDemos(d.task, train, heldout)
    for label, t in d.labelled:
        check_shapes(task, label, t)
    return d


def _width(d: TaskDemos) -> int:
    return int(d.train[0].observations.shape[1])


def refuse_constant(sides: Sides, used: Sequence[str]) -> None:
    """A feature that never varies can't be learned about."""
    names = [f.name for f in sides.tasks[0].features]
    points = np.concatenate([pi.features for pi in sides.train])
    for name in used:
        values = points[:, names.index(name)]
        if values.min() == values.max():
            raise InvalidInput(
                f"feature {name!r} is {values[0]:g} in every step of every demonstration: no "
                "constraint on it can be learned; check how it is computed, or leave it out"
            )
