"""What lies on the cells of a map and of a floor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.table import TableConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour, Feature
from ringfence.report.cells import Cells, make_cells
from ringfence.worlds.sim.floor import FEATURES, Layout, flag
from saved_constraints import CELLS, random_network


def cells(kind: str = "map", **more: Any) -> Cells:
    view = {"kind": kind, "columns": [0, 1], "shape": [2, 3], "starts": [[0, 0]],
            "goals": [[1, 2], [0, 2]], "walls": [[0, 1, 0], [0, 0, 0]], **more}  # fmt: skip
    return make_cells(view, ())


def test_a_path_ends_where_it_comes_to_rest() -> None:
    phi = np.array([[0, 0], [1, 0], [1, 0], [1, 1], [1, 1], [1, 1]], float)
    assert cells().path(phi).tolist() == [[0, 0], [1, 0], [1, 0], [1, 1]]
    assert cells().path(phi[-1:]).tolist() == [[1, 1]]


def test_a_path_that_leaves_the_map_is_of_another_run() -> None:
    with pytest.raises(InvalidInput, match="leaves the map of 2 x 3 cells"):
        cells().path(np.array([[0.0, 3.0]]))


def test_visits_are_counted_by_cell() -> None:
    features = np.array([[0.0, 0.0], [1.0, 2.0], [1.0, 2.0]])
    table = cells().visits(Behaviour(features, np.array([1.0, 0.5, 0.25]), 0, 0, 2, None))
    assert table.tolist() == [[1, 0, 0], [0, 0, 0.75]]
    xy = np.array([[-5.0, 3.0], [-4.5, 1.0], [99.0, 0.0]])  # the last is outside
    table = cells("floor").visits(Behaviour(xy, np.ones(3), 0, 0, 3, 1))
    assert table.tolist() == [[2, 0, 0], [0, 0, 0]]


def test_tables_and_inequalities_are_drawn_on_a_map() -> None:
    values = np.array([[0.0, 0.5, 0], [0, 0, 1]])
    learned = cells().over(TableConstraint(CELLS, values))
    assert (learned.cost == values).all()
    assert (learned.forbidden == (values > 0)).all()
    right = cells().over(LinearConstraint(CELLS, np.array([0.0, 1.0]), 1.0))
    assert right.forbidden.tolist() == [[False, False, True]] * 2
    with pytest.raises(InvalidInput, match="the map has"):
        cells(shape=[3, 2], walls=None, goals=[]).over(TableConstraint(CELLS, values))


def test_states_in_a_row_are_a_map_too() -> None:
    row = cells(columns=[0], shape=[1, 4], goals=[], walls=None)
    learned = row.over(TableConstraint((Feature("state", "1"),), np.array([0, 0, 1.0, 0])))
    assert learned.forbidden.tolist() == [[False, False, True, False]]
    assert row.path(np.array([[1.0], [2.0]])).tolist() == [[0, 1], [0, 2]]


def test_a_floor_is_flagged_as_the_planner_does() -> None:
    c, layout = random_network(features=FEATURES), Layout((2, 3))
    learned = cells("floor").over(c)
    assert (learned.forbidden == flag(c, layout)).all()


def test_places_on_a_floor_are_in_its_cells() -> None:
    floor, layout = cells("floor"), Layout((2, 3))
    for cell in np.ndindex(layout.shape):
        xy = layout.centre(cell)[None]
        np.testing.assert_allclose(floor.places(xy), np.array([cell]) + 0.5)
    assert floor.path(np.array([[-4.0, 2.0], [-3.9, 2.0], [0.0, 2.0]])).tolist() == [[0, 0], [0, 1]]


def test_goals_belong_to_tasks_by_name_or_by_order() -> None:
    assert cells().task_of((0, 2), ["goal (0,2)"]) == 0
    assert cells().task_of((1, 2), ["goal (0,2)"]) is None
    assert cells().task_of((0, 2), ["first", "second"]) == 1


def test_letters_are_the_text_map_s_or_numbers() -> None:
    assert cells().letters == {(0, 0): "S", (1, 2): "0", (0, 2): "1"}
    view = {"kind": "map", "columns": [0, 1], "shape": [1, 2], "starts": [[0, 0]],
            "goals": [[0, 1]], "walls": None}  # fmt: skip
    assert make_cells(view, ["S7"]).letters == {(0, 0): "S", (0, 1): "7"}
