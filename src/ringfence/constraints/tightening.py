"""A constraint moved inwards, for whoever is to keep a clearance from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ringfence.constraints.absolute import AbsoluteConstraint
from ringfence.constraints.activated import Activated
from ringfence.constraints.conditional import ConditionalConstraint, Limit
from ringfence.constraints.linear import LinearConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Constraint


def tightened(c: Constraint, clearance: float) -> Constraint:
    """The same with a clearance, in the units of the inequality's right side: "speed <= 0.75" at
    0.05 is "speed <= 0.7"; of a limit under a condition only the limit moves."""
    if not 0 <= clearance < np.inf:
        raise InvalidInput(f"the clearance must be at least 0 and finite, got {clearance}")
    if not clearance:
        return c
    if isinstance(c, Activated):
        return replace(c, c=tightened(c.c, clearance))
    if isinstance(c, ConditionalConstraint):
        return replace(c, limit=_moved(c.limit, clearance))
    if isinstance(c, LinearConstraint | AbsoluteConstraint):
        return _moved(c, clearance)
    raise InvalidInput(
        f"a clearance is in the units of one inequality, and this constraint is none "
        f"({c.describe()}); leave it out, and lower --delta instead"
    )


def _moved(c: Limit, clearance: float) -> Limit:
    linear = c.linear if isinstance(c, AbsoluteConstraint) else c
    nearer = replace(linear, offset=linear.offset - clearance)
    return replace(c, linear=nearer) if isinstance(c, AbsoluteConstraint) else nearer
