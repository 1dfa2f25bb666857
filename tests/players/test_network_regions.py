"""What a network forbids, in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ringfence.constraints import constraint_files
from ringfence.constraints.mlp import MLPConstraint
from ringfence.disk import write_folder
from ringfence.objects import Behaviour, Feature
from ringfence.players.network_regions import forbidden_words

FEATURES = (Feature("x", "m"), Feature("y", "m"))


def above(limit: float, used: int = 0, features: tuple[Feature, ...] = FEATURES) -> MLPConstraint:
    """A network without hidden layers: one feature <= limit."""
    w = np.zeros((len(features), 1), np.float32)
    w[used] = 1
    bias = np.array([-limit], np.float32)
    d = len(features)
    return MLPConstraint(features, np.zeros(d), np.ones(d), (w,), (bias,))


def steps(low: float, high: float) -> Behaviour:
    x = np.linspace(low, high, 401)
    return Behaviour(np.column_stack([x, x]), np.full(401, 0.25), 0, 0, 100, 1)


def test_shares_and_boxes_are_those_of_what_was_covered() -> None:
    said = forbidden_words(above(1.5), [steps(0, 1)], [steps(0, 2)])
    assert said.startswith("forbids 25% of learners' steps, 0% of demonstrators', 2")
    assert said.endswith("of the cells that they covered: x 1.5 to 2.1 m")


def test_who_forbids_nothing_names_no_box() -> None:
    said = forbidden_words(above(9), [steps(0, 1)], [steps(0, 2)])
    assert said.endswith("0% of demonstrators', 0% of the cells that they covered")


def test_a_network_of_many_features_tells_only_steps() -> None:
    four = tuple(Feature(name, "1") for name in "abcd")
    w = np.ones((4, 1), np.float32)
    c = MLPConstraint(four, np.zeros(4), np.ones(4), (w,), (np.zeros(1, np.float32),))
    pi = Behaviour(np.array([[1.0] * 4, [-1.0] * 4]), np.array([1.0, 3.0]), 0, 0, 4, 1)
    assert forbidden_words(c, [pi], [pi]) == "forbids 25% of learners' steps, 25% of demonstrators'"


def test_the_words_are_saved_with_the_network(tmp_path: Path) -> None:
    c = replace(above(1.5), forbids="forbids much")
    write_folder(tmp_path / "c", constraint_files.to_bytes(c, 0.0, {}))
    assert constraint_files.load(tmp_path / "c").describe() == "forbids much (network 1-1 of x)"
