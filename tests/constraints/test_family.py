"""A game's class of constraints, from its text and what the world offers."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.constraints.classes import LinearClass, TableClass
from ringfence.constraints.family import Family, make_family
from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.constraints.mlp import zero_network
from ringfence.errors import InvalidInput
from ringfence.objects import Feature

CELLS = (Feature("row", "cell"), Feature("col", "cell"))
FEATURES = (Feature("x", "m"), Feature("y", "m"), Feature("speed", "m/s"))


def family(text: str, *on: str) -> Family:
    return make_family(text, on, FEATURES, None, None)


def test_a_table_is_over_the_worlds_cells() -> None:
    found = make_family("table", (), CELLS, (3, 4), None)
    assert isinstance(found.convex, TableClass)
    assert found.convex.shape == (3, 4)
    assert found.used == ["row", "col"]
    assert found.parameters(found.convex.constraint(np.zeros(12))) == {}


def test_where_features_are_no_cells_a_table_is_over_cells_of_them() -> None:
    shown = np.random.default_rng(0).random((50, 3))
    found = make_family("table", (), FEATURES, None, None, shown)
    assert isinstance(found.convex, TableClass)
    assert found.convex.grid is not None
    assert found.used == ["x", "y", "speed"]
    with pytest.raises(InvalidInput, match="cells are laid around demonstrations"):
        family("table")


def test_linear_over_finitely_many_points_is_a_ball_that_holds_them() -> None:
    points = np.array([[0.0, 0.0], [3.0, 4.0]])
    found = make_family("linear", (), CELLS, (4, 5), points)
    assert isinstance(found.convex, LinearClass)
    assert found.convex.feature_bound == pytest.approx(np.sqrt(26))  # |(3, 4, 1)|
    assert found.template is None


def test_linear_elsewhere_has_a_number_for_each_feature() -> None:
    found = family("linear")
    assert found.convex is None
    assert found.template is not None
    assert found.used == ["x", "y", "speed"]
    assert family("linear", "x", "speed").used == ["x", "speed"]
    some = make_family("linear", ("row",), CELLS, (4, 5), np.zeros((1, 2)))
    assert some.template is not None
    assert some.used == ["row"]


def test_a_network_uses_all_features_or_those_named() -> None:
    assert family("mlp").is_network
    assert family("mlp").used == ["x", "y", "speed"]
    assert family("mlp", "y").used == ["y"]
    assert not family("speed <= ?").is_network
    assert family("mlp").parameters(zero_network(FEATURES)) == {}


def test_an_inequality_uses_what_it_names() -> None:
    assert family("speed <= ?").used == ["speed"]
    assert family("? x - y <= 0").used == ["x", "y"]


def test_parameters_are_what_was_learned_by_name() -> None:
    found = family("speed <= ?")
    assert found.template is not None
    (name,) = found.template.names
    c = found.template.constraint(np.array([0.75]))
    assert found.parameters(c) == {name: pytest.approx(0.75)}
    assert found.parameters(LinearConstraint(FEATURES, np.array([1.0, 0.0, 0.0]), 1.0)) == {}


def test_the_error_is_the_distance_from_a_truth_that_the_class_holds() -> None:
    found = family("speed <= ?")
    assert found.template is not None
    c = found.template.constraint(np.array([0.7]))
    assert found.error(c, parse_inequality("speed <= 0.75", FEATURES)) == pytest.approx(0.05)
    assert found.error(c, parse_inequality("x <= 0.75", FEATURES)) is None
    assert family("mlp").error(zero_network(FEATURES), c) is None


@pytest.mark.parametrize("text", ["speed <= ?", "table"])
def test_features_are_chosen_for_linear_and_networks_alone(text: str) -> None:
    with pytest.raises(InvalidInput, match="on is for 'linear' and 'mlp'"):
        family(text, "x")


def test_an_unknown_feature_is_named_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="no feature 'z'; features are x, y, speed"):
        family("mlp", "z")
