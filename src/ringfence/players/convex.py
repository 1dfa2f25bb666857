"""The constraint player: picks the constraint that best separates learners from experts.

`Regression` is the paper's practical player; `FTRL` the theory's, exact, with its rate.
Both see experts [K] and the learners' history [i][K] as behaviours, never a truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import nnls

from ringfence.constraints.classes import ConstraintClass, LinearClass, TableClass, with_constant
from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.table import TableConstraint
from ringfence.objects import Array, Behaviour, Constraint

History = Sequence[Sequence[Behaviour]]

#: A cell is forbidden where the regression's fit exceeds this (the paper's threshold).
FORBIDDEN_FIT = 0.5


class ConstraintPlayer(Protocol):
    """A no-regret player over a convex class of constraints."""

    def initial(self) -> Constraint:
        """c_1."""
        ...

    def update(self, experts: Sequence[Behaviour], history: History) -> Constraint:
        """c_{i+1} from the experts and the learners of iterations 1..i."""
        ...

    def best_payoff(self, experts: Sequence[Behaviour], learners: Sequence[Behaviour]) -> float:
        """max over the class of l_i(c), the payoff against one iteration's learners."""
        ...


def payoff_gradient(
    F_c: ConstraintClass, experts: Sequence[Behaviour], learners: Sequence[Behaviour], T: float
) -> Array:
    """g_i with l_i(c_theta) = g_i . theta = 1/(TK) sum_k J(pi_i^k, c) - J(pi_E^k, c) (eq. 8)."""
    pairs = zip(learners, experts, strict=True)
    gap = [F_c.moments(pi) - F_c.moments(pi_E) for pi, pi_E in pairs]
    return np.asarray(np.mean(gap, axis=0) / T)


@dataclass(frozen=True)
class FTRL:
    """c_{i+1} = argmax_{c in F_c} sum_{j<=i} l_j(c) - R(c), R(c) = ||theta||^2 / (2 eta).

    The argmax is the projection of eta * sum_j g_j onto the class. For i = 0 it is c_1 = 0.
    """

    F_c: ConstraintClass
    T: float
    eta: float

    def initial(self) -> Constraint:
        return self.F_c.constraint(self.F_c.project(np.zeros(_dimension(self.F_c))))

    def update(self, experts: Sequence[Behaviour], history: History) -> Constraint:
        total = np.sum([payoff_gradient(self.F_c, experts, pi, self.T) for pi in history], axis=0)
        return self.F_c.constraint(self.F_c.project(self.eta * total))

    def best_payoff(self, experts: Sequence[Behaviour], learners: Sequence[Behaviour]) -> float:
        g = payoff_gradient(self.F_c, experts, learners, self.T)
        return float(g @ self.F_c.maximise(g))

    def rate(self, N: int) -> float:
        """The analytic bound on the regret of N rounds: D^2 / (2 eta) + eta N G^2 / 2."""
        D, G = self.F_c.radius, self.F_c.moment_bound
        return D**2 / (2 * self.eta) + self.eta * N * G**2 / 2


def ftrl(F_c: ConstraintClass, T: float, N: int) -> FTRL:
    """FTRL with the step size that is best for N rounds: average regret <= D G / sqrt(N)."""
    eta = F_c.radius / (F_c.moment_bound * np.sqrt(N)) if F_c.radius > 0 else 1.0
    return FTRL(F_c, T, float(eta))


@dataclass(frozen=True)
class Regression:
    """The paper's practical player: least squares to labels +1 (learner) and -1 (expert).

    Learners and experts have the same total weight, over all iterations so far (the paper's
    code draws its batches so). A table's fit is, per cell, (L - E) / (L + E) with the shares
    L and E of learner and expert visits there; a cell is forbidden where the fit exceeds the
    paper's threshold. A linear fit is activated by log(1 + relu). In the restricted class
    the same loss is minimised subject to the restriction.
    """

    F_c: ConstraintClass
    T: float

    def initial(self) -> Constraint:
        if isinstance(self.F_c, TableClass):
            return TableConstraint(self.F_c.features, np.zeros(self.F_c.shape))
        return LinearConstraint(self.F_c.features, np.zeros(len(self.F_c.features)), 0.0)

    def update(self, experts: Sequence[Behaviour], history: History) -> Constraint:
        learners = [pi for iteration in history for pi in iteration]
        if isinstance(self.F_c, TableClass):
            return self._table(self.F_c, experts, learners)
        return self._linear(self.F_c, experts, learners)

    def _table(
        self, F_c: TableClass, experts: Sequence[Behaviour], learners: Sequence[Behaviour]
    ) -> TableConstraint:
        E, L = (
            np.sum([F_c.moments(pi) for pi in group], axis=0) / sum(pi.length for pi in group)
            for group in (experts, learners)
        )
        seen = L + E > 0
        fit = np.divide(L - E, L + E, out=np.zeros_like(L), where=seen)
        return F_c.constraint(F_c.project((fit > FORBIDDEN_FIT).astype(float)))

    def _linear(
        self, F_c: LinearClass, experts: Sequence[Behaviour], learners: Sequence[Behaviour]
    ) -> LinearConstraint:
        E, L = (
            np.concatenate([pi.visits for pi in group]) / sum(pi.length for pi in group)
            for group in (experts, learners)
        )
        psi = with_constant(np.concatenate([pi.features for pi in (*experts, *learners)]))
        label = np.concatenate([-np.ones(len(E)), np.ones(len(L))])
        root = np.sqrt(np.concatenate([E, L]))
        theta = least_squares_under(root[:, None] * psi, root * label, F_c.rows)
        return LinearConstraint(F_c.features, theta[:-1], -float(theta[-1]))

    def best_payoff(self, experts: Sequence[Behaviour], learners: Sequence[Behaviour]) -> float:
        g = payoff_gradient(self.F_c, experts, learners, self.T)
        return float(g @ self.F_c.maximise(g))


@dataclass(frozen=True)
class Begun:
    """A player that already knows one set of learners before the game: c_1 is its answer to them.

    keep: they count as an iteration ever after, too.
    """

    player: ConstraintPlayer
    experts: Sequence[Behaviour]
    first: Sequence[Behaviour]
    keep: bool

    def initial(self) -> Constraint:
        return self.player.update(self.experts, [self.first])

    def update(self, experts: Sequence[Behaviour], history: History) -> Constraint:
        return self.player.update(experts, [self.first, *history] if self.keep else history)

    def best_payoff(self, experts: Sequence[Behaviour], learners: Sequence[Behaviour]) -> float:
        return self.player.best_payoff(experts, learners)


def least_squares_under(A: Array, b: Array, rows: Array | None) -> Array:
    """argmin ||A x - b|| subject to rows @ x <= 0 (Lawson and Hanson's LSI, by NNLS).

    With A = U S V^T the problem is to find the shortest z = S V^T x - U^T b in a polyhedron, whose
    dual is non-negative least squares. Directions in which A has no data keep x = 0.
    """
    U, S, Vt = np.linalg.svd(A, full_matrices=False)
    keep = 1e-10 * S[0] < S
    U, S, Vt = U[:, keep], S[keep], Vt[keep]
    target = U.T @ b
    if rows is None:
        return np.asarray(Vt.T @ (target / S))
    G = -rows @ Vt.T / S
    h = -G @ target
    E = np.vstack([G.T, h])
    f = np.zeros(len(E))
    f[-1] = 1.0
    y, _ = nnls(E, f, maxiter=100 * E.shape[1])
    residual = E @ y - f
    z = -residual[:-1] / residual[-1]
    return np.asarray(Vt.T @ ((z + target) / S))


def _dimension(F_c: ConstraintClass) -> int:
    return int(np.prod(F_c.shape)) if isinstance(F_c, TableClass) else len(F_c.features) + 1
