"""Who broke a constraint in recorded data: when, where and by how much.

A breach is a stretch of steps in which the limit is exceeded by more than a tolerance (what the
record may be wrong by), without a break of more than a few steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint


@dataclass(frozen=True, eq=False)
class Breach:
    """first, last: of the steps; steps: how many exceed the limit; worst: the step that does most;
    excess: by how much it does, as the constraint's raw value; features [d]: there."""

    first: int
    last: int
    steps: int
    worst: int
    excess: float
    features: Array


def breaches(
    c: Constraint, features: Array, tolerance: float = 0.0, pause: int = 0, shortest: int = 1
) -> list[Breach]:
    """Of one record, features [n, d] step by step.

    tolerance: raw values up to it are no breach; pause: steps within the limit that don't end one;
    shortest: fewer exceeding steps than that are none.
    """
    if tolerance < 0 or pause < 0 or shortest < 1:
        raise InvalidInput("tolerance and pause must be at least 0, shortest at least 1")
    raw = c.raw(features)
    over = np.flatnonzero(raw > tolerance)
    found = []
    for steps in np.split(over, np.flatnonzero(np.diff(over) > pause + 1) + 1):
        if len(steps) >= shortest:
            worst = int(steps[raw[steps].argmax()])
            span = (int(steps[0]), int(steps[-1]), len(steps), worst)
            found.append(Breach(*span, float(raw[worst]), features[worst]))
    return found
