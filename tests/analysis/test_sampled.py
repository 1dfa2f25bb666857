"""The record of labels over continuous features: as JSON and back, in words, refused if altered."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from crossing_world import FEATURES, STEPS, nowhere, random_crossing
from ringfence.analysis.evidence.sampled import SampledEvidence, cells_of, from_json
from ringfence.analysis.evidence.witnessed import label
from ringfence.analysis.evidence.witnesses import Shown, Tried
from ringfence.constraints.cell_grid import Grid, around
from ringfence.errors import InvalidInput


@pytest.fixture(scope="module")
def found() -> SampledEvidence:
    world = random_crossing(0)
    demos = world.episodes(world.forbidden, 6, 1)
    grid = around(np.concatenate([t.features for t in demos]), (0, 1), [0.5, 0.5])
    free = Tried(0, "the free learner", world.episodes(nowhere, 6, 2))
    few = Shown("too few", STEPS, demos[:1])
    return label(grid, FEATURES, [Shown("cross", STEPS, demos), few], [free])


def test_it_is_read_back_as_it_was_written(found: SampledEvidence) -> None:
    written = json.loads(json.dumps(found.to_json(), allow_nan=False))
    again = from_json(written)
    assert json.loads(json.dumps(again.to_json())) == written
    assert again.counts() == found.counts()
    assert again.counts()["implicated"] > 0
    assert np.array_equal(again.m, found.m)
    assert again.statements[1].bar == np.inf  # of a single demonstration
    assert again.sentences() == found.sentences()


def test_every_label_has_its_reason_in_words(found: SampledEvidence) -> None:
    cell = int(np.flatnonzero(found.implicated)[0])
    said = found.why(cell)
    assert f"is implicated (m = at most {found.m[cell]}): on cross, the free learner earns" in said
    assert "is allowed: a demonstrator was there" in found.why(
        int(np.flatnonzero(found.allowed)[0])
    )
    assert "is unknown" in found.why(int(np.flatnonzero(found.unknown)[0]))
    assert any("too few: 1 demonstrations say too little" in text for text in found.sentences())


def test_cells_are_numbered_row_by_row_and_named_in_units() -> None:
    grid = Grid((1,), np.array([0.0]), np.array([2.0]), (3,))
    assert cells_of(grid, np.array([[9.0, -5.0], [9.0, 3.0], [9.0, 99.0]])).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 7},
        {"grid": {}},
        {"labels": {"allowed": [10**9]}},
        {"labels": {"certain": [1]}},
        {"m": [1] * 999},
        {"features": [["x", "m"]]},
        {"conflicts": [{"cells": [0]}]},
    ],
)
def test_what_was_not_written_like_this_is_refused(
    found: SampledEvidence, change: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match="evidence"):
        from_json({**found.to_json(), **change})
