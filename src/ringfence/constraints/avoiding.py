"""A constraint that also keeps out of cells about which nothing is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringfence.objects import Array, Constraint, Feature


@dataclass(frozen=True, eq=False)
class Avoiding:
    """c, and a cost of 1 in every cell outside `allowed` [cells] (and outside all cells).

    index: features [n, d] -> the cells they are in [n], -1 outside. It is for planning only: what
    is saved and counted is c.
    """

    c: Constraint
    allowed: NDArray[np.bool_]
    index: Callable[[Array], NDArray[np.intp]]

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.c.features

    def raw(self, phi: ArrayLike) -> Array:
        return np.maximum(self.c.raw(phi), self._outside(phi))

    def activate(self, raw: Array) -> Array:
        return self.c.activate(raw)

    def cost(self, phi: ArrayLike) -> Array:
        return np.maximum(self.c.cost(phi), self._outside(phi))

    def describe(self) -> str:
        return f"{self.c.describe()}; within cells that demonstrations showed to be allowed"

    def _outside(self, phi: ArrayLike) -> NDArray[np.bool_]:
        at = self.index(np.asarray(phi, np.float64))
        return ~np.append(self.allowed, False)[at]
