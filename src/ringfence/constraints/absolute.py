"""A linear constraint on features and absolute values of them: "|y| <= 2", "|x - 1| + z <= 3"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ringfence.constraints.linear import LinearConstraint, figure, terms
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Feature


@dataclass(frozen=True, eq=False)
class Lift:
    """Absolute values as columns of their own: phi [n, d] -> (phi, |phi @ inner^T - centre|).

    inner [m, d], centre [m].
    """

    inner: Array
    centre: Array

    def __post_init__(self) -> None:
        if self.inner.ndim != 2 or self.centre.shape != self.inner.shape[:1]:
            raise InvalidInput(
                f"absolute values of {self.inner.shape} weights and {self.centre.shape} centres"
            )
        if not (np.isfinite(self.inner).all() and np.isfinite(self.centre).all()):
            raise InvalidInput("what stands inside an absolute value must be finite")

    def __call__(self, phi: ArrayLike) -> Array:
        phi = np.asarray(phi, np.float64)
        return np.hstack([phi, np.abs(phi @ self.inner.T - self.centre)])

    def features(self, features: tuple[Feature, ...]) -> tuple[Feature, ...]:
        """All columns; |y| has the unit of y, a sum of several features none."""
        return (*features, *(self._column(k, features) for k in range(len(self.centre))))

    def _column(self, k: int, features: tuple[Feature, ...]) -> Feature:
        w, c = self.inner[k], float(self.centre[k])
        middle = f" {'-' if c > 0 else '+'} {figure(abs(c))}" if c else ""
        used = [f.unit for f, weight in zip(features, w, strict=True) if abs(weight) == 1]
        unit = used[0] if len(used) == np.count_nonzero(w) == 1 else "1"
        return Feature(f"|{terms(w, features)}{middle}|", unit)

    def same(self, other: Lift) -> bool:
        """Are both about the same quantities?"""
        alike = self.inner.shape == other.inner.shape and np.allclose(self.inner, other.inner)
        return bool(alike and np.allclose(self.centre, other.centre))


@dataclass(frozen=True, eq=False)
class AbsoluteConstraint:
    """raw(phi) = linear.raw(lift(phi)); the cost is the linear constraint's."""

    features: tuple[Feature, ...]
    lift: Lift
    linear: LinearConstraint

    def __post_init__(self) -> None:
        wide = len(self.features) + len(self.lift.centre)
        if self.lift.inner.shape[1:] != (len(self.features),) or len(self.linear.features) != wide:
            raise InvalidInput(
                f"{len(self.features)} features and {len(self.lift.centre)} absolute values don't "
                f"fit {len(self.linear.features)} weights"
            )

    def raw(self, phi: ArrayLike) -> Array:
        return self.linear.raw(self.lift(phi))

    def activate(self, raw: Array) -> Array:
        return self.linear.activate(raw)

    def cost(self, phi: ArrayLike) -> Array:
        return self.activate(self.raw(phi))

    def describe(self) -> str:
        return self.linear.describe()
