"""Follow the regularised leader: the theory's player, exact, with its rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ringfence.constraints.classes import ConstraintClass, TableClass
from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour, Constraint
from ringfence.players.player import Ground, History, payoff_gradient


@dataclass(frozen=True)
class Config:
    """The theory's player, for tables and linear classes: its regret has a bound.

    restricted: only constraints under which the experts are safe (Algorithm 3).
    """

    kind: Literal["ftrl"] = "ftrl"
    restricted: bool = True


def make(config: Config, ground: Ground) -> FTRL:
    F_c = ground.family.convex
    if F_c is None:
        raise InvalidInput(
            f"[player] kind ftrl needs a convex class, such as a table over cells; "
            f"{ground.family.text!r} is none: use regression or payoff"
        )
    F_c = F_c.restricted(ground.experts) if config.restricted else F_c
    return ftrl(F_c, ground.T, ground.N)


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


def _dimension(F_c: ConstraintClass) -> int:
    return int(np.prod(F_c.shape)) if isinstance(F_c, TableClass) else len(F_c.features) + 1
