"""A constraint whose cost is counted in another way: each step beyond it, or what is beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ringfence.constraints.conjunction import Conjunction
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint, Feature

Activation = Literal["steps", "amount"]
SAID = {"steps": "each step beyond it costs 1", "amount": "costs what is beyond it"}


@dataclass(frozen=True, eq=False)
class Activated:
    """raw is c's; cost = 1 where raw > 0 ("steps"), or max(0, raw) ("amount"), in raw's scale."""

    c: Constraint
    activation: Activation

    def __post_init__(self) -> None:
        if self.activation not in SAID:
            raise InvalidInput(
                f"activation {self.activation!r:.60} is not known; it can be: {', '.join(SAID)}"
            )
        if isinstance(self.c, Activated | Conjunction):
            raise InvalidInput(
                f"{self.c.describe()}: a cost is counted once, and each part of a conjunction has "
                "its own; activate the parts"
            )

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.c.features

    def raw(self, phi: ArrayLike) -> Array:
        return self.c.raw(phi)

    def activate(self, raw: Array) -> Array:
        if self.activation == "steps":
            return (np.asarray(raw) > 0).astype(np.float64)
        return np.maximum(raw, 0.0)

    def cost(self, phi: ArrayLike) -> Array:
        return self.activate(self.raw(phi))

    def describe(self) -> str:
        return f"{self.c.describe()}, {SAID[self.activation]}"
