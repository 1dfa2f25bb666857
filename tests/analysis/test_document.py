"""evidence.json: labels, reasons, the constraint beside them, what to ask for next."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence import Evidence, Group
from ringfence.analysis.evidence.document import SUGGESTIONS, document, read, suggestions
from ringfence.constraints.table import TableConstraint
from ringfence.errors import InvalidInput
from ringfence.experts.optimal import make_demonstrations
from ringfence.worlds.grid import GridWorld, read_map

MAP = "S#0.\n....\n"


@pytest.fixture(scope="module")
def world() -> GridWorld:
    return read_map(MAP, horizon=8)


@pytest.fixture(scope="module")
def groups(world: GridWorld) -> list[Group]:
    demos = make_demonstrations(world)
    pairs = zip(world.tasks, demos.tasks, strict=True)
    return [g for task, d in pairs for g in evidences.groups_of(task, d.train)]


@pytest.fixture(scope="module")
def found(groups: list[Group]) -> Evidence:
    return evidences.label(groups)


def walls(world: GridWorld) -> TableConstraint:
    return TableConstraint(world.features, world.truth.walls.astype(float))


@pytest.fixture(scope="module")
def written(world: GridWorld, groups: list[Group], found: Evidence) -> dict[str, Any]:
    return document(found, groups, walls(world), world.cells)


def test_it_reads_back_to_the_same_labels(
    written: dict[str, Any], found: Evidence, tmp_path: Path
) -> None:
    path = tmp_path / "evidence.json"
    path.write_text(json.dumps(written))
    again = read(path)
    assert again.to_json() == found.to_json()
    np.testing.assert_array_equal(again.allowed, found.allowed)


def test_every_cell_has_its_reason(written: dict[str, Any], found: Evidence) -> None:
    assert len(written["why"]) == len(found.labels) == 8
    assert all(written["why"])
    assert written["sentences"]


def test_the_constraint_stands_beside_the_labels(written: dict[str, Any], found: Evidence) -> None:
    """The wall is proven by those who went around it, and the constraint confirms it."""
    proven = [list(map(int, np.unravel_index(s, (2, 4)))) for s in np.flatnonzero(found.proven)]
    assert proven == [[0, 1]]
    assert written["relation"]["confirmed"] == [[0, 1]]
    assert written["relation"]["contradicted"] == []


def test_what_to_ask_for_next_is_from_known_cells_to_unknown_ones(
    written: dict[str, Any], found: Evidence
) -> None:
    assert found.unknown.any()
    assert 0 < len(written["next"]) <= SUGGESTIONS
    for one in written["next"]:
        assert found.allowed[4 * one["start"][0] + one["start"][1]]
        assert one["cells"]
    scores = [one["score"] for one in written["next"]]
    assert scores == sorted(scores, reverse=True)


def test_nothing_unknown_leaves_nothing_to_ask(world: GridWorld, found: Evidence) -> None:
    labels = np.where(found.unknown, evidences.ALLOWED, found.labels)
    sure = replace(found, labels=labels)
    assert suggestions(sure, np.zeros(8, bool), world.cells) == []


def test_a_world_without_goals_to_go_to_is_asked_for_other_starts(
    world: GridWorld, found: Evidence
) -> None:
    cells = replace(world.cells, towards=None)
    for one in suggestions(found, np.zeros(8, bool), cells):
        assert one.task in {task.name for task in world.tasks}


@pytest.mark.parametrize("text", ["", "{}", '{"evidence": {}}', "[1]"])
def test_a_broken_file_says_how_to_make_it_again(text: str, tmp_path: Path) -> None:
    path = tmp_path / "evidence.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"'ringfence resume .*' makes it again"):
        read(path)
    with pytest.raises(InvalidInput, match="can't be read"):
        read(tmp_path / "none.json")
