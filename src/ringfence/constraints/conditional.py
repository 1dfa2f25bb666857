"""A limit that holds under a condition: "speed <= 250 while altitude <= 10000"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ringfence.constraints.absolute import AbsoluteConstraint
from ringfence.constraints.linear import LinearConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Feature

Limit = LinearConstraint | AbsoluteConstraint


@dataclass(frozen=True, eq=False)
class ConditionalConstraint:
    """Where the condition holds (condition.raw <= 0) the limit's raw value; elsewhere none.

    Elsewhere raw is at most 0, and falls with the distance from where the condition holds:
    min(limit.raw, -condition.raw). So raw > 0 is where the constraint is violated, and the cost
    there is the limit's own, however near the condition's edge.
    """

    limit: Limit
    condition: Limit

    def __post_init__(self) -> None:
        if self.limit.features != self.condition.features:
            raise InvalidInput("a limit and its condition must be about the same features")

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.limit.features

    def raw(self, phi: ArrayLike) -> Array:
        limit, outside = self.limit.raw(phi), self.condition.raw(phi)
        return np.where(outside <= 0, limit, np.minimum(limit, -outside))

    def activate(self, raw: Array) -> Array:
        return self.limit.activate(raw)

    def cost(self, phi: ArrayLike) -> Array:
        return self.activate(self.raw(phi))

    def describe(self) -> str:
        return f"{self.limit.describe()} while {self.condition.describe()}"
