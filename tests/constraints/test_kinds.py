"""Every kind goes into arrays and words and comes back; words that don't fit are refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ringfence.constraints.activated import Activated
from ringfence.constraints.cell_grid import CellConstraint, Grid
from ringfence.constraints.conjunction import Conjunction
from ringfence.constraints.kinds import build, taken_apart
from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.written import parse_constraint
from ringfence.errors import InvalidInput
from ringfence.objects import Constraint
from saved_constraints import CELLS, LINE, NETWORK, SEVERAL, TABLE

WIDE = LinearConstraint(CELLS, np.array([1.0, -2.0]), 0.5, scale=3.0, sense=">=")
ABSOLUTE = parse_constraint("|row - col| <= 1", CELLS)
GRID = CellConstraint(
    CELLS, Grid((1,), np.array([-0.5]), np.array([1.5]), (3,)), np.array([0.0, 1.0, 0.5])
)
REGION = parse_constraint(
    "outside disc(row, col) at (1, 1) of radius 1.5 or box(row, col) from (0, 0) to (3, 1)", CELLS
)
STEPS = Activated(ABSOLUTE, "steps")
COUNTED = Conjunction((Activated(WIDE, "amount"), STEPS))
POINTS = np.argwhere(np.ones((3, 4))).astype(float)


def document(c: Constraint) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """As it is after having been a file."""
    kind, arrays, words = taken_apart(c)
    return json.loads(json.dumps({"kind": kind, **words})), arrays


@pytest.mark.parametrize(
    "c", [TABLE, GRID, LINE, WIDE, NETWORK, ABSOLUTE, SEVERAL, REGION, STEPS, COUNTED]
)
def test_a_constraint_comes_back_the_same(c: Constraint) -> None:
    words, arrays = document(c)
    back = build(words, CELLS, arrays)
    assert type(back) is type(c)
    assert np.array_equal(back.raw(POINTS), c.raw(POINTS))
    assert np.array_equal(back.cost(POINTS), c.cost(POINTS))
    assert back.describe() == c.describe()


def test_a_plain_inequality_is_written_as_it_always_was() -> None:
    words, _ = document(LINE)
    assert set(words) == {"kind", "formula", "activation", "weights", "offset"}


def test_parts_that_do_not_belong_are_refused() -> None:
    words, arrays = document(SEVERAL)
    with pytest.raises(ValueError, match="belong to no part"):
        build(words, CELLS, {**arrays, "part9.weights": np.zeros(2)})
    first = words["parts"]["part0"]
    with pytest.raises(ValueError, match="1 parts"):
        build({**words, "parts": {"part0": first}}, CELLS, arrays)
    nested = {**words, "parts": {**words["parts"], "part0": words}}
    with pytest.raises(ValueError, match="'conjunction' inside 'conjunction'"):
        build(nested, CELLS, arrays)
    conditional, numbers = document(parse_constraint("row <= 1 while col <= 2", CELLS))
    other = {"limit": conditional["parts"]["limit"], "other": conditional["parts"]["condition"]}
    renamed = {k.replace("condition", "other"): a for k, a in numbers.items()}
    with pytest.raises(ValueError, match="a limit and a condition"):
        build({**conditional, "parts": other}, CELLS, renamed)


def test_a_cost_is_counted_once_and_in_a_known_way() -> None:
    words, arrays = document(STEPS)
    with pytest.raises(InvalidInput, match="'squares' is not known"):
        build({**words, "activation": "squares"}, CELLS, arrays)
    nested = {**words, "parts": {"of": words}}
    with pytest.raises(ValueError, match="'activated' inside 'activated'"):
        build(nested, CELLS, {f"of.{name}": a for name, a in arrays.items()})
    two = {**words, "parts": {**words["parts"], "other": words["parts"]["of"]}}
    with pytest.raises(ValueError, match="unpack"):
        build(two, CELLS, arrays | {k.replace("of.", "other."): a for k, a in arrays.items()})


def test_shapes_that_no_region_has_are_refused() -> None:
    words, arrays = document(REGION)
    for change in ({"shapes": ["disc", "star"]}, {"side": "near"}, {"shapes": ["box", "disc"]}):
        with pytest.raises(ValueError, match=r"shapes|numbers"):
            build({**words, **change}, CELLS, arrays)


@pytest.mark.parametrize("change", [{"sense": "<"}, {"activation": "exp"}])
def test_words_that_no_inequality_has_are_refused(change: dict[str, str]) -> None:
    words, arrays = document(WIDE)
    with pytest.raises(ValueError, match="sense"):
        build({**words, **change}, CELLS, arrays)
