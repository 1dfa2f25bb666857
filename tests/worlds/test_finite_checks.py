"""Each way in which demonstrations can contradict a finite world, planted and found."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ringfence.experts.optimal import make_demonstrations
from ringfence.objects import Demonstrations, Feature, Finding, TaskDemos, Trajectory
from ringfence.worlds.finite_checks import check
from ringfence.worlds.grid import GridWorld, maze


@pytest.fixture(scope="module")
def world() -> GridWorld:
    return maze()


@pytest.fixture(scope="module")
def demos(world: GridWorld) -> Demonstrations:
    return make_demonstrations(world)


def serious(findings: list[Finding]) -> list[Finding]:
    return [f for f in findings if f.severity != "note"]


def spoil(demos: Demonstrations, change: Callable[[dict[str, Any]], Any]) -> Demonstrations:
    """The demonstrations with the second training trajectory of the first task changed."""
    first, *others = demos.tasks
    t = first.train[1]
    fields: dict[str, Any] = {
        name: getattr(t, name).copy() for name in ("observations", "actions", "rewards", "features")
    }
    fields["terminated"] = t.terminated
    change(fields)
    train = (first.train[0], Trajectory(**fields), *first.train[2:])
    tasks = (dataclasses.replace(first, train=train), *others)
    return Demonstrations(tasks, demos.features, {})


def put(key: str, index: Any, value: float) -> Callable[[dict[str, Any]], Any]:
    return lambda fields: fields[key].__setitem__(index, value)


def cut(steps: int) -> Callable[[dict[str, Any]], Any]:
    def change(fields: dict[str, Any]) -> None:
        fields["observations"] = fields["observations"][: steps + 1]
        for key in ("actions", "rewards", "features"):
            fields[key] = fields[key][:steps]

    return change


def lengthen(fields: dict[str, Any]) -> None:
    """Two more steps at the absorbing goal."""
    for key in ("observations", "actions", "rewards", "features"):
        fields[key] = np.concatenate([fields[key], fields[key][-1:], fields[key][-1:]])


def elsewhere(fields: dict[str, Any]) -> None:
    """Begin one step later, and stay one step longer at the goal."""
    for key in ("observations", "actions", "rewards", "features"):
        fields[key] = np.concatenate([fields[key][1:], fields[key][-1:]])


def test_what_the_world_produced_is_clean(demos: Demonstrations, world: GridWorld) -> None:
    assert serious(check(demos, world.tasks)) == []


def test_coverage_is_a_note(demos: Demonstrations, world: GridWorld) -> None:
    note = check(demos, world.tasks)[-1]
    assert (note.severity, note.where) == ("note", "all tasks")
    assert note.message.startswith("the training trajectories visit 63 of 100 cells (63%)")


FAULTS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "start": (elsewhere, r"it starts in state \d+, where no episode of the task does \(0, 90\)"),
    "horizon": (lengthen, "it has 32 steps, the task's horizon is 30; cut it"),
    "transition": (put("observations", 30, 55.0), r"step 29: action \d can't lead.*state 55; 1 of"),
    "reward": (put("rewards", 4, 0.5), r"step 4: the recorded reward \(0.5\) differs.*\(0\), in 1"),
    "features": (put("features", (2, 1), 8.0), r"step 2: the recorded features .*in 1 of 30"),
    "state index": (put("observations", 3, 100.0), "step 3: observation 100 is no index below 100"),
    "state not whole": (put("observations", 3, 4.5), "observation 4.5 is no index"),
    "negative action": (put("actions", 0, -1.0), "step 0: action -1 is no index below 5"),
    "action": (put("actions", 0, 5.0), "step 0: action 5 is no index below 5"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_planted_error_is_found_and_no_other(
    name: str, demos: Demonstrations, world: GridWorld
) -> None:
    change, message = FAULTS[name]
    findings = check(spoil(demos, change), world.tasks)
    (found,) = [f for f in findings if f.severity == "error"]
    assert found.where == "task 'goal (0,9)', training trajectory 1"
    assert re.search(message, found.message), found.message


def test_an_episode_cut_short_is_a_warning(demos: Demonstrations, world: GridWorld) -> None:
    found = serious(check(spoil(demos, cut(25)), world.tasks))
    assert {f.where for f in found} == {"task 'goal (0,9)', training trajectory 1"}
    assert "it stops after 25 of 30 steps without having ended" in found[0].message


def test_an_unknown_task_is_an_error(demos: Demonstrations, world: GridWorld) -> None:
    found = serious(check(demos, world.tasks[1:]))
    assert [(f.severity, f.where) for f in found] == [("error", "task 'goal (0,9)'")]
    assert "the world has no such task; rename or drop it (there are: goal (1,9)," in str(found[0])
    assert len(serious(check(demos, ()))) == 10


def test_other_features_are_an_error(demos: Demonstrations, world: GridWorld) -> None:
    other = Demonstrations(demos.tasks, (Feature("row", "m"), Feature("col", "m")), {})
    found = serious(check(other, world.tasks))
    assert len(found) == 10
    assert "its features are [('row', 'm')" in found[0].message


def test_wide_observations_are_an_error(demos: Demonstrations, world: GridWorld) -> None:
    t = demos.tasks[0].train[0]
    wide = dataclasses.replace(t, observations=np.repeat(t.observations, 2, axis=1))
    made = Demonstrations((TaskDemos("goal (0,9)", (wide,), ()),), demos.features, {})
    (found,) = serious(check(made, world.tasks))
    assert "an observation has 2 numbers; a finite world's is one index" in found.message
