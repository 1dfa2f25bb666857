"""Table constraints: values, words, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.constraints.table import TableConstraint, visit_table
from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour, Feature
from ringfence.worlds.grid import maze

CELLS = (Feature("row", "cell"), Feature("col", "cell"))


def test_cost_is_the_cells_value() -> None:
    c = TableConstraint(CELLS, np.array([[0.0, 0.25], [1.0, 0.0]]))
    phi = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert c.cost(phi).tolist() == [1.0, 0.25, 0.0]
    assert c.forbidden.tolist() == [[False, True], [True, False]]


def test_description_names_the_blocks_of_cells() -> None:
    c = TableConstraint(CELLS, maze().truth.walls.astype(float))
    assert c.describe() == (
        "36 of 100 cells (row, col) forbidden: row 0-5 x col 2-4; row 4-9 x col 6-8"
    )
    assert "no cell" in TableConstraint(CELLS, np.zeros((2, 2))).describe()


def test_visits_add_up_per_cell() -> None:
    pi = Behaviour(np.array([[0.0, 1.0], [1.0, 1.0]]), np.array([2.0, 0.5]), 0, 0, 2.5, None)
    assert visit_table(pi, (2, 2)).tolist() == [[0, 2], [0, 0.5]]


@pytest.mark.parametrize("bad", [[[2.0]], [[-0.1]], [[np.nan]]])
def test_values_outside_the_range_are_refused(bad: list) -> None:
    with pytest.raises(InvalidInput, match=r"in \[0, 1\]"):
        TableConstraint(CELLS, np.array(bad))


def test_signed_tables_are_only_the_theorys() -> None:
    assert TableConstraint(CELLS, np.array([[-1.0]]), signed=True).values[0, 0] == -1


@pytest.mark.parametrize("phi", [[[0.5, 0.0]], [[-1.0, 0.0]], [[0.0, 2.0]], [[0.0]]])
def test_a_cell_that_is_not_there_is_refused(phi: list) -> None:
    with pytest.raises(InvalidInput):
        TableConstraint(CELLS, np.zeros((2, 2))).cost(np.array(phi))


def test_states_in_a_row_are_told_by_their_numbers() -> None:
    state = (Feature("state", "1"),)
    c = TableConstraint(state, np.array([0.0, 1.0, 1.0, 0.0, 1.0]))
    assert c.describe() == "3 of 5 cells (state) forbidden: state 1-2, 4"
