"""Planning that keeps to known cells: the constraint's cost, and 1 where nothing is known."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.constraints.avoiding import Avoiding
from ringfence.constraints.linear import parse_inequality
from ringfence.constraints.table import TableConstraint
from ringfence.objects import Feature

CELLS = (Feature("row", "cell"), Feature("col", "cell"))
TABLE = TableConstraint(CELLS, np.array([[0.0, 0.4], [0.8, 0.0]]))
ALLOWED = np.array([True, True, False, False])  # of the states, in the cells' order
EVERY = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def index(phi: np.ndarray) -> np.ndarray:
    """Cells in order, -1 outside."""
    inside = ((phi >= 0) & (phi <= 1)).all(axis=1)
    return np.where(inside, 2 * phi[:, 0] + phi[:, 1], -1).astype(np.intp)


def test_unknown_cells_cost_1_and_known_ones_what_the_constraint_says() -> None:
    c = Avoiding(TABLE, ALLOWED, index)
    assert c.cost(EVERY).tolist() == [0.0, 0.4, 1.0, 1.0]
    assert c.raw(EVERY).tolist() == [0.0, 0.4, 1.0, 1.0]
    assert c.features == CELLS


def test_outside_all_cells_nothing_is_known() -> None:
    beyond = np.array([[5.0, 0.0]])
    line = parse_inequality("row <= 9", CELLS)
    assert Avoiding(line, np.ones(4, bool), index).cost(beyond).tolist() == [1.0]
    assert Avoiding(line, np.ones(4, bool), index).cost(EVERY).tolist() == [0.0] * 4


def test_a_cost_above_1_is_not_lowered() -> None:
    line = parse_inequality("row <= -10", CELLS)
    c = Avoiding(line, ALLOWED, index)
    assert c.cost(EVERY) == pytest.approx(line.cost(EVERY))
    np.testing.assert_array_equal(c.activate(np.array([-1.0, 2.0])), line.activate([-1.0, 2.0]))


def test_it_says_that_it_keeps_to_known_cells() -> None:
    words = Avoiding(TABLE, ALLOWED, index).describe()
    assert words.startswith(TABLE.describe())
    assert words.endswith("within cells that demonstrations showed to be allowed")
