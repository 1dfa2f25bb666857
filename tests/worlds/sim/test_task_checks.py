"""Rollouts are finite, and tasks have the constraint's features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from line_task import Line
from random_policies import policy_for
from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Feature
from ringfence.worlds.sim.rollouts import Chunk, CollectorSpec
from ringfence.worlds.sim.task_checks import check_finite, check_task

LINE = Line()


def chunk() -> Chunk:
    return LINE.collector(CollectorSpec(2, lambda p: p[:, 1], (0,))).collect(policy_for(LINE), 5, 0)


def spoilt(name: str, at: tuple[int, ...], value: float = np.nan) -> Chunk:
    good = chunk()
    values = getattr(good, name).copy()
    values[at] = value
    return replace(good, **{name: values})


def test_what_is_finite_passes() -> None:
    check_finite(chunk(), np.zeros((5, 2)), 0)


@pytest.mark.parametrize(
    ("name", "said", "at"),
    [("inputs", "observation", (3, 1, 0)), ("rewards", "reward", (3, 1)),
     ("features", "feature", (3, 1, 1))],
)  # fmt: skip
def test_the_quantity_is_named_with_its_step_and_copy(
    name: str, said: str, at: tuple[int, ...]
) -> None:
    with pytest.raises(SolverFailed, match=rf"{said} is nan at environment step 107 \(copy 1\)"):
        check_finite(spoilt(name, at), np.zeros((5, 2)), 100)


def test_the_first_of_several_is_named_and_costs_count_too() -> None:
    cost = np.zeros((5, 2))
    cost[1, 0] = np.inf
    with pytest.raises(SolverFailed, match="cost is inf at environment step 2"):
        check_finite(spoilt("rewards", (3, 1)), cost, 0)


def test_the_raw_value_among_the_inputs_is_the_features_matter() -> None:
    check_finite(spoilt("inputs", (0, 0, -1)), np.zeros((5, 2)), 0)


def test_features_must_be_the_tasks_in_its_units() -> None:
    check_task(LINE, LINE.features)
    with pytest.raises(InvalidInput, match="over speed, but task 'line' has the features x, speed"):
        check_task(LINE, LINE.features[1:])
    with pytest.raises(InvalidInput, match="'speed' in km/h, task 'line' in m/s"):
        check_task(LINE, (LINE.features[0], Feature("speed", "km/h")))
