"""Where demonstrations stop, for a class with one unknown.

An episode's *edge* is the tightest parameter under which it costs no more than the budget; that of
several episodes the tightest under which they do so on average; of several tasks, the loosest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringfence.constraints.template import Template
from ringfence.objects import Array, Trajectory, behaviour_of
from ringfence.players.search import best_within

#: Cost per step that is no violation but rounding: of a slope, at the parameter of a step itself.
ROUNDING = 1e-9
#: Parameters between the episodes' edges at which costs are known; others are interpolated.
GRID = 129
MOST_DOUBLINGS, HALVINGS = 200, 60  # of the interval in which an edge is


def edges(template: Template, trajectories: Sequence[Trajectory], budget: float) -> Array:
    """Each episode's edge [n]."""
    allowed = np.array([max(budget, ROUNDING * len(t)) for t in trajectories])
    found = _bisected(template, trajectories, allowed)
    if found is not None:
        return found
    pairs = zip(map(behaviour_of, ([t] for t in trajectories)), allowed, strict=True)
    return np.array([best_within(template, [pi], [], float(most))[0] for pi, most in pairs])


@dataclass(frozen=True, eq=False)
class Steps:
    """Episodes side by side: raw = (fixed + psi theta) / scale, each [n, T]; what lies behind an
    episode's end costs nothing under any parameter."""

    fixed: Array
    psi: Array
    scale: float

    @classmethod
    def of(cls, template: Template, trajectories: Sequence[Trajectory]) -> Steps:
        shape = (len(trajectories), max(map(len, trajectories)))
        fixed, psi = np.full(shape, -1.0), np.zeros(shape)
        for n, t in enumerate(trajectories):
            fixed[n, : len(t)] = template.fixed(t.features)
            psi[n, : len(t)] = template.psi(t.features)[:, 0]
        return cls(fixed, psi, template.scale)

    def cost(self, theta: Array | float) -> Array:
        """Of each episode under its own parameter [n, 1], or under one for all: [n]."""
        raw = (self.fixed + self.psi * theta) / self.scale
        return np.asarray(np.log1p(np.maximum(raw, 0)).sum(axis=1))


def _bisected(
    template: Template, trajectories: Sequence[Trajectory], allowed: Array
) -> Array | None:
    """All edges at once, where the class is one-sided here; None where it isn't, or has none."""
    if not one_sided(template, trajectories):
        return None
    steps, side = Steps.of(template, trajectories), loosens(template, trajectories)
    values = [side * critical(template, t.features) for t in trajectories]
    if any(np.isnan(v).all() for v in values):
        return None
    good = side * np.array([[np.nanmax(v)] for v in values])
    if (steps.cost(good) > allowed).any():
        return None
    reach = max(float(np.nanmax(v) - np.nanmin(v)) for v in values) + 1e-9 * np.abs(good).max()
    for _ in range(MOST_DOUBLINGS):
        bad = good - side * reach
        if (steps.cost(bad) > allowed).all():
            break
        reach *= 2
    for _ in range(HALVINGS):
        middle = (good + bad) / 2
        inside = (steps.cost(middle) <= allowed)[:, None]
        good, bad = np.where(inside, middle, good), np.where(inside, bad, middle)
    return np.asarray(good[:, 0])


def critical(template: Template, phi: Array) -> Array:
    """The parameter at which each step is just at the limit: phi [n, d] -> [n]; NaN where the step
    is the same under every parameter."""
    psi = template.psi(phi)[:, 0]
    unmoved = np.full(len(phi), np.nan)
    return np.asarray(np.divide(-template.fixed(phi), psi, out=unmoved, where=psi != 0))


def loosens(template: Template, trajectories: Sequence[Trajectory]) -> float:
    """+1 where a larger parameter allows more, -1 where it allows less."""
    psi = np.concatenate([template.psi(t.features)[:, 0] for t in trajectories])
    return -float(np.sign(psi.sum())) or 1.0


def one_sided(template: Template, trajectories: Sequence[Trajectory]) -> bool:
    """Does a larger parameter allow more at every step, or less at every one?"""
    psi = np.concatenate([template.psi(t.features)[:, 0] for t in trajectories])
    return bool((psi >= 0).all() or (psi <= 0).all())


def resampled_edges(
    template: Template,
    tasks: Sequence[Sequence[Trajectory]],
    budget: float,
    resamples: int,
    rng: np.random.Generator,
) -> Array:
    """The edges [resamples + 1] of all tasks' episodes, as they are and then drawn anew with
    replacement; for classes that are one-sided here."""
    found = []
    for own in tasks:
        drawn = rng.multinomial(len(own), np.full(len(own), 1 / len(own)), resamples)
        weights = np.vstack([np.ones(len(own)), drawn]) / len(own)
        found.append(_mean_edges(template, own, budget, weights))
    side = loosens(template, [t for own in tasks for t in own])
    return np.asarray(side * (side * np.array(found)).max(axis=0))


def _mean_edges(
    template: Template, trajectories: Sequence[Trajectory], budget: float, weights: Array
) -> Array:
    """The edges [r] of averages over episodes, weights [r, n].

    An average's edge lies between those of its episodes.
    """
    side, each = loosens(template, trajectories), edges(template, trajectories, budget)
    thetas = side * np.linspace((side * each).min(), (side * each).max(), GRID)  # ever looser
    steps = Steps.of(template, trajectories)
    costs = weights @ np.array([steps.cost(float(theta)) for theta in thetas]).T
    allowed = max(budget, ROUNDING * max(map(len, trajectories)))
    inside = np.maximum((costs <= allowed).argmax(axis=1), 1)
    inside[~(costs <= allowed).any(axis=1)] = GRID - 1  # but for rounding, the last is inside
    rows = np.arange(len(costs))
    above, below = costs[rows, inside - 1], costs[rows, inside]
    gap = np.maximum(above - below, 1e-300)
    share = np.clip((above - allowed) / gap, 0, 1)
    return np.asarray(thetas[inside - 1] + share * (thetas[inside] - thetas[inside - 1]))
