"""What labels say beside the truth: the figures, and a whole game with exact learners."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_study import study_of

from ringfence.analysis.evidence.result import ALLOWED, IMPLICATED, PROVEN, UNKNOWN
from ringfence.analysis.evidence.sampled import Conflict, SampledEvidence
from ringfence.constraints.cell_grid import Grid
from ringfence.constraints.written import parse_constraint
from ringfence.objects import Array, Feature
from ringfence.reproduce import experiment, shared_labels, shared_point
from ringfence.reproduce.demonstrate import configuration
from ringfence.reproduce.point_demonstrators import demonstrations
from ringfence.reproduce.rows import Rows
from ringfence.reproduce.shared_labels import Asked, holding, in_small, settled, soundness, straight
from ringfence.runs import driver
from ringfence.runs.config import make_world
from ringfence.runs.folder import quiet

XY = (Feature("x", "m"), Feature("y", "m"))
GRID = Grid((0, 1), np.zeros(2), np.ones(2), (6, 1))
TRUTH = parse_constraint("outside disc(x, y) at (2.9, 0.5) of radius 0.2", XY)  # cells 2 and 3


def evidence(labels: list[int], *sets: tuple[int, ...]) -> SampledEvidence:
    conflicts = tuple(
        Conflict(s, (), (1.0,) * len(s), "t", "w", 1.0, 0.0, np.zeros((1, 2))) for s in sets
    )
    flat = np.array(labels, np.int8)
    return SampledEvidence(GRID, XY, flat, np.zeros(6, np.intp), conflicts, (), (), 0.0, 0.0, 1, 2)


def test_a_cell_holds_a_forbidden_point_where_a_corner_of_it_is_forbidden() -> None:
    assert holding(GRID, TRUTH).tolist() == [False, False, True, True, False, False]


def test_free_proven_cells_and_conflicts_without_a_forbidden_point_are_counted() -> None:
    found = evidence([ALLOWED, PROVEN, PROVEN, *[UNKNOWN] * 3], (1,), (2,), (1, 4, 5), (3, 4))
    assert soundness(found, holding(GRID, TRUTH)) == {
        "proven": 2,
        "proven_free": 1,
        "conflict_sets": 4,
        "conflicts_without_forbidden": 2,
    }


def test_forbidden_cells_that_learners_crossed_are_by_their_middles_and_small_is_five() -> None:
    truth = parse_constraint("x <= 2", XY)  # 2, 3, 4 and 5 are forbidden
    crossed = np.array([[0.1, 0.0], [2.1, 0.0], [2.2, 0.0], [4.5, 0.0]])
    six = evidence([UNKNOWN] * 6, (0, 1, 2, 3, 4, 5), (1, 2))
    assert in_small(six, truth, crossed) == {"crossed_forbidden": 2, "crossed_in_small": 1}


def test_a_demonstration_settles_what_it_allows_and_the_better_way_that_it_does_not_take() -> None:
    def way(*x: float) -> Array:
        return np.array([[at, 0.5] for at in x])

    found = evidence([ALLOWED, IMPLICATED, UNKNOWN, UNKNOWN, PROVEN, UNKNOWN])
    around = Asked(way(0.5, 1.5, 5.5), -2.0, way(0.5, 2.5, 3.5, 4.5, 5.5), -1.0)
    assert settled(found, around) == 4  # 1 and 5, 2 and 3
    as_good = replace(around, could=-2.0)
    assert settled(found, as_good) == 2


def test_who_goes_straight_goes_as_fast_as_it_can_and_stays() -> None:
    found = straight(np.array([0.0, 0.0]), np.array([0.3, -0.15]), 5)
    assert found == pytest.approx(
        np.array([[0.1, -0.05], [0.2, -0.1], [0.3, -0.15], [0.3, -0.15], [0.3, -0.15]])
    )
    assert (straight(np.ones(2), np.ones(2), 3) == 1).all()


def test_a_row_is_a_game_at_a_size_of_cells_and_a_game_without_labels_has_nulls(
    tmp_path: Path,
) -> None:
    two: Rows = [{"cells": n, **dict.fromkeys(shared_labels.COLUMNS, 1)} for n in ("a", "b")]
    summaries: dict[int, dict[str, Any]] = {0: {"labels": two}, 1: {}}
    rows = shared_labels.shared_labels(study_of(tmp_path, {"v": summaries}, seeds=3)).rows
    own = [(row["seed"], row["cells"], row.get("proven")) for row in rows if row["seed"] != "mean"]
    assert sorted(own, key=str) == [(0, "a", 1), (0, "b", 1), (1, None, None), (2, None, None)]
    assert [row["status"] for row in rows if row["seed"] == 2] == ["not run"]


# A game ------------------------------------------------------------------------------------------

PLANNER = {
    "solver": {"kind": "point_planner:make_solver"},
    "opening": {"kind": "none", "initial": "free"},
}


def labelled(place: Path, name: str, noise: float, below: float, slack: float) -> Rows:
    file = experiment.read("multitask")
    settings = {**file.variants[name].settings, **PLANNER}
    settings["analysis"] = {**settings["analysis"], "slack": slack, "resamples": 0}
    kwargs = {**settings["world"]["kwargs"], "noise": noise}
    settings["world"] = {**settings["world"], "kwargs": kwargs}
    variant = replace(file.variants[name], settings=settings)
    config = configuration(file, variant, 0)
    world: Any = make_world(config.world)
    truth = parse_constraint(variant.get("training")["constraint"], world.features)
    shown = demonstrations(world, truth, 0, config.demos.heldout, below)
    driver.create(place / "run", config, shown)
    driver.drive(place / "run")
    return shared_point.labelled(place / "run", world, truth, 0, 1, quiet)


@pytest.mark.parametrize(
    ("noise", "below", "slack"), [(0.0, 0.0, 0.01), (0.0, 0.1, 0.1), (0.02, 0.0, 0.01)]
)
def test_no_proven_cell_is_free_and_every_conflict_holds_a_forbidden_point_at_both_sizes(
    tmp_path: Path, noise: float, below: float, slack: float
) -> None:
    rows = labelled(tmp_path, "table-2", noise, below, slack)
    assert [row["cells"] for row in rows] == [
        "table(x by 0.1, y by 0.1)",
        shared_labels.OTHER_CELLS,
    ]
    for row in rows:
        assert row["proven_free"] == row["conflicts_without_forbidden"] == 0
        assert row["conflict_sets"] > 3
    assert 2 * rows[1]["crossed_in_small"] >= rows[1]["crossed_forbidden"] > 0
    ledgers = [
        {p.name for p in (tmp_path / run / "ledger").iterdir()} for run in ("run", "run-relabelled")
    ]
    assert ledgers[0] == ledgers[1]  # nothing was solved for the other size
