"""The constraint of any form that costs the learners most while the experts keep a budget.

    max_theta  mean_j J(pi_j, c_theta)   subject to   J(pi_E^k, c_theta) <= budget for all k

Conjunctions: costs add up and each part has a budget of its own, so the parts are found apart.

Conditionals, "speed <= ? while altitude <= ?": the more steps the condition holds in, the more an
expert costs. So each condition has a tightest limit, and each limit a widest condition. With a
budget of 0 and one number in the limit, the tightest limit is the experts' highest value where the
condition holds. It rises only where the condition takes in a step that is higher than all before,
so the best condition ends just before such a step: all of these are tried (exact up to `MOST_ENDS`
of them). Else quantiles are tried, and then values around the best.

Regions: players/region_search.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ringfence.constraints.conjunction import Conjunction
from ringfence.constraints.regions import RegionForm
from ringfence.constraints.template import LIMIT, Template
from ringfence.constraints.written import ConditionalForm, ConjunctionForm, Form
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Constraint
from ringfence.players.region_search import fit_region
from ringfence.players.search import LEARNER_POINTS, Group, best_within, bisect, tightest

MOST_ENDS = 513  # conditions that are tried
ENDS_AT_ONCE = 33  # where each takes a search of its own
ZOOMS = 3


def fit(
    form: Form, experts: Sequence[Behaviour], learners: Sequence[Behaviour], budget: float
) -> Constraint:
    """The constraint; InvalidInput where none of the class leaves the budget."""
    if isinstance(form, ConjunctionForm):
        return Conjunction(tuple(fit(p, experts, learners, budget) for p in form.parts))
    if isinstance(form, RegionForm):
        return fit_region(form, experts, learners, budget)
    if isinstance(form, ConditionalForm):
        return form.constraint(_conditional(form, experts, learners, budget))
    if isinstance(form, Template):
        stated = not form.names
        theta = np.zeros(0) if stated else best_within(form, experts, learners, budget)
        return form.constraint(theta)
    raise InvalidInput(f"class {form.text!r}: the payoff player can't search it")


# Conditionals ------------------------------------------------------------------------------------


def _conditional(
    form: ConditionalForm,
    experts: Sequence[Behaviour],
    learners: Sequence[Behaviour],
    budget: float,
) -> Array:
    every = max(1, sum(len(pi.visits) for pi in learners) // LEARNER_POINTS)
    thin = [
        replace(pi, features=pi.features[::every], visits=every * pi.visits[::every])
        for pi in learners
    ]
    if not form.condition.names:
        inside, others = _where(form, 0.0, experts), _where(form, 0.0, thin)
        return best_limit(form.limit, inside, others, budget)
    search = _Conditions(form, experts, thin, budget)
    theta = search.theta(search.best_end())
    if not search.admissible(theta):
        raise InvalidInput(
            f"class {form.text!r}: no constraint of it leaves the experts within a budget of "
            f"{budget:g} per episode; give a larger --expert-budget or another class"
        )
    return search.widened(theta)


class _Conditions:
    """The condition holds where a step's height is at most its end: h(phi) <= end."""

    def __init__(
        self,
        form: ConditionalForm,
        experts: Sequence[Behaviour],
        learners: Sequence[Behaviour],
        budget: float,
    ) -> None:
        self.form, self.experts, self.learners, self.budget = form, experts, learners, budget
        self.heights = np.concatenate([form.condition.fixed(pi.features) for pi in experts])
        others = [form.condition.fixed(pi.features) for pi in learners]
        self.seen = np.unique(np.concatenate([self.heights, *others]))
        self.sign = -float(form.condition.psi(experts[0].features[:1])[0, 0])

    def theta(self, end: float) -> Array:
        """The best limit under the condition that ends there, and the condition's own number."""
        inside, others = (_where(self.form, end, group) for group in (self.experts, self.learners))
        limit = best_limit(self.form.limit, inside, others, self.budget)
        return np.append(limit, end / self.sign)

    def payoff(self, theta: Array) -> float:
        c = self.form.constraint(theta)
        if not self.admissible(theta):
            return -np.inf
        costs = [float(pi.visits @ c.cost(pi.features)) for pi in self.learners]
        return float(np.mean(costs)) if costs else 0.0

    def admissible(self, theta: Array) -> bool:
        c = self.form.constraint(theta)
        return all(float(pi.visits @ c.cost(pi.features)) <= self.budget for pi in self.experts)

    def best_end(self) -> float:
        """Where learners pay most; some expert must have been where the condition holds."""
        if self.form.limit.names == (LIMIT,) and self.budget == 0:
            return float(max(self._records(), key=self._value))
        low, high = -np.inf, np.inf
        for _ in range(ZOOMS):
            ends = self._quantiles(low, high)
            at = max(range(len(ends)), key=lambda n: self._value(float(ends[n])))
            low, high = ends[max(at - 1, 0)], ends[min(at + 1, len(ends) - 1)]
        return float(ends[at])

    def _value(self, end: float) -> tuple[float, float]:
        """Among equals the condition that holds in the fewest steps."""
        return self.payoff(self.theta(end)), -end

    def _records(self) -> Array:
        """Just before each step that is higher than all before it, in the condition's order."""
        limit = np.concatenate([self.form.limit.fixed(pi.features) for pi in self.experts])
        visited = np.concatenate([pi.visits for pi in self.experts]) > 0
        order = np.lexsort((-limit[visited], self.heights[visited]))
        heights, limit = self.heights[visited][order], limit[visited][order]
        rises = np.flatnonzero(limit[1:] > np.maximum.accumulate(limit)[:-1]) + 1
        ends = np.nextafter(heights[rises], -np.inf)
        ends = np.unique([*ends[ends >= heights[0]], self.seen[-1]])
        return _thinned(ends, MOST_ENDS)

    def _quantiles(self, low: float, high: float) -> Array:
        heights = np.unique(self.heights)
        return _thinned(heights[(heights >= low) & (heights <= high)], ENDS_AT_ONCE)

    def widened(self, theta: Array) -> Array:
        """The same limit under the widest condition that leaves the experts their budget, which
        ends at the last step that anyone took within it."""
        widest = np.append(theta[:-1], self.seen[-1] / self.sign)
        if not self.admissible(widest):
            widest = bisect(self.admissible, theta, widest)
        within = self.seen[self.seen <= widest[-1] * self.sign]
        return np.append(theta[:-1], within[-1] / self.sign)


def _where(form: ConditionalForm, end: float, group: Sequence[Behaviour]) -> list[Behaviour]:
    """The steps in which the condition holds, of those who took one."""
    found = []
    for pi in group:
        inside = form.condition.fixed(pi.features) <= end
        if inside.any():
            found.append(replace(pi, features=pi.features[inside], visits=pi.visits[inside]))
    return found


def best_limit(
    limit: Template, experts: Sequence[Behaviour], learners: Sequence[Behaviour], budget: float
) -> Array:
    """As best_within, faster where only the right side is unknown: the tightest is best."""
    if not limit.names:
        return np.zeros(0)
    if not experts:
        raise InvalidInput(f"class {limit.text!r}: no expert was ever where its condition holds")
    if limit.names == (LIMIT,):
        return tightest([Group.of(limit, pi) for pi in experts], budget)
    return best_within(limit, experts, learners, budget)


def _thinned(values: Array, most: int) -> Array:
    """At most so many of sorted values, the first and the last among them."""
    if len(values) <= most:
        return values
    return np.asarray(values[np.linspace(0, len(values) - 1, most).round().astype(int)])
