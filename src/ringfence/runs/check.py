"""All that can be said of a configuration and its demonstrations before anything is trained.

`examine` gathers the demonstrations, completed where they are logs, with what every check found.
An error makes them unusable; the checks after it are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringfence.demos import checks, dataset, logs
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, Finding, Task, TaskDemos
from ringfence.runs import driver
from ringfence.runs.class_checks import of_the_class
from ringfence.runs.config import Config, Demos, make_world
from ringfence.runs.gather import as_paths, complete, gather, places
from ringfence.runs.summary import versions
from ringfence.worlds.continuous import is_continuous
from ringfence.worlds.finite import FiniteTask
from ringfence.worlds.gym import GymTask
from ringfence.worlds.sim.replay import Replay, first_difference, trial
from ringfence.worlds.world import World


@dataclass(frozen=True, eq=False)
class Examined:
    """demos: None where an error was found."""

    demos: Demonstrations | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity == "error")

    @property
    def reason(self) -> str:
        """Why they are unusable: the first error, and of which demonstration it is."""
        first = self.errors[0]
        return first.message if first.where in WHOLE else f"{first.where}: {first.message}"


#: An error's place where its message names it itself.
WHOLE = ("demonstrations", "configuration or data")


def examine(
    config: Config,
    base: Path,
    demos: Demonstrations | None = None,
    world: World | None = None,
) -> Examined:
    """base: the folder from which the configuration's paths are seen; demos: where they are there
    already; world: where no configuration can describe it."""
    findings: list[Finding] = []
    try:
        demos = _examine(config, base, demos, world or make_world(config.world), findings)
    except InvalidInput as problem:
        findings.append(Finding("error", "configuration or data", str(problem)))
        return Examined(None, tuple(findings))
    wrong = any(f.severity == "error" for f in findings)
    return Examined(None if wrong else demos, tuple(findings))


def _examine(
    config: Config,
    base: Path,
    demos: Demonstrations | None,
    world: World,
    findings: list[Finding],
) -> Demonstrations:
    deterministic = tried(world, findings)
    if demos is None:
        demos = read(config.demos, base, world, deterministic, findings)
    found = world.check(demos)
    findings += [f for f in found if f.severity == "error"]
    if any(f.severity == "error" for f in found):
        return demos
    pieces = driver.check(config, demos, world)
    findings.append(Finding("ok", "demonstrations", _counts(demos)))
    findings += [f for f in found if f.severity != "error"]
    findings += checks.check(demos)
    if is_continuous(world.tasks[0]):
        findings += of_the_class(config, pieces.family, pieces.shown, demos)
    return demos


def given(d: Demos, world: World) -> tuple[Demonstrations, list[Finding]]:
    """Demonstrations of a world, where no game is played with them, and what was found in them."""
    findings: list[Finding] = []
    return read(d, Path(), world, tried(world, findings), findings), findings


def tried(world: World, findings: list[Finding]) -> bool:
    """Try environments, where a world has any; are they deterministic?"""
    simulated = all(isinstance(task, GymTask) for task in world.tasks)
    return environments(world.tasks, findings) if simulated else False


def read(
    d: Demos, base: Path, world: World, deterministic: bool, findings: list[Finding]
) -> Demonstrations:
    """Demonstrations of our own format, or logs completed by what the environment says."""
    made = list[TaskDemos]()
    if not (d.paths or logs.is_log(d.path, base)) and not all(
        isinstance(task, GymTask) for task in world.tasks
    ):
        return dataset.load(base / d.path)
    for task in world.tasks if isinstance(world.tasks[0], FiniteTask) else ():
        place = places(d, world.tasks)[task.name]
        made.append(as_paths(task, logs.read(place, base), d.heldout))  # type: ignore[arg-type]
    for logged in () if made else gather(d, base, world.tasks):  # type: ignore[arg-type]
        task_demos, found = complete(logged, deterministic)
        made.append(task_demos)
        findings += found
    known = {} if d.paths else dataset.provenance(base / d.path)
    kept = {name: known[name] for name in ("delta", "true_cost") if name in known}
    origin: Any = {"from": d.paths or d.path, "versions": versions(world), **kept}
    return Demonstrations(tuple(made), world.features, origin)


def _counts(demos: Demonstrations) -> str:
    parts = [f"{d.task} {len(d.train)} + {len(d.heldout)} held out" for d in demos.tasks]
    return f"shapes and numbers are in order: {', '.join(parts)}"


# The environments --------------------------------------------------------------------------------


def environments(tasks: Sequence[Task], findings: list[Finding]) -> bool:
    """Try each task for some steps; are they deterministic?"""
    tried, same = [], True
    for task in tasks:
        assert isinstance(task, GymTask)
        one, two = trial(task), trial(task)
        tried.append(one)
        same &= _same(one, two)
        o, a, names = task.observation_dim, len(task.action_low), _names(task)
        word = f"{o} observations, {a} actions, {task.horizon} steps; features {names}"
        findings.append(Finding("ok", f"environment of {task.name!r}", word))
    if not same:
        word = (
            "the same seed and actions give different steps: not deterministic, so nothing can be "
            "replayed, and a killed run doesn't end in the bytes of one that was not killed"
        )
        findings.append(Finding("warning", "environment", word))
    elif len(tasks) > 1:
        findings.append(shared_dynamics(tasks, tried))
    return same


def _same(one: Replay, two: Replay) -> bool:
    same = len(one) == len(two) and one.terminated == two.terminated
    return same and first_difference(one.observations, two.observations) is None


def _names(task: Task) -> str:
    return ", ".join(f"{f.name} ({f.unit})" for f in task.features)


def shared_dynamics(tasks: Sequence[Task], tried: Sequence[Replay]) -> Finding:
    """Do tasks give the same answer to the same state and action? They may differ in reward, in
    their goal (also inside the observation) and in where they start."""
    apart, differing = list[str](), list[str]()
    for task, own in zip(tasks[1:], tried[1:], strict=True):
        at = first_difference(own.observations, tried[0].observations)
        if at == 0:  # another start, or another goal in the observation: nothing can be compared
            apart.append(task.name)
        elif at is not None:
            columns = only_seen(own, tried[0])
            if not columns:
                raise InvalidInput(
                    f"tasks {tasks[0].name!r} and {task.name!r} don't share their dynamics: from "
                    f"the same start and actions observation {at} differs; a shared constraint "
                    "needs one world, so let tasks differ in reward, goal and start only"
                )
            differing.append(f"{task.name!r} in {', '.join(map(str, columns))}")
    remarks = []
    if apart:
        names = ", ".join(map(repr, apart))
        remarks.append(f"{names} begin(s) with another observation than {tasks[0].name!r}")
    if differing:
        remarks.append(
            f"columns of the observation differ from those of {tasks[0].name!r} after the same "
            f"start and actions ({'; '.join(differing)}), the others and all features are the "
            "same: a goal that is seen as a distance does that"
        )
    if remarks:
        return Finding("note", "dynamics", f"not tested: {'; '.join(remarks)}")
    word = f"{len(tasks)} tasks take the same steps from the same seed and actions"
    return Finding("ok", "dynamics", word)


def only_seen(one: Replay, two: Replay) -> list[int]:
    """The columns of the observation in which two tasks differ, where the rest of what happens, all
    features and when it ends are the same; none where something else differs, too."""
    width = one.observations.shape[1]
    columns = [
        k
        for k in range(width)
        if first_difference(one.observations[:, k], two.observations[:, k]) is not None
    ]
    same = first_difference(one.features, two.features) is None and len(one) == len(two)
    return columns if same and len(columns) < width else []
