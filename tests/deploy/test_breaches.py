from __future__ import annotations

import numpy as np
import pytest

from ringfence.constraints.written import parse_constraint
from ringfence.deploy.breaches import breaches
from ringfence.errors import InvalidInput
from ringfence.objects import Feature

FEATURES = (Feature("altitude", "ft"), Feature("speed", "kt"))
RULE = parse_constraint("speed <= 250 while altitude <= 10000", FEATURES)


def flight(speeds: list[float], altitude: float = 9000.0) -> np.ndarray:
    return np.array([[altitude, v] for v in speeds])


def test_a_breach_is_told_with_its_place_and_size() -> None:
    (found,) = breaches(RULE, flight([240, 255, 270, 260, 245]))
    assert (found.first, found.last, found.steps, found.worst) == (1, 3, 3, 2)
    assert found.excess == 20
    assert found.features.tolist() == [9000, 270]


def test_above_the_condition_nothing_is_broken() -> None:
    assert breaches(RULE, flight([300, 300], 11000.0)) == []


def test_errors_pauses_and_single_steps_are_forgiven() -> None:
    speeds = [256.0, 240, 262, 240, 240, 240, 263]
    assert len(breaches(RULE, flight(speeds))) == 3
    assert len(breaches(RULE, flight(speeds), tolerance=8)) == 2
    assert len(breaches(RULE, flight(speeds), pause=1)) == 2
    assert breaches(RULE, flight(speeds), pause=1, shortest=3) == []
    with pytest.raises(InvalidInput, match="at least 0"):
        breaches(RULE, flight(speeds), tolerance=-1)
