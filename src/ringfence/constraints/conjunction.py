"""Several limits at once: "|y| <= 2 and speed <= 0.75"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint, Feature


@dataclass(frozen=True, eq=False)
class Conjunction:
    """All of its parts hold. raw: the largest of the parts'; cost: the sum of the parts'.

    Each part can be given a limit of its own. (activate(raw) is the costliest part's share, and so
    the cost where one part is violated.)
    """

    parts: tuple[Constraint, ...]

    def __post_init__(self) -> None:
        if len(self.parts) < 2 or any(isinstance(part, Conjunction) for part in self.parts):
            raise InvalidInput("a conjunction joins at least two constraints that are none")
        if any(part.features != self.features for part in self.parts):
            raise InvalidInput("all parts of a conjunction must be about the same features")

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.parts[0].features

    def raw(self, phi: ArrayLike) -> Array:
        return np.asarray(np.max([part.raw(phi) for part in self.parts], axis=0))

    def activate(self, raw: Array) -> Array:
        return self.parts[0].activate(raw)

    def cost(self, phi: ArrayLike) -> Array:
        return np.asarray(np.sum([part.cost(phi) for part in self.parts], axis=0))

    def describe(self) -> str:
        return " and ".join(part.describe() for part in self.parts)
