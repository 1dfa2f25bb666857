"""Maps as SVG: what is drawn where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from parsed_pages import Page

from ringfence.report.cells import Learned
from ringfence.report.draw import svg_cells
from ringfence.report.read import Run, read_run


@pytest.fixture
def run(finished: Path) -> Run:
    return read_run(finished)


@pytest.fixture
def on_floor(floor: Path) -> Run:
    return read_run(floor)


def test_outline_is_as_long_as_the_border() -> None:
    region = np.zeros((3, 4), dtype=bool)
    region[0, :2] = region[2, 3] = True
    assert svg_cells.outline(region, "truth").count("M") == 6 + 4


def test_a_lower_cost_is_a_paler_hatch(run: Run) -> None:
    assert run.cells is not None
    cost = np.zeros(run.cells.shape)
    cost[0, 0], cost[0, 1] = 1.0, 0.5
    drawn = svg_cells.constraint_layer(run.cells, Learned(cost, cost > 0), run.learned[0], 1)
    got = Page(drawn)
    shades = [got.elements[n][1]["opacity"] for n in got.find("rect", class_="forbidden")]
    assert list(map(float, shades)) == [1.0, pytest.approx(0.68, abs=0.01)]  # type: ignore[arg-type]


def test_a_floor_has_the_network_s_line_and_the_walks(on_floor: Run) -> None:
    assert on_floor.cells is not None
    facts = {(r, c): [""] for r, c in np.ndindex(on_floor.cells.shape)}
    got = Page(svg_cells.run_map(on_floor, on_floor.cells, facts))
    assert got.find("path", class_="level")
    (layer,) = got.find("g", data_layer="paths")
    assert len(got.find("path", within=layer)) == len(on_floor.experts[0])


def test_letters_move_aside_for_starts_and_goals(run: Run) -> None:
    assert run.labels is not None
    implicated = {
        cell: replace(label, kind="implicated", m=3, exact=True)
        for cell, label in run.labels.cells.items()
    }
    drawn = svg_cells.evidence_letters(replace(run.labels, cells=implicated), {(0, 0): "S"})
    got = Page(drawn)
    texts = got.find("text", class_="implicated")
    assert all(got.texts[n] == "3" for n in texts)
    places = {got.elements[n][1]["x"] for n in texts}
    assert len(places) == run.labels.forbidden.shape[1] + 1  # columns, and one corner


def test_equal_paths_are_one_thicker_line(run: Run) -> None:
    assert run.cells is not None
    same = replace(run, experts=tuple((group[0],) * 3 for group in run.experts))
    facts = {(r, c): [""] for r, c in np.ndindex(run.cells.shape)}
    got = Page(svg_cells.run_map(same, run.cells, facts))
    for layer in got.find("g", data_layer="paths"):
        (line,) = got.find("path", within=layer)
        assert got.elements[line][1]["stroke-width"] == "2.3"


def test_shares_are_percentages(run: Run) -> None:
    share = np.zeros((4, 6))
    share[0, 0], share[0, 1] = 1.0, 1 / 3
    got = Page(svg_cells.share_map((4, 6), share, run.walls))
    assert [got.texts[n] for n in got.find("text", class_="share")] == ["33"]
    assert len(got.find("rect", class_="forbidden")) == 1


def test_an_ant_walks_its_path_and_waits_at_the_end(on_floor: Run) -> None:
    assert on_floor.cells is not None
    path = np.linspace([0.5, 0.5], [1.5, 0.5], 40)
    slow = np.repeat(path, 2, axis=0)
    learned, c = on_floor.maps[0], on_floor.learned[0]
    text = svg_cells.walking(on_floor.cells, learned, c, [path, slow], "walk")
    assert text.count("<circle ") == 2
    first, second = (part.split('"')[0].split(";") for part in text.split('values="')[2::2])
    assert first[0] == second[0] == "20"  # half a cell below the map's upper edge
    assert first[-1] == second[-1] == "60"
    assert first[len(first) // 2] == "60" != second[len(second) // 2]  # arrived; on its way


def test_large_maps_number_some_of_their_cells() -> None:
    got = Page(svg_cells.share_map((40, 40), np.zeros((40, 40)), None))
    assert len(got.find("text", class_="edge")) == 2 * 8
