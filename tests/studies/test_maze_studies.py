"""The paper's maze, exactly: what the studies must show, in short form."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.studies import maze as studies
from ringfence.worlds.grid import GridWorld, maze


@pytest.fixture(scope="module")
def world() -> GridWorld:
    return maze()


def test_restricted_class_recovers_the_maze_by_iteration_2(world: GridWorld) -> None:
    rows = studies.exact_games(world)
    restricted = [r for r in rows if r["player"] == "regression" and r["restricted"]]
    assert [r["iou_after_update"] for r in restricted] == [1.0, 1.0]
    assert restricted[1]["true_cost"] == 0.0
    assert restricted[1]["worst_reward_gap"] >= -1e-9


def test_the_papers_regression_has_its_own_course(world: GridWorld) -> None:
    rows = [r for r in studies.exact_games(world) if not r["restricted"]]
    course = [round(r["iou_after_update"], 3) for r in rows]
    assert course == [0.837, 0.9, 0.947, 0.947, 0.973]
    assert [round(r["true_cost"], 1) for r in rows] == [5.2, 0, 0, 0, 0]


def test_ten_paths_per_start_are_nearly_enough(
    world: GridWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "PATHS", (10,))
    rows = studies.path_curve(world, seeds=10)
    assert np.mean([r["iou"] for r in rows]) >= 0.96
    assert all(r["wrong_and_visited"] == 0 for r in rows)
    assert np.mean([r["iou"] for r in rows]) > np.mean([r["iou_regression"] for r in rows])


def test_one_task_or_ten_put_together_shut_tasks_out(world: GridWorld) -> None:
    rows, _ = studies.single_tasks(world)
    impossible = {r["constraint"]: r["impossible"] for r in rows}
    assert impossible["task 0"] > 5
    assert impossible["average"] > 5
    assert impossible["maximum"] > 5
    assert impossible["multi-task, last"] == 0


def test_entropy_forbids_everything_that_was_not_taken(world: GridWorld) -> None:
    rows = studies.entropy(world)
    assert rows[0]["forbidden"] < rows[0]["not_taken"]  # a deterministic learner does not
    assert all(r["forbidden"] == r["not_taken"] for r in rows[1:])


@pytest.mark.parametrize("paths", [None, 3])
def test_what_is_covered_succeeds_and_what_fails_was_said(
    world: GridWorld, paths: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of the 120 ways here; `ringfence reproduce grid` goes through all."""
    monkeypatch.setattr(studies, "combinations", lambda *_: [(1, 4, 8), (0, 5, 9), (7, 8, 9)])
    for row in studies.held_out(world, paths):
        assert row["covered_success"] == row["covered_safe"] == row["covered"] > 0
        if row["unknown"] == "avoid":
            assert row["uncovered_success"] == 0
            assert row["uncovered_safe"] == row["uncovered"]


def test_three_edge_goals_left_out_are_called_uncovered(
    world: GridWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "combinations", lambda *_: [(7, 8, 9)])
    (avoid, _) = studies.held_out(world, None)
    assert avoid["uncovered"] >= 6  # from both known starts
