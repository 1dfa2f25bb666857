"""The shared constraint among obstacles: demonstrators, and how an answer is compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringfence.constraints.written import parse_constraint
from ringfence.objects import Constraint, Feature
from ringfence.reproduce import experiment, shared_point
from ringfence.reproduce.demonstrate import configuration
from ringfence.reproduce.point_demonstrators import axis as places_of_axis
from ringfence.reproduce.point_demonstrators import best_moves, demonstrations
from ringfence.reproduce.shared_point import figures, floor_cells
from ringfence.runs.config import make_world

XY = (Feature("x", "m"), Feature("y", "m"))
STEPS = 60


@pytest.fixture(scope="module")
def truth() -> Constraint:
    variant = experiment.read("multitask").variants["table-2"]
    return parse_constraint(variant.get("training")["constraint"], XY)


def test_demonstrators_keep_to_the_truth_and_reach_their_goals(truth: Constraint) -> None:
    file = experiment.read("multitask")
    world: Any = make_world(configuration(file, file.variants["table-2"], 0).world)
    shown = demonstrations(world, truth, 0, 0.3)
    assert [(len(d.train), len(d.heldout)) for d in shown.tasks] == [(42, 18)] * 2
    for task, demos in zip(world.tasks, shown.tasks, strict=True):
        for _, t in demos.labelled:
            assert truth.cost(t.features).max() == 0
            assert np.linalg.norm(t.features[-1] - task.kwargs["goal"]) < 0.02


def test_a_free_way_is_straight_and_takes_the_fewest_steps() -> None:
    nothing = parse_constraint("x <= 9", XY)
    moves = best_moves((0.81, 0.81), nothing, STEPS)
    at = np.array([10, 10])  # -0.79, -0.79: sixteen moves of 0.1 m along both axes
    for t in range(16):
        assert moves[t][tuple(at)].tolist() == [5, 5]
        at = at + moves[t][tuple(at)]
    assert at.tolist() == [90, 90]


def test_no_other_move_is_better_than_the_plan_s_over_few_steps(truth: Constraint) -> None:
    goal, steps = np.array([0.81, 0.21]), 2
    moves, axis = best_moves(goal, truth, steps), places_of_axis()
    start = np.array([47, 52])
    every = [(i, j) for i in range(-5, 6) for j in range(-5, 6)]

    def worth(path: list[tuple[int, int]]) -> float:
        at, total = start, 0.0
        for move in path:
            at = at + move
            point = axis[at]
            if truth.raw(point[None])[0] >= 0:
                return -np.inf
            total -= float(np.linalg.norm(point - goal))
        return total

    first = tuple(moves[0][tuple(start)].tolist())
    second = tuple(moves[1][tuple(start + moves[0][tuple(start)])].tolist())
    best = max(worth([a, b]) for a in every for b in every)
    assert worth([first, second]) == pytest.approx(best)


def test_recall_and_precision_are_shares_of_cells() -> None:
    true, found = np.array([1, 1, 1, 0, 0], bool), np.array([1, 1, 0, 1, 0], bool)
    assert figures(found, true) == {"iou": 0.5, "recall": 2 / 3, "precision": 2 / 3}
    assert figures(np.zeros(5, bool), true)["precision"] is None
    assert len(floor_cells()) == 400


def test_the_error_of_shapes_is_in_the_sizes_of_the_obstacles(truth: Constraint) -> None:
    text = (
        "outside box(x, y) from (-0.43, -0.78) to (-0.12, -0.32) or disc(x, y) at (0.3, -0.103) of "
        "radius 0.3 or disc(x, y) at (-0.3, 0.35) of radius 0.303"
    )
    error = shared_point.shapes_error(parse_constraint(text, XY), truth)
    assert error == pytest.approx(0.01 / 0.3)
    assert shared_point.shapes_error(truth, truth) == 0
    disc = parse_constraint("outside disc(x, y) at (0.3, -0.1) of radius 0.3", XY)
    assert shared_point.shapes_error(disc, truth) is None


def test_means_are_over_what_is_known() -> None:
    rows = [{"iou": 0.5, "recall": None}, {"iou": 1.0, "recall": None}]
    assert shared_point.means(rows) == {"iou": 0.75, "recall": None}
