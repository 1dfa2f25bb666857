from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_study import study_of

from ringfence.reproduce import run
from ringfence.reproduce.ant_walks import maze_course, never_seen, scores, violations_text
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import maze

PAPER = {"iou": [0.898], "violation": [311.8], "reward": [15.3]}
#: Two tasks around a wall, one walk each.
SMALL = """
about = "a small maze for the Ant"
kind = "game"

[base]
demonstrations = { paths = 1, heldout = 1 }
game.iterations = 2
solver.episodes = 1
player.network = { steps = 300, batch = 64, hidden = [16] }

[base.world]
kind = "ant-maze"
map = ["S.0", ".#.", "..1"]

[variants.restricted]

[[table]]
rows = "maze_course"
columns = [["i", "iteration"], ["iou", "IoU", ".3f"]]
[table.options]
variant = "restricted"
paper = { iou = [0.9, 0.9], violation = [1.0, 1.0], reward = [1.0, 1.0] }

[[table]]
rows = "walks_of_one_task"
options.iterations = 1
columns = [["constraint", "constraint"], ["impossible", "impossible"]]

[[table]]
rows = "walks_never_seen"
options = { left_out = [[1]], new_starts = [[2, 0]] }
where = { goal = "all" }
columns = [["trained", "trained on"], ["said", "said"], ["{arrived}/{episodes}", "arrived"]]

[[figure]]
draw = "evidence"
file = "evidence.png"

[[figure]]
draw = "maze_curves"
file = "curves.png"
"""


def iteration(i: int, iou: float, cost: float) -> dict[str, Any]:
    where = {"task": "goal (0,9)", "episode": 3, "where": "(5,4) 2 steps; 0.10 m deep"}
    return {
        "i": i,
        "updated": {"iou": iou},
        "learner_true_cost_mean": cost,
        "learner_reward_mean": 9.0,
        "expert_reward_mean": 9.1,
        "expert_true_cost_mean": 0.0,
        "expert_cost": [0.1, 0.4],
        "episodes": {"arrived": 198, "fell": 1, "late": 1},
        "reused": [None, 1],
        "violations": [] if cost == 0 else [where],
    }


def test_the_truth_scores_full_marks_and_a_full_map_makes_everything_impossible() -> None:
    world = AntMaze(maze())
    assert scores(world, world.truth.walls) == {"iou": 1.0, "impossible": 0}
    assert scores(world, np.ones(world.grid.shape, np.bool_))["impossible"] == 10


def test_the_course_has_means_and_standard_errors(tmp_path: Path) -> None:
    seeds = {
        n: {"seed": n, "iterations": [iteration(1, *figures)]}
        for n, figures in enumerate([(0.9, 300.0), (1.0, 310.0)])
    }
    found = maze_course(study_of(tmp_path, {"a": seeds}, variant="a", paper=PAPER))
    (row,) = found.rows
    assert (row["iou"], row["iou_se"]) == (pytest.approx(0.95), pytest.approx(0.05))
    assert (row["violation"], row["violation_se"]) == (305.0, 5.0)
    assert (row["arrived"], row["fell_or_late"], row["reused"], row["expert_cost"]) == (
        396, 4, 2, 0.4,
    )  # fmt: skip
    assert row["paper_violation"] == 311.8
    assert found.facts["expert_true_cost"] == "0.000 ± 0.000"
    assert maze_course(study_of(tmp_path, {}, variant="none", paper=PAPER)).rows == []


def test_violations_from_iteration_two_on_are_listed() -> None:
    good = {"seed": 0, "iterations": [iteration(1, 0.9, 300.0), iteration(2, 1.0, 0.0)]}
    assert violations_text([good]) == "No trajectory of any seed violates from iteration 2 on."
    bad = {"seed": 1, "iterations": [iteration(1, 0.9, 300.0), iteration(2, 1.0, 2.0)]}
    assert "seed 1, iteration 2, goal (0,9), episode 3: (5,4) 2 steps" in violations_text(
        [good, bad]
    )


def test_unseen_tasks_are_counted_by_what_was_said_before() -> None:
    walk = {"trained": "all", "goal": [0, 9], "start": [7, 3], "episodes": 10}
    rows = never_seen(
        [
            {**walk, "covered": True, "arrived": 10, "true_cost": 0.0},
            {**walk, "covered": True, "arrived": 9, "true_cost": 0.0},
            {**walk, "covered": False, "arrived": 10, "true_cost": 2.5},
        ]
    )
    covered, uncovered = rows[3:]
    assert (covered["said"], covered["pairs"], covered["arrived"]) == ("covered", 2, 19)
    assert (covered["worst"], uncovered["true_cost"]) == (0.9, 2.5)
    assert rows[0]["goal"] == "(0,9)"


@pytest.mark.slow
def test_a_small_maze_from_nothing_to_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    out = run("small.toml", say=lambda line: None)
    rows = json.loads((out / "table.json").read_text())
    maps = [r for r in rows if r["table"] == "walks_of_one_task"]
    assert [r["constraint"] for r in maps] == [
        "task 0", "task 1", "average", "maximum", "multi-task, 1 iteration", "multi-task, last",
    ]  # fmt: skip
    walks = [r for r in rows if r["table"] == "walks_never_seen" and r["goal"] != "all"]
    assert len(walks) == 1 + 2
    assert {r["said"] for r in walks} <= {"covered", "uncovered"}
    for name in ("evidence.png", "curves.png"):
        assert (out / name).stat().st_size > 5_000
    before = (out / "table.json").read_bytes()
    run("small.toml", say=lambda line: None)
    assert (out / "table.json").read_bytes() == before
