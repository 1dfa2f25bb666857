"""Where a feature's value comes from, in one environment and in many side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Feature
from ringfence.worlds.sim.sources import FeatureReader, Sources

FEATURES = (Feature("speed", "m/s"), Feature("x", "m"))
BEFORE, ACTIONS, AFTER = np.zeros((3, 2)), np.ones((3, 1)), np.arange(6.0).reshape(3, 2)
INFO = {"speed": np.array([0.1, 0.2, 0.3]), "height": np.array([5.0, 6.0, 7.0])}
ALL = np.ones(3, np.bool_)


def batch(sources: Sources, info: dict[str, Any] = INFO, rows: np.ndarray = ALL) -> np.ndarray:
    return FeatureReader(FEATURES, sources, "env").batch(BEFORE, ACTIONS, AFTER, info, rows)


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({"x": 1}, [[0.1, 1], [0.2, 3], [0.3, 5]]),
        ({"x": "height"}, [[0.1, 5], [0.2, 6], [0.3, 7]]),
        (lambda b, a, t: np.hstack([t[:, :1], a + b[:, :1]]), [[0, 1], [2, 1], [4, 1]]),
    ],
    ids=["column", "key", "function"],
)
def test_one_environment_reads_what_many_do(sources: Sources, expected: list) -> None:
    found = batch(sources)
    np.testing.assert_allclose(found, expected)
    reader = FeatureReader(FEATURES, sources, "env")
    for n in range(3):
        info = {key: float(values[n]) for key, values in INFO.items()}
        one = reader.one(BEFORE[n], ACTIONS[n], AFTER[n], info)
        np.testing.assert_allclose(one, found[n : n + 1])


def test_only_rows_that_are_asked_for_must_be_there() -> None:
    """A vector environment marks by "_key" which of its parts gave the key."""
    rows = np.array([True, False, True])
    info = {**INFO, "_speed": rows, "speed": np.array([0.1, np.nan, 0.3])}
    assert batch({"x": 1}, info, rows)[rows].tolist() == [[0.1, 1.0], [0.3, 5.0]]
    with pytest.raises(InvalidInput, match="no info key 'speed' for the feature 'speed'"):
        batch({"x": 1}, info)


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({}, "env has no info key 'speed' for the feature 'speed'; after a step it has none"),
        ({"height": INFO["height"]}, "after a step it has height"),
        ({"speed": np.array([0.1, np.inf, 0.3])}, "feature 'speed' is not finite"),
        ({"speed": np.array(["a", "b", "c"])}, "must be one number per step"),
        ({"speed": np.zeros((3, 2))}, "must be one number per step"),
    ],
)
def test_what_is_missing_or_no_number_is_named(info: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        batch({"x": 1}, info)


@pytest.mark.parametrize("value", [float("nan"), "fast", None, [1.0, 2.0]])
def test_one_step_says_the_same(value: Any) -> None:
    reader = FeatureReader(FEATURES, {"x": 1}, "env")
    with pytest.raises(InvalidInput, match=r"feature 'speed' (is not finite|must be one number)"):
        reader.one(BEFORE[0], ACTIONS[0], AFTER[0], {"speed": value})
    with pytest.raises(InvalidInput, match="no info key 'speed'"):
        reader.one(BEFORE[0], ACTIONS[0], AFTER[0], {})


def test_a_function_of_another_shape_is_refused() -> None:
    with pytest.raises(SolverFailed, match=r"returned shape \(3, 1\), not \(3, 2\)"):
        batch(lambda b, a, t: t[:, :1])


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"z": 0}, "there is no feature 'z'; features are speed, x"),
        ({"x": 1.5}, "a key of info .* or a column"),
        ({"x": True}, "a key of info"),
        ({"x": lambda b, a, t: t}, "one function .* may stand in the mapping's place"),
    ],
)
def test_a_wrong_declaration_is_refused_at_once(sources: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        FeatureReader(FEATURES, sources, "env")


def test_where_every_copy_only_resets_nothing_is_asked_for() -> None:
    reader = FeatureReader((Feature("x", "m"),), None, "env")
    none = np.zeros(3, np.bool_)
    assert not reader.batch(np.zeros((3, 1)), np.zeros((3, 1)), np.zeros((3, 1)), {}, none).any()


def test_a_function_of_the_transition_gets_a_single_choice_as_a_row() -> None:
    reader = FeatureReader((Feature("x", "m"),), lambda before, actions, after: actions, "env")
    assert reader.one(np.zeros(2), 3, np.zeros(2), {}).tolist() == [[3.0]]
