"""The paper's maze, exactly: what the tables must show, in short form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_study import study_of

from ringfence.reproduce import exact_maze
from ringfence.reproduce.exact_tasks import Attempts
from ringfence.worlds.grid import maze

STARTS = [(3, 1), (7, 3), (5, 5), (1, 7), (8, 9)]


def rows(folder: Path, name: str, **options: Any) -> list[dict[str, Any]]:
    return getattr(exact_maze, name)(study_of(folder, {}, **options)).rows  # type: ignore[no-any-return]


def test_the_restricted_class_recovers_the_maze_by_iteration_2(tmp_path: Path) -> None:
    games = rows(tmp_path, "exact_games")
    restricted = [r for r in games if r["player"] == "regression, restricted"]
    assert [r["iou"] for r in restricted] == [1.0, 1.0]
    assert restricted[1]["true_cost"] == 0.0
    assert restricted[1]["worst_reward_gap"] >= -1e-9
    paper = [r for r in games if "paper" in r["player"]]
    assert [round(r["iou"], 3) for r in paper] == [0.837, 0.9, 0.947, 0.947, 0.973]
    assert [round(r["true_cost"], 1) for r in paper] == [5.2, 0, 0, 0, 0]


def test_ten_paths_per_start_are_nearly_enough() -> None:
    found = [exact_maze.path_row(maze(), 10, seed) for seed in range(10)]
    assert np.mean([r["iou"] for r in found]) >= 0.96
    assert all(r["wrong_and_visited"] == 0 for r in found)
    assert np.mean([r["iou"] for r in found]) > np.mean([r["iou_regression"] for r in found])


def test_one_task_or_ten_put_together_shut_tasks_out(tmp_path: Path) -> None:
    impossible = {r["constraint"]: r["impossible"] for r in rows(tmp_path, "one_task_alone")}
    assert impossible["task 0"] > 5
    assert impossible["average"] > 5
    assert impossible["maximum"] > 5
    assert impossible["multi-task, last"] == 0


def test_entropy_forbids_everything_that_was_not_taken(tmp_path: Path) -> None:
    found = rows(tmp_path, "entropy", temperatures=[0.0, 0.05, 2.0])
    assert found[0]["forbidden"] < found[0]["not_taken"]  # a deterministic learner does not
    assert all(r["forbidden"] == r["not_taken"] for r in found[1:])


@pytest.mark.parametrize("paths", [None, 3])
def test_what_is_covered_succeeds_and_what_fails_was_said(paths: int | None) -> None:
    """Three of the 120 ways here; `ringfence reproduce grid` goes through all."""
    world = maze()
    attempts = Attempts(world, (*world.starts, *STARTS))
    for n, way in enumerate(((1, 4, 8), (0, 5, 9), (7, 8, 9))):
        for row in exact_maze.one_way(attempts, way, STARTS, paths, n):
            assert row["covered_success"] == row["covered_safe"] == row["covered"] > 0
            if row["unknown"] == "avoid":
                assert row["uncovered_success"] == 0
                assert row["uncovered_safe"] == row["uncovered"]
            if way == (7, 8, 9):  # edge goals that nobody walked to, from both known starts
                assert row["uncovered"] >= 6


def test_a_suggested_demonstration_settles_more_than_a_random_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = exact_maze.asking(study_of(tmp_path, {}, mazes=5))
    totals = {r["asked"]: r for r in found.rows if r["maze"] == "all"}
    assert totals["suggested"]["settled"] >= totals["random"]["settled"]
    each = [r for r in found.rows if r["maze"] != "all" and r["asked"] == "suggested"]
    assert totals["suggested"]["settled"] == sum(r["settled"] for r in each)
    assert found.facts["unknown"] == sum(r["unknown"] for r in each)
