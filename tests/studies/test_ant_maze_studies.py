from __future__ import annotations

import numpy as np

from ringfence.studies.ant_maze import scores
from ringfence.studies.ant_maze_tables import (
    course_table,
    unseen_table,
    violations_text,
)
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import maze


def iteration(i: int, iou: float, cost: float) -> dict[str, object]:
    return {
        "i": i,
        "updated": {"iou": iou},
        "learner_true_cost_mean": cost,
        "learner_reward_mean": 9.0,
        "expert_reward_mean": 9.1,
        "expert_cost": [0.1, 0.4],
        "episodes": {"arrived": 198, "fell": 1, "late": 1},
        "reused": [None, 1],
        "violations": []
        if cost == 0
        else [{"task": "goal (0,9)", "episode": 3, "where": "(5,4) 2 steps; 0.10 m deep"}],
    }


def test_the_truth_scores_full_marks_and_a_full_map_makes_everything_impossible() -> None:
    world = AntMaze(maze())
    assert scores(world, world.truth.walls) == {"iou": 1.0, "impossible": 0}
    everything = np.ones(world.grid.shape, np.bool_)
    assert scores(world, everything)["impossible"] == 10


def test_the_course_has_means_and_standard_errors() -> None:
    runs = [[iteration(1, 0.9, 300.0)], [iteration(1, 1.0, 310.0)]]
    line = course_table(runs).splitlines()[-1]
    assert "0.950 ± 0.050" in line
    assert "305.000 ± 5.000" in line
    assert "| 396 | 4 | 2 | 0.400 |" in line


def test_violations_from_iteration_two_on_are_listed() -> None:
    good = [iteration(1, 0.9, 300.0), iteration(2, 1.0, 0.0)]
    assert violations_text([good]) == ("No trajectory of any seed violates from iteration 2 on.")
    bad = [iteration(1, 0.9, 300.0), iteration(2, 1.0, 2.0)]
    assert "seed 1, iteration 2, goal (0,9), episode 3: (5,4) 2 steps" in violations_text(
        [good, bad]
    )


def test_unseen_tasks_are_counted_by_what_was_said_before() -> None:
    row = {"trained": "all", "episodes": 10, "violations": []}
    rows = [
        {**row, "covered": True, "arrived": 10, "true_cost": 0.0},
        {**row, "covered": True, "arrived": 9, "true_cost": 0.0},
        {**row, "covered": False, "arrived": 10, "true_cost": 2.5},
    ]
    covered, uncovered = unseen_table(rows).splitlines()[2:]
    assert covered == "| all | covered | 2 | 19/20 | 90% | 0 |"
    assert uncovered == "| all | uncovered | 1 | 10/10 | 100% | 2.5 |"
