"""The paper's constraint player: least squares to labels +1 (learner) and -1 (expert).

Learners and experts have the same total weight, over all iterations so far (the paper's code draws
its batches so). Over tables the fit is, per cell, (L - E) / (L + E) with the shares L and E of
learner and expert visits there. Over a template, raw = (fixed + theta . psi) / scale, it is

    theta = argmin sum_n w_n (fixed_n + theta . psi_n - scale label_n)^2;

for "speed <= ?" that is (mean expert + mean learner) / 2. Networks: players/network.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

import numpy as np

from ringfence.constraints.classes import ConstraintClass, LinearClass, TableClass, with_constant
from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.template import Template
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Constraint
from ringfence.players import patches
from ringfence.players.least_squares import least_squares_under, solve_normal
from ringfence.players.player import ConstraintPlayer, Ground, History, payoff, payoff_gradient

#: A cell is forbidden where the regression's fit exceeds this (the paper's threshold).
FORBIDDEN_FIT = 0.5
#: Of a raw value: by so much more than needed experts are inside a constraint that they must keep.
ROUNDING = 1e-9


@dataclass(frozen=True)
class NetworkFit:
    """How a network is fitted; players/network.py says more."""

    hidden: tuple[int, ...] = (128, 128)  # units of each layer
    learning_rate: float = 3e-4  # of Adam, at first
    final_rate: float = 1.0  # the rate falls linearly to this share of itself
    steps: int = 5_000  # minibatches
    batch: int = 256  # points of a minibatch, half experts' and half learners'
    penalty: float = 3.0  # weight of the experts' mean cost in the loss of the restricted class
    spread: float | None = None  # points by squares of this side (None: by visits)
    places: bool = False  # fit what hangs together (players/patches.py), on up to 3 features
    stream: tuple[int, ...] = (50,)  # random numbers come from (the run's seed, *stream)


@dataclass(frozen=True)
class Config:
    """The paper's practical player: least squares to labels +1 (learner) and -1 (expert).

    restricted: only constraints under which the experts are safe (Algorithm 3); weighted: the
    learners' data weighted by their multipliers; tolerance: what an expert's episode may cost under
    a network (None: 0 in the multi-task game, no bound else); network: how one is fitted.
    """

    kind: Literal["regression"] = "regression"
    restricted: bool = True
    weighted: bool = False
    tolerance: float | None = None
    network: NetworkFit = field(default_factory=NetworkFit)


def make(config: Config, ground: Ground) -> ConstraintPlayer:
    family = ground.family
    if config.tolerance is not None and not family.is_network:
        raise InvalidInput("[player] tolerance is for the class 'mlp'; payoff has expert_budget")
    if family.convex is not None:
        F_c = family.convex.restricted(ground.experts) if config.restricted else family.convex
        return Regression(F_c, ground.T)
    if family.template is not None:
        restricted = ground.multi_task and config.restricted
        return TemplateRegression(family.template, ground.T, restricted)
    from ringfence.players.network import MLPRegression  # needs JAX

    tolerance = 0.0 if ground.multi_task and config.tolerance is None else config.tolerance
    settings = asdict(config.network)
    names = [f.name for f in family.features]
    places = patches.places(ground, [names.index(n) for n in family.used])
    settings["places"] = places if settings["places"] and ground.multi_task else None
    return MLPRegression(
        family.features,
        ground.T,
        (ground.seed, *settings.pop("stream")),
        used=family.on or None,
        tolerance=tolerance if config.restricted else None,
        **settings,
    )


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
            return self.F_c.constraint(np.zeros(self.F_c.shape))
        return LinearConstraint(self.F_c.features, np.zeros(len(self.F_c.features)), 0.0)

    def update(self, experts: Sequence[Behaviour], history: History) -> Constraint:
        learners = [pi for iteration in history for pi in iteration]
        if isinstance(self.F_c, TableClass):
            return self._table(self.F_c, experts, learners)
        return self._linear(self.F_c, experts, learners)

    def _table(
        self, F_c: TableClass, experts: Sequence[Behaviour], learners: Sequence[Behaviour]
    ) -> Constraint:
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
class TemplateRegression:
    """The paper's player. T: an episode's length, in which the payoff is measured; restricted: only
    constraints that forbid no step of an expert (Algorithm 3)."""

    template: Template
    T: float
    restricted: bool = False
    #: What was done before the game, under no constraint of it, would hold its mean back (a fifth
    #: of the error after 20 iterations).
    forgets_first: bool = True

    def initial(self) -> Constraint:
        return self.template.none()

    def update(self, experts: Sequence[Behaviour], history: History) -> Constraint:
        learners = [pi for iteration in history for pi in iteration]
        fit = regress_restricted if self.restricted else regress
        return self.template.constraint(fit(self.template, experts, learners))

    def best_payoff(self, experts: Sequence[Behaviour], learners: Sequence[Behaviour]) -> float:
        """The payoff of the constraint that the regression finds against these learners alone."""
        return payoff(self.update(experts, [learners]), experts, learners, self.T)


def regress(
    template: Template, experts: Sequence[Behaviour], learners: Sequence[Behaviour]
) -> Array:
    """The least-squares parameters [k], from the normal equations in scaled coordinates."""
    E, L = moments(template, experts), moments(template, learners)
    # sum w psi psi^T theta = sum w psi (scale label - fixed), both groups of weight 1.
    return solve_normal(E[0] + L[0], template.scale * (L[1] - E[1]) - E[2] - L[2])


def regress_restricted(
    template: Template, experts: Sequence[Behaviour], learners: Sequence[Behaviour]
) -> Array:
    """The same loss over {theta : fixed + theta . psi <= 0 at every step of an expert}, [k]."""
    groups = (experts, learners)
    w = [np.concatenate([pi.visits for pi in g]) / sum(pi.length for pi in g) for g in groups]
    phi = [np.concatenate([pi.features for pi in g]) for g in groups]
    psi, fixed = ([part(points) for points in phi] for part in (template.psi, template.fixed))
    label = np.concatenate([-template.scale - fixed[0], template.scale - fixed[1]])
    root = np.sqrt(np.concatenate(w))
    met = w[0] > 0
    bound = -fixed[0][met]
    # Rounding must not leave an expert beyond it.
    bound = bound - ROUNDING * (1.0 + np.abs(bound))
    return least_squares_under(
        root[:, None] * np.concatenate(psi), root * label, psi[0][met], bound, template.text
    )


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
