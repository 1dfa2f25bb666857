"""What every constraint player is: it picks the constraint that best tells learners from experts.

A player sees experts [K] and the learners' history [i][K] as behaviours, never a truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ringfence.constraints.classes import ConstraintClass
from ringfence.constraints.family import Family
from ringfence.constraints.template import HOLE
from ringfence.constraints.written import is_composed
from ringfence.objects import Array, Behaviour, Constraint, J

History = Sequence[Sequence[Behaviour]]


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


@dataclass(frozen=True, eq=False)
class Ground:
    """What a player is made for: the class of constraints, and the game that is played.

    family: the class, restricted where the game says so; T: the episode's length, in which
    payoffs are measured; experts [K]: what the demonstrations amount to; N: the most iterations;
    seed: of the run; moves [d]: how far a demonstrator usually moves in a step, feature by feature,
    where steps are known.
    """

    family: Family
    T: float
    experts: Sequence[Behaviour]
    multi_task: bool
    N: int
    seed: int
    moves: Array | None = None


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


def usual_kind(text: str, multi_task: bool) -> str:
    """The player of a class where nobody names one: the paper's regression, or the search where
    the class is made of several inequalities, or experts must be safe under one (Algorithm 3)."""
    searched = is_composed(text) or (multi_task and HOLE in text)
    return "payoff" if searched else "regression"


def payoff_gradient(
    F_c: ConstraintClass, experts: Sequence[Behaviour], learners: Sequence[Behaviour], T: float
) -> Array:
    """g_i with l_i(c_theta) = g_i . theta = 1/(TK) sum_k J(pi_i^k, c) - J(pi_E^k, c) (eq. 8)."""
    pairs = zip(learners, experts, strict=True)
    gap = [F_c.moments(pi) - F_c.moments(pi_E) for pi, pi_E in pairs]
    return np.asarray(np.mean(gap, axis=0) / T)


def payoff(
    c: Constraint, experts: Sequence[Behaviour], learners: Sequence[Behaviour], T: float
) -> float:
    """max(0, 1/(TK) sum_k J(pi^k, c) - J(pi_E^k, c)): the zero constraint is always there."""
    gaps = [J(pi, c) - J(pi_E, c) for pi, pi_E in zip(learners, experts, strict=True)]
    return max(0.0, float(np.mean(gaps) / T))
