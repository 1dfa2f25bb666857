"""Labels of cells on a plane and along a line, and witnesses over them."""

from __future__ import annotations

import re

import numpy as np

from ringfence.analysis.evidence import ALLOWED, IMPLICATED, PROVEN, UNKNOWN
from ringfence.analysis.evidence.sampled import Conflict, SampledEvidence
from ringfence.constraints.cell_grid import Grid
from ringfence.objects import Array, Feature
from ringfence.report.draw.svg_labels import drawn_labels, witness_map

FEATURES = (Feature("x", "m"), Feature("y", "m"), Feature("z", "m"))


def labelled(
    labels: Array, path: Array, cells: tuple[int, ...]
) -> tuple[SampledEvidence, Conflict]:
    k = labels.ndim
    grid = Grid(tuple(range(k)), np.zeros(k), np.ones(k), labels.shape)
    conflict = Conflict(cells, (), (1.0,) * len(cells), "task", "w", 2.0, 1.0, path)
    flat = labels.ravel().astype(np.int8)
    m = (flat == IMPLICATED).astype(np.intp)
    return SampledEvidence(grid, FEATURES, flat, m, (conflict,), (), (), 0, 0, 1, 2), conflict


def tints(drawing: str) -> list[str]:
    return re.findall(r'class="tint (\w+)"', drawing)


def test_neighbours_with_one_label_are_one_rectangle() -> None:
    labels = np.full((4, 3), UNKNOWN)
    labels[:3, 0], labels[1, 1] = ALLOWED, IMPLICATED
    found, conflict = labelled(labels, np.array([[0.5, 0.5], [1.5, 1.5], [2.5, 0.5]]), (4,))
    drawing = str(witness_map(found, conflict, 0))
    assert tints(drawing) == ["allowed", "proven"]  # a conflict of one cell
    assert drawing.count("<animate") == 2
    sizes = [
        tuple(map(float, s)) for s in re.findall(r'width="([\d.]+)" height="([\d.]+)"', drawing)
    ]
    (wide, high), (narrow, same) = sizes[-2:]
    assert wide == 3 * narrow
    assert high == same


def test_along_a_line_the_witness_moves_in_time() -> None:
    labels = np.array([ALLOWED, ALLOWED, IMPLICATED, UNKNOWN])
    found, conflict = labelled(labels, np.array([[0.5], [1.5], [2.5]]), (2, 3))
    drawing = str(witness_map(found, conflict, 3))
    assert tints(drawing) == ["allowed", "implicated"]
    assert "share of the episode" in drawing
    assert 'id="witness-3"' in drawing


def test_of_cells_over_each_other_the_one_with_more_to_say_is_drawn() -> None:
    labels = np.full((2, 2, 3), UNKNOWN)
    labels[0, 0] = [ALLOWED, PROVEN, UNKNOWN]
    labels[0, 1] = [ALLOWED, IMPLICATED, UNKNOWN]
    labels[1, 0] = [UNKNOWN, ALLOWED, UNKNOWN]
    found, _ = labelled(labels, np.zeros((1, 3)), (0,))
    assert drawn_labels(found).tolist() == [[PROVEN, IMPLICATED], [ALLOWED, UNKNOWN]]
