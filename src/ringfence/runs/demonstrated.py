"""A run's tasks with their demonstrations, matched, and what these amount to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ringfence.analysis.evidence import Group, exact_group, groups_of
from ringfence.analysis.evidence.groups import group_paths
from ringfence.attempts import failed
from ringfence.demos.dataset import of_tasks
from ringfence.errors import InvalidInput
from ringfence.experts import optimal
from ringfence.objects import (
    Array,
    Behaviour,
    Demonstrations,
    NotHere,
    Task,
    TaskDemos,
    behaviour_of,
    widened,
)
from ringfence.runs.config import Config
from ringfence.worlds.continuous import check_shapes, check_units, is_continuous
from ringfence.worlds.finite import FiniteTask
from ringfence.worlds.world import Cells, World

#: The share of a feature's moves that a usual one is not exceeded by.
USUAL = 0.9


@dataclass(frozen=True, eq=False)
class Demonstrated:
    """The tasks that are played, with their demonstrations and experts, in task order.

    train, heldout [K]: what the demonstrations amount to; failed [K]: how many of each task's were
    left out; exact: are the experts the world's own, known exactly?
    """

    tasks: tuple[Task, ...]
    demos: tuple[TaskDemos, ...]
    train: tuple[Behaviour, ...]
    heldout: tuple[Behaviour, ...]
    failed: tuple[int, ...]
    exact: bool = False

    @property
    def names(self) -> list[str]:
        return [task.name for task in self.tasks]


def match(config: Config, world: World, demos: Demonstrations) -> Demonstrated:
    """Tasks and demonstrations by name (a single one of each needs none)."""
    chosen = chosen_tasks(config, world, demos)
    given = of_tasks(demos, [task.name for task in chosen])
    if config.game.method == "icl" and len(chosen) != 1:
        names = ", ".join(task.name for task in chosen)
        raise InvalidInput(
            f"icl learns from one task, there are {len(chosen)} ({names}); choose one with --task, "
            "or use --method mt-icl"
        )
    exact = config.demos.experts == "exact"
    if exact and not all(isinstance(task, FiniteTask) for task in chosen):
        raise InvalidInput(
            f'[demos] experts = "exact" is for finite worlds; of {world.name} there are no exact '
            'occupancies: use "sampled"'
        )
    for d in given:
        if not d.heldout and not exact:
            raise InvalidInput(
                f"task {d.task!r} has no held-out demonstrations; selection needs at least one"
            )
    if is_continuous(chosen[0]):
        given = [fitting(t, d, demos) for t, d in zip(chosen, given, strict=True)]
    kept = [without_failed(d) for d in given] if config.demos.drop_failed else given
    left_out = tuple(len(a.labelled) - len(b.labelled) for a, b in zip(given, kept, strict=True))
    if exact:
        own = optimal.expert_behaviours(world)
        by_name = {t.name: pi for t, pi in zip(world.tasks, own, strict=True)}
        experts = tuple(by_name[task.name] for task in chosen)
        return Demonstrated(chosen, tuple(kept), experts, experts, left_out, exact=True)
    return Demonstrated(
        chosen,
        tuple(kept),
        tuple(behaviour_of(d.train) for d in kept),
        tuple(behaviour_of(d.heldout) for d in kept),
        left_out,
    )


def chosen_tasks(config: Config, world: World, demos: Demonstrations) -> tuple[Task, ...]:
    """The tasks that the game names; by default those that are demonstrated, in their order."""
    known = {task.name: task for task in world.tasks}
    given = [d.task for d in demos.tasks]
    if len(known) == 1 == len(given) and not config.game.tasks:
        return tuple(world.tasks)
    wanted = [numbered(list(known), word) for word in config.game.tasks]
    names = [d for d in given if not wanted or d in wanted]
    for name in (*wanted, *names):
        if name not in known or name not in given:
            both = ", ".join(name for name in given if name in known)
            raise InvalidInput(
                f"task {name!r} is not in the world or has no demonstrations; there are: {both}"
            )
    if is_continuous(world.tasks[0]) and not config.game.tasks:
        missing = [name for name in known if name not in given]
        if missing:
            of_tasks(demos, list(known))  # says which are missing
        return tuple(world.tasks)
    return tuple(known[name] for name in names)


def numbered(names: Sequence[str], word: str) -> str:
    """A task's name from its number in the world, or as it is."""
    return names[int(word)] if word.isdecimal() and int(word) < len(names) else word


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


def fitting(task: Task, d: TaskDemos, demos: Demonstrations) -> TaskDemos:
    """A task's demonstrations with the task's features; observations are added where they are."""
    have, want = [f.name for f in demos.features], [f.name for f in task.features]
    width = int(d.train[0].observations.shape[1])
    if have != want and (have != want[: len(have)] or len(want) - len(have) != width):
        raise InvalidInput(
            f"the demonstrations have the features {', '.join(have)}, task {task.name!r} has "
            f"{', '.join(want)}"
        )
    check_units(task, demos.features)  # type: ignore[arg-type]
    if have != want:
        train, heldout = (
            tuple(replace(t, features=widened(t, len(want))) for t in side)
            for side in (d.train, d.heldout)
        )
        d = TaskDemos(d.task, train, heldout)
    for label, t in d.labelled:
        check_shapes(task, label, t)  # type: ignore[arg-type]
    return d


def usual_moves(demos: Sequence[TaskDemos]) -> Array:
    """How far each feature moves in a step where it moves at all, [d]: all but the widest moves are
    not wider; 0 for one that never moves."""
    moves = [np.abs(np.diff(t.features, axis=0)) for d in demos for t in d.train]
    each = np.concatenate(moves).T
    return np.array([np.quantile(m[m > 0], USUAL) if (m > 0).any() else 0.0 for m in each])


def refuse_constant(shown: Demonstrated, used: Sequence[str]) -> None:
    """A feature that never varies can't be learned about."""
    names = [f.name for f in shown.tasks[0].features]
    points = np.concatenate([pi.features for pi in shown.train])
    for name in used:
        values = points[:, names.index(name)]
        if values.min() == values.max():
            raise InvalidInput(
                f"feature {name!r} is {values[0]:g} in every step of every demonstration: no "
                "constraint on it can be learned; check how it is computed, or leave it out"
            )


def evidence_groups(shown: Demonstrated, world: World) -> tuple[Group, ...] | NotHere:
    """The experts by task and start, as evidence compares them."""
    cells = world.cells
    if cells is None:
        return NotHere("there is no finite world underneath")
    tasks = [cells.task(task.name) for task in shown.tasks]
    if tasks[0].horizon is None:
        return NotHere("evidence compares whole episodes: it needs tasks with a horizon")
    if shown.exact:
        return exact_groups(world, tasks)
    pairs = zip(tasks, shown.demos, strict=True)
    try:
        return demonstrated_groups(cells, pairs)
    except InvalidInput as problem:  # such as episodes that stop early: a game needs no whole ones
        return NotHere(str(problem))


def demonstrated_groups(
    cells: Cells, pairs: Iterable[tuple[FiniteTask, TaskDemos]]
) -> tuple[Group, ...]:
    if cells.path is None:
        return tuple(g for task, d in pairs for g in groups_of(task, d.train))
    return tuple(
        g for task, d in pairs for g in group_paths(task, [cells.path(t) for t in d.train])
    )


def exact_groups(world: World, tasks: Sequence[FiniteTask]) -> tuple[Group, ...]:
    """The world's own experts by task and start: endlessly many paths of each."""
    return tuple(exact_group(*one) for one in optimal.from_each_start(world, tasks))
