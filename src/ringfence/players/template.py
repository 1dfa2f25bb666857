"""Constraint players over a template: the paper's regression in closed form, and `payoff`.

`TemplateRegression` is least squares to labels +1 (learner) and -1 (expert) with the same total
weight on both sides. With raw = fixed + theta . psi that is

    theta = argmin sum_n w_n (fixed_n + theta . psi_n - label_n)^2;

for "speed <= ?" it is (mean expert + mean learner) / 2, as in the paper.

`PayoffPlayer` says what the demonstrations testify to under a stated budget b: among the
constraints of the class under which every task's experts stay within b, the one that costs the
learners most. For a threshold that is the tightest one that leaves the experts their budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.template import Template
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, J
from ringfence.players.convex import History
from ringfence.players.search import best_within


@dataclass(frozen=True)
class TemplateRegression:
    """The paper's player. T: an episode's length, in which the payoff is measured."""

    template: Template
    T: float

    def initial(self) -> LinearConstraint:
        return self.template.none()

    def update(self, experts: Sequence[Behaviour], history: History) -> LinearConstraint:
        learners = [pi for iteration in history for pi in iteration]
        return self.template.constraint(regress(self.template, experts, learners))

    def best_payoff(self, experts: Sequence[Behaviour], learners: Sequence[Behaviour]) -> float:
        """The payoff of the constraint that the regression finds against these learners alone."""
        return payoff(self.update(experts, [learners]), experts, learners, self.T)


@dataclass(frozen=True)
class PayoffPlayer:
    """max_c sum_j J(pi_j, c) over {c in class : J(pi_E^k, c) <= budget for all k}."""

    template: Template
    T: float
    budget: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.budget < np.inf:
            raise InvalidInput(f"the experts' budget must be at least 0, got {self.budget}")

    def initial(self) -> LinearConstraint:
        return self.template.none()

    def update(self, experts: Sequence[Behaviour], history: History) -> LinearConstraint:
        learners = [pi for iteration in history for pi in iteration]
        theta = best_within(self.template, experts, learners, self.budget)
        return self.template.constraint(theta)

    def best_payoff(self, experts: Sequence[Behaviour], learners: Sequence[Behaviour]) -> float:
        theta = best_within(self.template, experts, learners, self.budget)
        return payoff(self.template.constraint(theta), experts, learners, self.T)


def payoff(
    c: LinearConstraint, experts: Sequence[Behaviour], learners: Sequence[Behaviour], T: float
) -> float:
    """max(0, 1/(TK) sum_k J(pi^k, c) - J(pi_E^k, c)): the zero constraint is always there."""
    gaps = [J(pi, c) - J(pi_E, c) for pi, pi_E in zip(learners, experts, strict=True)]
    return max(0.0, float(np.mean(gaps) / T))


def regress(
    template: Template, experts: Sequence[Behaviour], learners: Sequence[Behaviour]
) -> Array:
    """The least-squares parameters [k], from the normal equations in scaled coordinates."""
    E, L = moments(template, experts), moments(template, learners)
    # sum w psi psi^T theta = sum w psi (label - fixed), experts and learners of weight 1 each.
    return solve_normal(E[0] + L[0], L[1] - E[1] - E[2] - L[2])


def moments(template: Template, group: Sequence[Behaviour]) -> tuple[Array, Array, Array]:
    """Means over a group's steps of psi psi^T [k, k], psi [k] and psi * fixed [k]."""
    total = sum(pi.length for pi in group)
    if not total > 0:
        raise InvalidInput("the regression needs experts and learners that took at least a step")
    k = len(template.names)
    second, first, cross = np.zeros((k, k)), np.zeros(k), np.zeros(k)
    for pi in group:
        psi, w = template.psi(pi.features), pi.visits / total
        second += (w[:, None] * psi).T @ psi
        first += w @ psi
        cross += (w * template.fixed(pi.features)) @ psi
    return second, first, cross


def solve_normal(A: Array, b: Array) -> Array:
    """A x = b for a positive semi-definite A; directions without data keep x = 0."""
    scale = np.sqrt(np.maximum(np.diag(A), 1e-300))
    x = np.linalg.lstsq(A / np.outer(scale, scale), b / scale, rcond=1e-12)[0]
    return np.asarray(x / scale)
