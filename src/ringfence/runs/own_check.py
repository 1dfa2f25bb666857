"""All that can be said of a user's configuration before anything is trained.

`examine` reads a configuration's environment and demonstrations and returns the demonstrations,
completed, with what it found. An error makes them unusable; the checks after it are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ringfence.analysis.saturation import CONVENTION, coverage, saturation, standing_apart
from ringfence.demos import checks as demo_checks
from ringfence.demos import dataset as demonstrations
from ringfence.demos.checks import Finding
from ringfence.demos.dataset import Demonstrations, TaskDemos
from ringfence.errors import InvalidInput
from ringfence.runs import control
from ringfence.runs.control_config import ControlConfig, ControlDemos
from ringfence.runs.control_player import make_template, used_features
from ringfence.runs.control_sides import make_sides
from ringfence.runs.control_world import make_tasks, world_versions
from ringfence.runs.own_demos import complete, gather
from ringfence.worlds.gym import GymTask
from ringfence.worlds.sim.replay import Replay, first_difference, trial
from ringfence.worlds.sim.rollouts import ContinuousTask


@dataclass(frozen=True, eq=False)
class Examined:
    """demos: None where an error was found."""

    demos: Demonstrations | None
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity == "error")


def examine(config: ControlConfig, base: Path) -> Examined:
    """base: the folder from which the configuration's paths are seen."""
    findings: list[Finding] = []
    try:
        demos = _examine(config, base, findings)
    except InvalidInput as problem:
        findings.append(Finding("error", "configuration or data", str(problem)))
        return Examined(None, tuple(findings))
    wrong = any(f.severity == "error" for f in findings)
    return Examined(None if wrong else demos, tuple(findings))


def _examine(config: ControlConfig, base: Path, findings: list[Finding]) -> Demonstrations:
    tasks = make_tasks(config.world)
    control.make_rules(config.game)
    make_template(config.game, tasks[0].features)
    if config.world.kind == "gym":
        deterministic = environments(tasks, findings)
        demos = read(config, base, tasks, deterministic, findings)
    else:
        demos = demonstrations.load(base / config.demos.path)
    control.check(replace(config, demos=ControlDemos()), demos)
    findings.append(Finding("ok", "demonstrations", _counts(demos)))
    sides = make_sides(config, demos)
    findings += lengths(tasks, sides.demos)
    findings += demo_checks.check(demos)
    findings += of_the_class(config, tasks, sides.demos)
    return demos


def read(
    config: ControlConfig,
    base: Path,
    tasks: Sequence[ContinuousTask],
    deterministic: bool,
    findings: list[Finding],
) -> Demonstrations:
    """The logs as demonstrations."""
    made: list[TaskDemos] = []
    for logged in gather(config, base, tasks):
        task_demos, found = complete(logged, deterministic)
        made.append(task_demos)
        findings += found
    d = config.demos
    provenance = {"from": d.paths or d.path, "versions": world_versions(config.world)}
    return Demonstrations(tuple(made), tasks[0].features, provenance)  # type: ignore[arg-type]


def _counts(demos: Demonstrations) -> str:
    parts = [f"{d.task} {len(d.train)} + {len(d.heldout)} held out" for d in demos.tasks]
    return f"shapes and numbers are in order: {', '.join(parts)}"


# The environments --------------------------------------------------------------------------------


def environments(tasks: Sequence[ContinuousTask], findings: list[Finding]) -> bool:
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
        word = "the same seed and actions give different steps: not deterministic"
        findings.append(Finding("note", "environment", word))
    elif len(tasks) > 1:
        shared_dynamics(tasks, tried)
        word = f"{len(tasks)} tasks take the same steps from the same seed and actions"
        findings.append(Finding("ok", "dynamics", word))
    return same


def _same(one: Replay, two: Replay) -> bool:
    same = len(one) == len(two) and one.terminated == two.terminated
    return same and first_difference(one.observations, two.observations) is None


def _names(task: ContinuousTask) -> str:
    return ", ".join(f"{f.name} ({f.unit})" for f in task.features)


def shared_dynamics(tasks: Sequence[ContinuousTask], tried: Sequence[Replay]) -> None:
    """Tasks of one world differ in their rewards only."""
    for task, own in zip(tasks[1:], tried[1:], strict=True):
        at = first_difference(own.observations, tried[0].observations)
        if at is not None:
            raise InvalidInput(
                f"tasks {tasks[0].name!r} and {task.name!r} don't share their dynamics: from the "
                f"same seed and actions observation {at} differs; a shared constraint needs one "
                "world, so let tasks differ in their rewards only"
            )


# The demonstrations ------------------------------------------------------------------------------


def lengths(tasks: Sequence[ContinuousTask], every: Sequence[TaskDemos]) -> list[Finding]:
    """Episodes that neither ended by themselves nor reached the horizon."""
    found = []
    for task, d in zip(tasks, every, strict=True):
        cut = [n for n, (_, t) in enumerate(d.labelled) if len(t) < task.horizon]
        cut = [n for n in cut if not d.labelled[n][1].terminated]
        steps = [len(t) for _, t in d.labelled]
        where = f"lengths of {d.task!r}"
        if cut:
            word = (
                f"{len(cut)} of {len(steps)} episodes stop before {task.horizon} steps without "
                f"having ended (first: {d.labelled[cut[0]][0]}); an episode's cost is a sum over "
                "its steps, so cut logs look safer than they are: set [world] steps, or drop them"
            )
            found.append(Finding("warning", where, word))
        else:
            ended = sum(t.terminated for _, t in d.labelled)
            word = f"{min(steps)} to {max(steps)} steps, {ended} episodes ended by themselves"
            found.append(Finding("ok", where, word))
    return found


def of_the_class(
    config: ControlConfig, tasks: Sequence[ContinuousTask], every: Sequence[TaskDemos]
) -> list[Finding]:
    """What the demonstrations say to the class of constraints: coverage, outliers, saturation."""
    features = tasks[0].features
    used = used_features(config.game, features)
    columns = [n for n, f in enumerate(features) if f.name in used]
    trajectories = [t for d in every for t in d.train]
    points = np.concatenate([t.features for t in trajectories])
    found = coverage(points[:, columns], [features[n] for n in columns])
    template = make_template(config.game, features)
    if template is None or len(template.names) != 1:
        word = "not checked: the criterion is for classes with one unknown, such as 'speed <= ?'"
        return [*found, Finding("note", "saturation", word)]
    stated = config.game.player == "payoff"
    budget = config.game.expert_budget if stated else CONVENTION * tasks[0].horizon
    labelled = [(f"{d.task}, {n}", t) for d in every for n, t in enumerate(d.train)]
    found += standing_apart(template, labelled, budget)
    return found + [saturation(template, d.task, d.train, budget) for d in every]
