"""A constraint against the truth and against demonstrations, where each is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import own_cart
import ringfence
from ringfence.api import evaluate
from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.constraints.table import TableConstraint
from ringfence.demos import dataset
from ringfence.disk import parse_toml
from ringfence.errors import InvalidInput
from ringfence.objects import Feature, J, NotHere, TaskDemos, behaviour_of
from ringfence.runs.config import make_world, tagged
from ringfence.runs.evaluate import against_demonstrations, against_truth
from ringfence.solvers.soft import SoftSolver
from small_worlds import GYM, MAP, config_of, demos_of

Finished = Callable[[str], Path]
SETTINGS = config_of("grid").world
WORLD = make_world(SETTINGS)
WALLS = WORLD.truth.walls  # type: ignore[attr-defined]


def table(cells: np.ndarray) -> TableConstraint:
    return TableConstraint(WORLD.features, cells.astype(float))


def on_grid(cells: np.ndarray, delta: float = 0.0) -> dict:
    found = against_truth(SETTINGS, WORLD, table(cells), delta, SoftSolver())
    assert not isinstance(found, NotHere)
    return found


def test_the_truth_itself_misses_nothing_and_every_task_can_be_done() -> None:
    found = on_grid(WALLS)
    assert (found["iou"], found["false_walls"], found["missed_walls"]) == (1.0, [], [])
    assert found["impossible"] == 0
    assert found["learner_true_cost"] == [0.0, 0.0]
    assert np.allclose(found["learner_reward"], found["expert_reward"])


def test_false_and_missed_walls_are_named_by_their_cells() -> None:
    cells = WALLS.copy()
    cells[0, 2], cells[3, 0] = False, True
    found = on_grid(cells)
    assert found["false_walls"] == [[3, 0]]
    assert found["missed_walls"] == [[0, 2]]
    assert found["iou"] == pytest.approx(2 / 4)
    assert found["learner_true_cost"][0] > 0  # straight through the gap that isn't one


def test_a_task_that_is_shut_off_is_impossible_and_the_others_are_not() -> None:
    cells = WALLS.copy()
    cells[1, 3] = True  # goal (0,3) can't be reached
    found = on_grid(cells)
    assert found["tasks"] == ["goal (0,3)", "goal (3,3)"]
    assert found["impossible"] == 1


def test_where_not_even_the_limit_can_be_kept_reward_is_null() -> None:
    found = on_grid(np.ones_like(WALLS))
    assert found["impossible"] == 2
    assert found["learner_reward"] == [None, None]
    assert found["learner_true_cost_mean"] is None
    assert found["expert_reward_mean"] > 0


def test_a_floor_is_compared_by_its_cells_and_not_planned_on(finished: Finished) -> None:
    found = evaluate(finished("ant-maze"), asdict(config_of("ant-maze").world))
    assert found["truth"]["iou"] == 1.0
    assert "impossible" not in found["truth"]


def test_where_no_truth_is_known_it_is_said_why() -> None:
    flat = replace(SETTINGS, map=tuple(line.replace("#", ".") for line in MAP))
    for settings in (flat, config_of("gym", world={"truth": ""}).world):
        world = make_world(settings)
        c = LinearConstraint(world.features, np.ones(len(world.features)), 1.0)
        found = against_truth(settings, world, c, 0.0, SoftSolver())
        assert isinstance(found, NotHere)
        assert "no truth of this world is known" in found.reason


def test_demonstrators_costs_are_what_a_limit_must_grant_them() -> None:
    demos, settings = demos_of("gym"), config_of("gym").world
    c = parse_inequality("speed <= 0.2", demos.features)
    found = against_demonstrations(settings, make_world(settings), c, demos)
    (d,) = demos.tasks
    assert found["expert_cost"] == [pytest.approx(J(behaviour_of(d.train), c))]
    assert found["heldout_expert_cost"] == [pytest.approx(J(behaviour_of(d.heldout), c))]
    speeds = np.concatenate([t.features[:, 0] for _, t in d.labelled])
    assert found["agreement"] == pytest.approx(np.mean((speeds > 0.2) == (speeds > 0.5)))
    none = replace(demos, tasks=(TaskDemos(d.task, d.train, ()),))
    alone = against_demonstrations(None, None, c, none)
    assert alone["heldout_expert_cost"] == [None]
    assert "agreement" not in alone


def test_demonstrations_of_other_features_are_refused() -> None:
    c = LinearConstraint((Feature("speed", "km/h"),), np.ones(1), 1.0)
    with pytest.raises(InvalidInput, match=r"are speed \(m/s\); the constraint's are speed \(km/h"):
        against_demonstrations(None, None, c, demos_of("gym"))


# As it is called ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["grid", "tables"])
def test_a_run_is_evaluated_on_its_world_and_its_demonstrations(
    kind: str, finished: Finished
) -> None:
    run = finished(kind)
    found = evaluate(run, asdict(config_of(kind).world), run / "demos")
    assert found["truth"]["impossible"] == 0
    assert found["demonstrations"]["expert_cost"] == [0.0, 0.0]
    assert found["not_here"] == {}
    learned = ringfence.load(run / "constraint")
    assert evaluate(learned, asdict(config_of(kind).world), run / "demos") == found


def test_an_inequality_in_words_is_enough(tmp_path: Path) -> None:
    dataset.save(demos_of("gym"), tmp_path / "demos")
    found = evaluate("speed <= 0.4", GYM, tmp_path / "demos")
    assert found["truth"] == {"truth": parse_inequality("speed <= 0.5", SPEED).describe()}
    assert 0 <= found["demonstrations"]["agreement"] <= 1
    with pytest.raises(InvalidInput, match="an inequality needs a world"):
        evaluate("speed <= 0.4", None, tmp_path / "demos")


SPEED = (Feature("speed", "m/s"),)


def test_without_a_world_only_demonstrations_can_be_compared_with(finished: Finished) -> None:
    run = finished("gym")
    found = evaluate(run, None, demos_of("gym"))
    assert (found["truth"], found["not_here"]) == (None, {"truth": "no world is given"})
    assert found["demonstrations"]["tasks"] == [demos_of("gym").tasks[0].task]
    with pytest.raises(InvalidInput, match="nothing to compare it with"):
        evaluate(run)


def test_logs_are_evaluated_as_they_come(tmp_path: Path, finished: Finished) -> None:
    """An .npz of arrays: the world says what their features are. The same from Python, by task."""
    own_cart.write(tmp_path)
    world = tagged("test", "world", parse_toml(own_cart.TOML)["world"])
    logs, c = tmp_path / "logs.npz", "speed <= 0.5"
    found = evaluate(c, asdict(world), logs)["demonstrations"]
    assert found["expert_cost_mean"] > found["heldout_expert_cost_mean"] * 0.5 > 0
    task = make_world(world).tasks[0].name
    assert evaluate(c, asdict(world), {task: str(logs)})["demonstrations"] == found
    with pytest.raises(InvalidInput, match="need the world that they were recorded in"):
        evaluate(finished("gym"), None, logs)
