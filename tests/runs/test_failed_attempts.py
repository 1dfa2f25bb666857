"""Failed episodes are neither experts' nor learners' evidence, where a game leaves them out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_control import demos, quiet, small

from ringfence.cli.main import main
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, Solution, TaskDemos, Trajectory, behaviour_of
from ringfence.report import page
from ringfence.runs.control import create, drive
from ringfence.runs.control_sides import make_sides, without_failed
from ringfence.runs.control_solver import ControlSolver
from ringfence.runs.ledger import Ledger


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
    solver = ControlSolver(tmp_path, small().world, small().ppo, {}, {}, quiet, quiet)
    assert solver._told(solution, runs) is solution
    told = replace(solver, drop_failed=True)._told(solution, runs)
    assert told.behaviour is solution.behaviour
    assert told.shown.episodes == 5
    assert told.shown.features.tolist() == [[0.0, 0.0, 0.7]]
    ledger = Ledger(tmp_path)
    ledger.put("solve", {}, told)
    again = ledger.get("solve")
    assert again is not None
    assert again.shown.reward == told.shown.reward == 1652
    assert again.behaviour.reward == solution.behaviour.reward
    assert again.shown.episodes == 5
    np.testing.assert_array_equal(again.shown.visits, told.shown.visits)


def with_a_failure() -> Demonstrations:
    """The small game's demonstrations, and one that earned far less at a speed of its own."""
    (task,) = demos().tasks
    bad = task.train[0]
    bad = replace(
        bad,
        observations=bad.observations + 0.01,  # a start of its own
        rewards=bad.rewards - 100.0,
        features=bad.features + 5.0,
    )
    return Demonstrations(
        (TaskDemos(task.task, (bad, *task.train), task.heldout),), demos().features, {}
    )


def test_a_game_without_failed_demonstrations_is_that_of_the_others(tmp_path: Path) -> None:
    config = small(drop_failed=True)
    sides, others = make_sides(config, with_a_failure()), make_sides(config, demos())
    assert (sides.failed, others.failed) == ((1,), (0,))
    assert make_sides(small(), with_a_failure()).failed == (0,)
    for name, given_ in (("a", with_a_failure()), ("b", demos())):
        create(tmp_path / name, config, given_)
        drive(tmp_path / name, quiet)
    a, b = (json.loads((tmp_path / name / "summary.json").read_text()) for name in "ab")
    assert a["failed_demonstrations"] == [1]
    assert b["failed_demonstrations"] == [0]
    assert [r["updated"] for r in a["iterations"]] == [r["updated"] for r in b["iterations"]]
    assert "1 failed demonstration(s) were left out" in page.write(tmp_path / "a").read_text()


def test_nothing_to_select_on_is_refused() -> None:
    (task,) = demos().tasks
    first = task.train[0]
    bad = replace(first, observations=first.observations + 1, rewards=first.rewards - 100.0)
    alone = TaskDemos(task.task, (*task.train, *task.heldout), (bad,))
    with pytest.raises(InvalidInput, match=r"6 training\s+and 0 held-out"):
        without_failed(alone)


def test_maps_refuse_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["learn", "--world", "maze", "--drop-failed"]) == 2
    assert "--drop-failed is for continuous worlds" in capsys.readouterr().err
