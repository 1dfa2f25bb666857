"""Convex classes of constraints that are linear in their parameters: c_theta = theta . psi.

For tables psi is the indicator of a cell and theta in [0, 1]^cells; for linear features psi is
(phi, 1) and theta lies in a ball. Either class can be restricted to F~_c, the constraints
under which the experts are safe (Algorithm 3): the restriction is part of the class, so every
projection and every maximiser obeys it exactly.

J(pi, c_theta) = theta . moments(pi), so the constraint player's payoff is linear in theta.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from ringfence.constraints.cell_grid import CellConstraint, Grid
from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.table import TableConstraint, visit_table
from ringfence.objects import Array, Behaviour, Feature


@dataclass(frozen=True, eq=False)
class TableClass:
    """Tables in [0, 1]^shape that are zero wherever `zero` is set.

    Cells are the features themselves, as whole numbers, or those of a grid over some of them.
    """

    features: tuple[Feature, ...]
    shape: tuple[int, ...]
    zero: NDArray[np.bool_] | None = None
    grid: Grid | None = None

    def restricted(self, experts: Sequence[Behaviour]) -> TableClass:
        """F~_c: zero on every cell that an expert visited."""
        visited = reduce(np.logical_or, [self._visits(pi) > 0 for pi in experts])
        return replace(self, zero=visited)

    def moments(self, pi: Behaviour) -> Array:
        return self._visits(pi).ravel()

    def _visits(self, pi: Behaviour) -> Array:
        if self.grid is not None:
            return self.grid.visits(pi.features, pi.visits)
        return visit_table(pi, self.shape)

    def constraint(self, theta: Array) -> TableConstraint | CellConstraint:
        if self.grid is not None:
            return CellConstraint(self.features, self.grid, theta.reshape(self.shape))
        return TableConstraint(self.features, theta.reshape(self.shape))

    def project(self, theta: Array) -> Array:
        """The nearest table of the class: clip, and zero where the experts went."""
        return np.where(self._open, np.clip(theta, 0.0, 1.0), 0.0)

    def maximise(self, g: Array) -> Array:
        """argmax over the class of g . theta."""
        return ((g > 0) & self._open).astype(float)

    @property
    def _open(self) -> NDArray[np.bool_]:
        if self.zero is None:
            return np.ones(int(np.prod(self.shape)), dtype=bool)
        return ~self.zero.ravel()

    @property
    def radius(self) -> float:
        """max ||theta||: all open cells forbidden."""
        return float(np.sqrt(self._open.sum()))

    @property
    def moment_bound(self) -> float:
        """max ||moments(pi) - moments(pi')|| / T: two distributions over cells, apart."""
        return float(np.sqrt(2))


@dataclass(frozen=True, eq=False)
class LinearClass:
    """theta = (weights, -offset) with ||theta|| <= radius and rows @ theta <= 0.

    `feature_bound` is max ||(phi, 1)|| over the world. The rows are the restriction: (phi, 1) of
    every point an expert visited, so that no expert point has a positive raw value.
    """

    features: tuple[Feature, ...]
    radius: float
    feature_bound: float
    rows: Array | None = None

    def restricted(self, experts: Sequence[Behaviour]) -> LinearClass:
        points = np.unique(np.concatenate([pi.features for pi in experts]), axis=0)
        return replace(self, rows=with_constant(points))

    def moments(self, pi: Behaviour) -> Array:
        return pi.visits @ with_constant(pi.features)

    def constraint(self, theta: Array) -> LinearConstraint:
        return LinearConstraint(self.features, theta[:-1], -float(theta[-1]), activation="none")

    def project(self, theta: Array) -> Array:
        """The nearest point of the cone {rows @ theta <= 0}, then of the ball.

        By Moreau the cone's projection is theta - rows^T y with y >= 0 the non-negative least
        squares fit of theta; the ball is centred at the cone's tip, so radial scaling
        afterwards is the exact projection onto both.
        """
        if self.rows is not None:
            y, _ = nnls(self.rows.T, theta, maxiter=100 * len(self.rows))
            theta = theta - self.rows.T @ y
        norm = float(np.linalg.norm(theta))
        return theta if norm <= self.radius else theta * (self.radius / norm)

    def maximise(self, g: Array) -> Array:
        """argmax over the class of g . theta: the cone's projection of g, at the ball's edge."""
        unbounded = replace(self, radius=np.inf)
        direction = unbounded.project(g)
        norm = float(np.linalg.norm(direction))
        # Rounding leaves a projection of size ~eps * |g| where the true one is 0.
        if norm <= 1e-12 * max(1.0, float(np.linalg.norm(g))):
            return np.zeros_like(g)
        return direction * (self.radius / norm)

    @property
    def moment_bound(self) -> float:
        return 2 * self.feature_bound


ConstraintClass = TableClass | LinearClass


def with_constant(phi: Array) -> Array:
    """psi = (phi, 1), [n, d + 1]."""
    return np.hstack([phi, np.ones((len(phi), 1))])
