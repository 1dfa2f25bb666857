"""Which demonstration to ask for: straight ways through unknown cells."""

from __future__ import annotations

import numpy as np

from crossing_world import FEATURES, HIGH, WIDTH
from ringfence.analysis.evidence.ask import straight, wishes
from ringfence.analysis.evidence.result import ALLOWED, IMPLICATED, PROVEN, UNKNOWN
from ringfence.analysis.evidence.sampled import SampledEvidence, cells_of
from ringfence.constraints.cell_grid import Grid
from ringfence.objects import Array

SHAPE = (5, 5)
GRID = Grid((0, 1), np.zeros(2), np.ones(2), SHAPE)


def labelled(labels: Array, grid: Grid = GRID) -> SampledEvidence:
    flat = labels.astype(np.int8).ravel()
    m = (flat == IMPLICATED).astype(np.intp) * 2
    return SampledEvidence(grid, FEATURES, flat, m, (), (), (), 0.0, 0.0, 0, 0)


def test_a_straight_line_has_each_cell_once() -> None:
    assert straight(0, 24, SHAPE).tolist() == [0, 6, 12, 18, 24]
    assert straight(0, 0, SHAPE).tolist() == [0]
    assert straight(2, 10, SHAPE).tolist() == [2, 6, 10]


def test_the_best_wish_passes_most_unknown_cells_and_nothing_forbidden() -> None:
    labels = np.full(SHAPE, UNKNOWN)
    labels[:, 0] = ALLOWED
    everywhere, nothing = np.ones(25, np.bool_), np.zeros(25, np.bool_)
    first = wishes(labelled(labels), np.array([0]), everywhere, nothing, 3)
    assert len(first[0].cells) == 4
    assert len({w.goal for w in first}) == len(first)
    labels[:, 1] = PROVEN
    assert wishes(labelled(labels), np.array([0]), everywhere, nothing, 3) == []
    labels[:, 1] = IMPLICATED
    assert wishes(labelled(labels), np.array([0]), everywhere, nothing, 3)
    forbidden = (labels == IMPLICATED).ravel()
    assert wishes(labelled(labels), np.array([0]), everywhere, forbidden, 3) == []


def test_nobody_is_asked_to_go_beyond_what_was_met() -> None:
    labels = np.full(SHAPE, UNKNOWN)
    labels[0, 0] = ALLOWED
    met = np.zeros(SHAPE, np.bool_)
    met[:3, :2] = True
    found = wishes(labelled(labels), np.array([0]), met.ravel(), np.zeros(25, np.bool_), 5)
    assert {np.unravel_index(w.goal, SHAPE) for w in found} <= set(np.ndindex(3, 2))


def asked(seed: int) -> tuple[int, float]:
    """After four straight walks from the left edge: how many unknown cells the suggested way
    settles, and how many one to a random cell does. A demonstrator allows them, or goes around, and
    then they are in the conflict of the straight witness."""
    rng = np.random.default_rng(seed)
    grid = Grid((0, 1), np.array([0.0, -HIGH]), np.full(2, 0.25), (24, 24))
    labels = np.full(grid.shape, UNKNOWN).ravel()
    for goal in rng.uniform(-HIGH, HIGH, 4):
        ends = cells_of(grid, np.array([[0.1, 0.0], [WIDTH - 0.1, goal]]))
        labels[straight(int(ends[0]), int(ends[1]), grid.shape)] = ALLOWED
    evidence, nothing = labelled(labels, grid), np.zeros(len(labels), np.bool_)
    starts = cells_of(grid, np.array([[0.1, 0.0]]))
    goals = rng.choice(len(labels), 60)
    random = [evidence.unknown[straight(int(starts[0]), int(g), grid.shape)].sum() for g in goals]
    best = wishes(evidence, starts, ~nothing, nothing, 1)[0]
    return len(best.cells), float(np.mean(random))


def test_the_suggested_way_settles_twice_as_many_cells_as_a_random_one() -> None:
    suggested, usual = np.sum([asked(seed) for seed in range(10)], axis=0)
    assert suggested >= 2 * usual
