"""Tasks and demonstrations are matched by name; failed ones are left out where asked for."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringfence.errors import InvalidInput
from ringfence.experts import optimal
from ringfence.objects import (
    Demonstrations,
    Feature,
    NotHere,
    Solution,
    TaskDemos,
    Trajectory,
    behaviour_of,
)
from ringfence.report import page
from ringfence.runs import driver
from ringfence.runs.config import make_world
from ringfence.runs.demonstrated import (
    Demonstrated,
    evidence_groups,
    match,
    numbered,
    refuse_constant,
    without_failed,
)
from ringfence.runs.ledger import Ledger, to_files
from ringfence.solvers.watching import told
from small_worlds import config_of, demos_of, every_world, of_kinds, small


def matched(kind: str, given: Demonstrations | None = None, /, **tables: Any) -> Demonstrated:
    config = config_of(kind, **tables)
    return match(config, make_world(config.world), given or demos_of(kind))


# Tasks -------------------------------------------------------------------------------------------


@every_world
def test_every_task_has_its_demonstrations(kind: str) -> None:
    shown = matched(kind)
    world = make_world(config_of(kind).world)
    assert shown.names == [task.name for task in world.tasks]
    assert [d.task for d in shown.demos] == [d.task for d in demos_of(kind).tasks]
    for d, pi, held in zip(shown.demos, shown.train, shown.heldout, strict=True):
        assert (pi.episodes, held.episodes) == (len(d.train), len(d.heldout))
        assert pi.reward == pytest.approx(np.mean([t.rewards.sum() for t in d.train]))
    assert shown.failed == (0,) * len(shown.tasks)


@pytest.mark.parametrize("kind", ["grid", "ant-maze", "tables"])
def test_a_game_plays_the_tasks_that_it_names(kind: str) -> None:
    names = [d.task for d in demos_of(kind).tasks]
    assert matched(kind, game={"tasks": [names[1]]}).names == [names[1]]
    assert matched(kind, game={"tasks": ["1", "0"]}).names == names  # in the order they were shown
    reverse = replace(demos_of(kind), tasks=demos_of(kind).tasks[::-1])
    assert matched(kind, reverse).names == names[::-1]
    only = replace(demos_of(kind), tasks=demos_of(kind).tasks[:1])
    assert matched(kind, only).names == names[:1]
    with pytest.raises(InvalidInput, match="'nowhere' is not in the world or has no demonstr"):
        matched(kind, game={"tasks": ["nowhere"]})
    with pytest.raises(InvalidInput, match=re.escape(f"there are: {names[0]}")):
        matched(kind, only, game={"tasks": [names[1]]})


def test_a_single_task_needs_no_name() -> None:
    (task,) = demos_of("ant").tasks
    other = replace(demos_of("ant"), tasks=(replace(task, task="walking"),))
    assert matched("ant", other).names == ["ant"]


def test_a_number_is_a_task_unless_there_are_fewer() -> None:
    assert [numbered(["a", "b"], word) for word in ("0", "1", "2", "a")] == ["a", "b", "2", "a"]


@pytest.mark.parametrize("kind", ["grid", "tables"])
def test_exact_experts_are_the_worlds_own_in_the_games_order(kind: str) -> None:
    world = make_world(config_of(kind).world)
    own: Any = optimal.expert_behaviours(world)
    reverse = replace(demos_of(kind), tasks=demos_of(kind).tasks[::-1])
    shown = matched(kind, reverse, demos={"experts": "exact"})
    assert shown.exact
    assert list(shown.train) == list(shown.heldout)
    assert [pi.reward for pi in shown.train] == [pi.reward for pi in own][::-1]


# Failed attempts ---------------------------------------------------------------------------------


def episode(reward: float, speed: float) -> Trajectory:
    """Two steps from a start of its own."""
    return Trajectory(
        np.array([[reward], [0.0], [0.0]]),
        np.zeros((2, 1)),
        np.array([reward, 0.0]),
        np.array([[0.0, 0.0, speed]] * 2),
        False,
    )


def test_the_constraint_player_does_not_see_a_learners_failed_episodes(tmp_path: Path) -> None:
    runs = [episode(1000, speed=0.0), *(episode(1650 + n, speed=0.7) for n in range(5))]
    solution = Solution({}, 1.0, behaviour_of(runs), 100)
    problem: Any = type("Problem", (), {"drop_failed": False})
    assert told(problem, solution, runs).shown is solution.behaviour
    problem.drop_failed = True
    seen = told(problem, solution, runs)
    assert seen.behaviour is solution.behaviour
    assert seen.shown.episodes == 5
    assert seen.shown.features.tolist() == [[0.0, 0.0, 0.7]]
    ledger = Ledger(tmp_path)
    ledger.put("solve", to_files({}, seen))
    again = ledger.get("solve")
    assert again is not None
    assert again.shown.reward == seen.shown.reward == 1652
    assert again.behaviour.reward == solution.behaviour.reward
    assert again.shown.episodes == 5
    np.testing.assert_array_equal(again.shown.visits, seen.shown.visits)


def with_a_failure(kind: str) -> Demonstrations:
    """The small game's demonstrations, and one that earned far less at a speed of its own."""
    (task,) = demos_of(kind).tasks
    bad = task.train[0]
    bad = replace(
        bad,
        observations=bad.observations + 0.01,  # a start of its own
        rewards=bad.rewards - 100.0,
        features=bad.features + 5.0,
    )
    shown = TaskDemos(task.task, (bad, *task.train), task.heldout)
    return Demonstrations((shown,), demos_of(kind).features, {})


def test_a_game_without_failed_demonstrations_is_that_of_the_others(tmp_path: Path) -> None:
    config = config_of("ant", demos={"drop_failed": True})
    assert matched("ant", with_a_failure("ant")).failed == (0,)
    summaries = []
    for name, demos, failed in (("a", with_a_failure("ant"), 1), ("b", demos_of("ant"), 0)):
        driver.create(tmp_path / name, config, demos)
        events: list[dict[str, Any]] = []
        summaries.append(driver.drive(tmp_path / name, on_event=events.append))
        assert summaries[-1]["failed_demonstrations"] == [failed]
        assert events[0]["failed"] == failed
    a, b = ([row["updated"] for row in s["iterations"]] for s in summaries)
    assert a == b
    assert "1 failed demonstration left out." in page.write(tmp_path / "a").read_text()


def test_nothing_to_select_on_is_refused() -> None:
    (task,) = demos_of("ant").tasks
    first = task.train[0]
    bad = replace(first, observations=first.observations + 1, rewards=first.rewards - 100.0)
    alone = TaskDemos(task.task, (*task.train, *task.heldout), (bad,))
    with pytest.raises(InvalidInput, match=r"6 training\s+and 0 held-out"):
        without_failed(alone)


# Features ----------------------------------------------------------------------------------------


def test_the_whole_state_is_added_where_demonstrations_lack_it() -> None:
    shown = matched("ant", world={"full_state": True}, game={"constraint": "linear"})
    (d,) = demos_of("ant").tasks
    wide, t = shown.demos[0].train[0].features, d.train[0]
    np.testing.assert_array_equal(wide[:, :3], t.features)
    np.testing.assert_array_equal(wide[:, 3:], t.observations[1:])


def test_other_features_are_refused_by_name() -> None:
    other = replace(demos_of("ant"), features=tuple(Feature(n, "m") for n in ("x", "y", "height")))
    with pytest.raises(InvalidInput, match=r"features x, y, height, task 'ant' has x, y, speed"):
        matched("ant", other)


def test_a_feature_that_never_varies_is_named() -> None:
    shown = matched("ant")
    pi = shown.train[0]
    still = replace(shown, train=(replace(pi, features=np.full_like(pi.features, 2.0)),))
    refuse_constant(shown, ["speed"])
    refuse_constant(still, [])
    with pytest.raises(InvalidInput, match="'speed' is 2 in every step"):
        refuse_constant(still, ["speed"])


# Evidence ----------------------------------------------------------------------------------------


@every_world
def test_experts_are_grouped_where_there_are_cells_and_else_it_is_said_why_not(kind: str) -> None:
    world = make_world(config_of(kind).world)
    found = evidence_groups(matched(kind), world)
    if world.cells is None:
        assert isinstance(found, NotHere)
        assert "no finite world" in found.reason
        return
    assert not isinstance(found, NotHere)
    assert len(found) >= len(world.tasks)


@of_kinds("grid", "tables")
def test_exact_experts_are_grouped_by_each_start(kind: str) -> None:
    world = make_world(config_of(kind).world)
    shown = matched(kind, demos={"experts": "exact"})
    found = evidence_groups(shown, world)
    assert not isinstance(found, NotHere)
    starts = [np.count_nonzero(t.mdp.start) for t in shown.tasks]  # type: ignore[attr-defined]
    assert len(found) == sum(starts)


def test_a_discounted_task_has_no_evidence() -> None:
    config, demos = small("grid")
    shown = match(config, make_world(config.world), demos)
    world = make_world(config.world)
    endless = [replace(t, mdp=replace(t.mdp, horizon=None, discount=0.9)) for t in shown.tasks]  # type: ignore[call-overload,attr-defined,misc]
    cells: Any = replace(world.cells, tasks=tuple(endless))  # type: ignore[type-var]
    other: Any = type("World", (), {"cells": cells, "features": world.features})
    found = evidence_groups(shown, other)
    assert isinstance(found, NotHere)
    assert "with a horizon" in found.reason
