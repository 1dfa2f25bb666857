"""Tables over cells of real-valued features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import own_cart
import ringfence
from ringfence.constraints.cell_grid import CellConstraint, Grid, around, read_axes
from ringfence.constraints.family import make_family
from ringfence.constraints.linear import figure
from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour, Feature
from ringfence.players.ftrl import ftrl
from ringfence.players.regression import Regression
from small_worlds import LEARNING

FEATURES = (Feature("x", "m"), Feature("speed", "m/s"), Feature("y", "m"), Feature("z", "m"))
SHOWN = np.random.default_rng(0).uniform([-1, 0, -2, 0], [1, 1, 2, 1], (500, 4))


def one(points: np.ndarray) -> Behaviour:
    return Behaviour(points, np.full(len(points), 1.0), 0.0, 0.0, float(len(points)), 1)


def test_cells_have_their_edges_at_multiples_of_their_size_and_reach_beyond_what_was_shown() -> (
    None
):
    grid = around(SHOWN, [0, 2], [0.1, 0.25])
    assert grid.size == pytest.approx([0.1, 0.25])
    for axis, (low, high) in enumerate([(-1, 1), (-2, 2)]):
        edges = grid.edges(axis)
        assert edges / grid.size[axis] == pytest.approx(np.round(edges / grid.size[axis]))
        assert edges[0] <= low - (high - low) * 0.95
        assert edges[-1] >= high + (high - low) * 0.95


def test_a_size_that_nobody_gave_is_a_round_share_of_the_range() -> None:
    grid = around(SHOWN, [0, 2], [None, None])
    assert grid.size == pytest.approx([0.2, 0.5])  # of 2 and 4 m, in 2 * 500^(1/4) = 9.5 cells
    assert around(1000 * SHOWN, [0, 2], [None, None]).shape == grid.shape


def test_a_size_that_is_not_rounded_is_the_same_share_in_any_unit() -> None:
    grid = around(SHOWN, [0, 2], [None, None], rounded=False)
    ranges = np.ptp(SHOWN[:, [0, 2]], axis=0)
    assert grid.size == pytest.approx(ranges / 9)  # of 2 * 500^(1/4) = 9.5 cells, a whole number
    for unit in (3.6, 1000):
        other = around(unit * SHOWN, [0, 2], [None, None], rounded=False)
        assert other.shape == grid.shape
        assert other.low == pytest.approx(unit * grid.low)


def test_what_lies_beyond_belongs_to_the_outermost_cell() -> None:
    grid = Grid((1, 0), np.array([0.0, -1.0]), np.array([0.5, 1.0]), (3, 2))
    index = grid.index([[-9, 0.6, 0, 0], [0.2, 9, 0, 0], [0.2, -9, 0, 0]])
    assert np.array_equal(np.array(index).T, [[1, 0], [2, 1], [0, 1]])


def test_cells_that_experts_visited_are_free_and_those_of_learners_alone_forbidden() -> None:
    family = make_family("table(x by 0.5, y by 0.5)", (), FEATURES, None, None, SHOWN)
    assert family.used == ["x", "y"]
    experts = [one(SHOWN[(SHOWN[:, 0] < 0)])]
    learners = [one(SHOWN)]
    assert family.convex is not None
    F_c = family.convex.restricted(experts)
    c = Regression(F_c, 10.0).update(experts, [learners])
    assert isinstance(c, CellConstraint)
    assert not c.cost(experts[0].features).any()
    inside = SHOWN[:, 0] > 0
    assert (c.cost(SHOWN[inside]) == 1).all()
    assert not c.cost([[2.0, 0, 0, 0]]).any()  # nobody was there
    theory = ftrl(F_c, 10.0, 1)
    assert not theory.update(experts, [learners]).cost(experts[0].features).any()


def test_forbidden_boxes_are_named_in_the_features_units() -> None:
    grid = Grid((0, 1), np.array([0.0, 0.0]), np.array([0.1, 2.0]), (6, 4))
    values = np.zeros((6, 4))
    values[1:4, 1:3] = 1
    values[5, :] = 1
    words = CellConstraint(FEATURES, grid, values).describe()
    assert words == (
        "10 of 24 cells (x by 0.1 m, speed by 2 m/s) forbidden: "
        "x 0.1 to 0.4 m x speed 2 to 6 m/s; x above 0.5 m"
    )
    none = CellConstraint(FEATURES, grid, np.zeros((6, 4)))
    assert none.describe() == "no cells (x by 0.1 m, speed by 2 m/s) forbidden"
    assert CellConstraint(FEATURES, grid, np.ones((6, 4))).describe().endswith("everything")


def test_axes_are_read_with_and_without_sizes() -> None:
    assert read_axes(" table( x by 0.1 ,speed)", FEATURES) == ([0, 1], [0.1, None])
    assert read_axes("x <= ?", FEATURES) is None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("table(x, w)", "can't read 'w'"),
        ("table(x by)", "can't read 'x by'"),
        ("table(x by -1)", "must be above 0, got '-1'"),
        ("table(x by no)", "must be above 0, got 'no'"),
        ("table(x, x)", "different features"),
        ("table", "at most 3 features, not x, speed, y, z"),
        ("table(x by 1e-9)", "more than 1,000,000"),
    ],
)
def test_what_is_no_table_is_refused_in_words(text: str, word: str) -> None:
    with pytest.raises(InvalidInput) as error:
        make_family(text, (), FEATURES, None, None, SHOWN)
    assert word in str(error.value)


def test_values_are_shares_and_fit_their_cells() -> None:
    grid = Grid((0,), np.zeros(1), np.ones(1), (3,))
    for values in (np.full(3, 2.0), np.zeros(4), np.full(3, np.nan)):
        with pytest.raises(InvalidInput):
            CellConstraint(FEATURES, grid, values)


def test_a_continuous_world_has_a_table_by_default(tmp_path: Path) -> None:
    settings = {**LEARNING, "game": {"iterations": 2}}
    logs = own_cart.arrays((0.75,) * 6)
    np.savez(tmp_path / "logs.npz", **logs)
    learned = ringfence.learn(
        own_cart.Cart, str(tmp_path / "logs.npz"), features=["speed:m/s"], steps=own_cart.STEPS,
        settings=settings, out=tmp_path / "run",
    )  # fmt: skip
    assert learned.summary["class"] == "table"
    c = ringfence.load(tmp_path / "run")
    assert isinstance(c.constraint, CellConstraint)
    assert not c(logs["info/speed"][: 4 * own_cart.STEPS, None]).any()  # 2 of 6 are held out
    assert f"speed by {figure(c.constraint.grid.size[0])} m/s" in c.describe()
    assert "<svg" in learned.report(tmp_path / "page.html").read_text()


def test_raw_tells_how_far_the_edge_is_and_costs_what_the_values_say() -> None:
    grid = Grid((0,), np.zeros(1), np.ones(1), (8,))
    values = np.array([0, 0, 0, 1, 1, 1, 0.5, 0])
    c = CellConstraint(FEATURES, grid, values)
    phi = np.zeros((8, len(FEATURES)))
    phi[:, 0] = np.arange(8) + 0.5
    assert c.raw(phi).tolist() == [-2.5, -1.5, -0.5, 1.5, 2.5, 1.5, 0.5, -0.5]
    assert np.array_equal(c.activate(c.raw(phi)), values)
    assert np.array_equal(c.cost(phi), values)
    for same in (0.0, 1.0):
        assert (CellConstraint(FEATURES, grid, np.full(8, same)).raw(phi) == same).all()
