"""The constraint of a template that costs the learners most while the experts keep a budget.

    max_theta  mean_j J(pi_j, c_theta)   subject to   J(pi_E^k, c_theta) <= budget for all k

One parameter: every value at which some point changes sides is a candidate (thinned to
`CANDIDATES` quantiles), and the best one is moved to the edge of what is admissible by bisection
down to neighbouring floats. For a threshold costs are monotone, so this is exact; where the budget
lasts beyond every value that was seen, the bisection goes on from there until it is used up.

Several parameters: the limit, where there is one, is again found by bisection; where there is none
and no coefficient at all is admissible ("? x + ? y <= 1"), so is the coefficients' common size.
What is left, a direction, is found by a pattern search from the best of the axes and of what lies
between them (deterministic, local).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ringfence.constraints.template import LIMIT, Template
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour

CANDIDATES = 65
#: Learners only choose among candidates; their points are thinned to about this many.
LEARNER_POINTS = 5000
#: A pattern search tries steps of these sizes, in units of the coefficients' scale.
STEPS = tuple(0.5 ** np.arange(1, 13))
MOST_COEFFICIENTS = 6
#: With so many coefficients directions between the axes are tried, too (3^k - 1 of them), and the
#: search starts from the best few.
BETWEEN_AXES, PURSUED = 3, 3
PAIRS = 65  # of (parameter, budget) in a curve
MOST_PER_STEP = 700.0  # log(1 + raw) of a raw value that is about the largest float
MOST_DOUBLINGS = 60  # of a size that uses up the budget
VIOLATING = 0.05  # the share of the experts' steps beyond their "p95"


@dataclass(frozen=True, eq=False)
class Group:
    """One behaviour's points: raw = (fixed [n] + psi [n, k] theta) / scale, each met visits [n]
    times."""

    fixed: Array
    psi: Array
    visits: Array
    scale: float = 1.0

    @classmethod
    def of(cls, template: Template, pi: Behaviour, every: int = 1) -> Group:
        phi = pi.features[::every]
        points = template.fixed(phi), template.psi(phi)
        return cls(*points, every * pi.visits[::every], template.scale)

    def cost(self, theta: Array) -> float:
        raw = (self.fixed + self.psi @ theta) / self.scale
        return float(self.visits @ np.log1p(np.maximum(raw, 0)))


@dataclass(frozen=True, eq=False)
class Search:
    """The experts' and learners' points, and the budget."""

    experts: tuple[Group, ...]
    learners: tuple[Group, ...]
    budget: float

    def expert_cost(self, theta: Array) -> float:
        return max(group.cost(theta) for group in self.experts)

    def admissible(self, theta: Array) -> bool:
        return all(group.cost(theta) <= self.budget for group in self.experts)

    def score(self, theta: Array) -> tuple[float, float, float]:
        """What is maximised; among equals the constraint that lies closest to the experts."""
        if not self.admissible(theta):
            return (-self.expert_cost(theta), 0.0, 0.0)
        learners = float(np.mean([g.cost(theta) for g in self.learners])) if self.learners else 0.0
        near = max(float(g.visits @ (g.fixed + g.psi @ theta)) for g in self.experts)
        return (learners, self.expert_cost(theta), near)


def best_within(
    template: Template, experts: Sequence[Behaviour], learners: Sequence[Behaviour], budget: float
) -> Array:
    """The parameters [k]; InvalidInput where no constraint of the class leaves the budget."""
    every = max(1, sum(len(pi.visits) for pi in learners) // LEARNER_POINTS)
    search = Search(
        tuple(Group.of(template, pi) for pi in experts),
        tuple(Group.of(template, pi, every) for pi in learners),
        budget,
    )
    k = len(template.names)
    theta = _one_parameter(template, search) if k == 1 else _several(template, search)
    if not search.admissible(theta):
        raise InvalidInput(
            f"class {template.text!r}: no constraint of it leaves the experts within a budget of "
            f"{budget:g} per episode; the least that was found is {search.expert_cost(theta):.4g}; "
            "give a larger --expert-budget or another class"
        )
    return theta


def _one_parameter(template: Template, search: Search) -> Array:
    thetas = candidates((*search.experts, *search.learners))
    if template.names == (LIMIT,) and all(map(search.admissible, (thetas[0], thetas[-1]))):
        return _tightest(search, np.zeros(1), limit=0)
    best = _best_limit(thetas, search) if template.names == (LIMIT,) else None
    if best is None:
        scores = [search.score(theta) for theta in thetas]
        best = max(range(len(thetas)), key=lambda n: scores[n])
    if not search.admissible(thetas[best]):
        return thetas[best]
    edges = [
        bisect(search.admissible, thetas[best], thetas[n])
        for n in (best - 1, best + 1)
        if 0 <= n < len(thetas) and not search.admissible(thetas[n])
    ]
    return max([thetas[best], *edges], key=search.score)


def _best_limit(thetas: Sequence[Array], search: Search) -> int | None:
    """The tightest admissible one, whose score is the highest, as every part of it grows with
    tightness. There are as many candidates as groups, so trying all takes the square of the number
    of tasks: 16 s for 100 of them, and half an hour for 1,000."""
    tight_first = thetas if search.experts[0].psi[0, 0] < 0 else thetas[::-1]
    low, high = 0, len(thetas)  # all before low are not admissible, all from high on are
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if search.admissible(tight_first[middle]) else (middle + 1, high)
    if low == len(thetas):
        return None
    return low if tight_first is thetas else len(thetas) - 1 - low


def candidates(groups: Sequence[Group]) -> list[Array]:
    """Parameters [1] at which points change sides, from all groups alike, in order."""
    values = []
    for group in groups:
        moved = group.psi[:, 0] != 0
        critical = -group.fixed[moved] / group.psi[moved, 0]
        if len(critical):
            values.append(np.quantile(critical, np.linspace(0, 1, CANDIDATES)))
    if not values:
        raise InvalidInput("the feature that the parameter stands at is 0 in every step")
    return [np.array([v]) for v in np.unique(np.concatenate(values))]


def bisect(inside: Callable[[Array], bool], good: Array, bad: Array) -> Array:
    """The last parameters on the way from `good` to `bad` that are inside."""
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        if inside(good + middle * (bad - good)):
            low = middle
        else:
            high = middle
    return np.asarray(good + low * (bad - good))


def _several(template: Template, search: Search) -> Array:
    limit = template.names.index(LIMIT) if LIMIT in template.names else None
    coefficients = [n for n, name in enumerate(template.names) if name != LIMIT]
    if len(coefficients) > MOST_COEFFICIENTS:
        raise InvalidInput(
            f"the payoff player searches at most {MOST_COEFFICIENTS} coefficients, the class has "
            f"{len(coefficients)}; use --player regression or fewer features"
        )
    scale = _scales(search, coefficients)

    def complete(u: Array) -> Array:
        """All parameters for the coefficients u, in units of their scale."""
        theta = np.zeros(len(template.names))
        if template.scale_free:
            u = u / max(float(np.linalg.norm(u)), 1e-300)
        theta[coefficients] = u / scale
        if limit is not None:
            return _tightest(search, theta, limit)
        return _longest(search, theta) if from_nothing else theta

    from_nothing = search.admissible(np.zeros(len(template.names)))

    def score(u: Array) -> tuple[float, float, float]:
        return search.score(complete(u))

    starts = sorted(directions(len(coefficients)), key=score, reverse=True)
    found = [pattern_search(score, start) for start in starts[:PURSUED]]
    return complete(max(found, key=score))


def directions(k: int) -> list[Array]:
    """Where a search over k coefficients starts: the axes, and between them where k is small."""
    if k > BETWEEN_AXES:
        return [sign * axis for axis in np.eye(k) for sign in (1.0, -1.0)]
    corners = [np.array(signs) for signs in product((0.0, 1.0, -1.0), repeat=k) if any(signs)]
    return sorted(corners, key=lambda u: float(np.abs(u).sum()))


def _scales(search: Search, columns: Sequence[int]) -> Array:
    """The spread of each coefficient's feature over all points, in units of raw."""
    groups = (*search.experts, *search.learners)
    spread = np.concatenate([g.psi[:, columns] for g in groups]).std(axis=0)
    return np.where(spread > 0, spread / search.experts[0].scale, 1.0)


def _tightest(search: Search, theta: Array, limit: int) -> Array:
    """theta with the limit at which the experts just keep their budget."""
    sign = -float(search.experts[0].psi[0, limit])  # raw = ... - sign * limit
    heights = [g.fixed + g.psi @ theta for g in search.experts]
    top, bottom = max(float(h.max()) for h in heights), min(float(h.min()) for h in heights)
    # n steps cost at least n log(1 + depth) under a limit so far below all of them.
    steps = max(float(g.visits.sum()) for g in search.experts)
    depth = float(np.expm1(min(search.budget / steps, MOST_PER_STEP))) * search.experts[0].scale
    good, bad = theta.copy(), theta.copy()
    good[limit] = np.nextafter(top, np.inf) / sign
    bad[limit] = (bottom - max(1.0, top - bottom, depth)) / sign
    return bad if search.admissible(bad) else bisect(search.admissible, good, bad)


def _longest(search: Search, theta: Array) -> Array:
    """theta at the size at which the experts just keep their budget; they keep it at size 0.

    At the first size no step of theirs costs anything. Along a search on coefficients of any size
    the edge of what is admissible is slanted, and steps along the axes get stuck at it.
    """
    slopes = [(g.fixed, g.psi @ theta) for g in search.experts]
    sizes = [float((-fixed[up > 0] / up[up > 0]).min()) for fixed, up in slopes if (up > 0).any()]
    first = min(sizes, default=np.inf)
    if not np.isfinite(first):  # no size costs the experts anything
        return theta
    good = max(first, 0.0) * theta
    if search.budget == 0 or not search.admissible(good):
        return good
    bad = max(first, 1.0) * theta
    for _ in range(MOST_DOUBLINGS):
        bad = 2 * bad
        if not search.admissible(bad):
            return bisect(search.admissible, good, bad)
    return bad


def tightest(experts: Sequence[Group], budget: float) -> Array:
    """The limit [1], of a template without other parameters, that leaves just the budget."""
    search = Search(tuple(experts), (), budget)
    sign = -float(experts[0].psi[0, 0])
    highest = np.array([max(float(g.fixed[g.visits > 0].max()) for g in experts) / sign])
    if budget == 0 and search.admissible(highest):  # nothing above it, and nothing to spend
        return highest
    return _tightest(search, np.zeros(1), limit=0)


def pattern_search(score: Callable[[Array], tuple[float, ...]], start: Array) -> Array:
    """Moves along each axis as long as that is better, with steps that halve."""
    best, value = start, score(start)
    for step in STEPS:
        moved = True
        while moved:
            moved = False
            for axis in np.eye(len(start)):
                for sign in (1.0, -1.0):
                    trial = best + sign * step * axis
                    if (reached := score(trial)) > value:
                        best, value, moved = trial, reached, True
    return best


def budget_curve(template: Template, experts: Sequence[Behaviour]) -> list[tuple[float, float]]:
    """(parameter, budget) pairs that the demonstrations can't tell apart.

    Experts who were allowed J(pi_E, c_theta) under theta, and used it up, would have left the
    same demonstrations for each theta: with an unknown budget only this curve is determined.
    """
    if len(template.names) != 1:
        return []
    groups = [Group.of(template, pi) for pi in experts]
    low, high = np.quantile(np.concatenate(candidates(groups)), [0.05, 0.99])
    thetas = np.linspace(low, high, PAIRS)
    return [(float(t), max(g.cost(np.array([t])) for g in groups)) for t in thetas]


def expert_levels(template: Template, experts: Sequence[Behaviour]) -> dict[str, float] | None:
    """Of one parameter: where the experts' mean raw value is 0, and the strictest at which at most
    5% of their steps violate ("p95"; left out where every value has more)."""
    if len(template.names) != 1:
        return None
    groups = [Group.of(template, pi) for pi in experts]
    fixed, psi, visits = (
        np.concatenate([getattr(g, name) for g in groups]) for name in ("fixed", "psi", "visits")
    )
    points = Group(fixed, psi, visits)
    weight = float(points.visits @ points.psi[:, 0])
    levels = {"mean": -float(points.visits @ points.fixed) / weight}
    values, shares = violating(points)
    kept = values[shares <= VIOLATING]
    if len(kept):
        levels["p95"] = float(kept[-1] if weight > 0 else kept[0])  # where larger ones forbid more
    return levels


def violating(points: Group) -> tuple[Array, Array]:
    """Every parameter [m] at which points change sides, in order, and the share [m] of the visits
    that violate it: points with psi > 0 under a larger parameter, with psi < 0 under a smaller."""
    psi = points.psi[:, 0]
    moved = psi != 0
    values, at = np.unique(-points.fixed[moved] / psi[moved], return_inverse=True)
    rising, falling = (
        np.bincount(at, points.visits[moved] * side[moved], len(values))
        for side in (psi > 0, psi < 0)
    )
    always = points.visits[~moved & (points.fixed > 0)].sum()
    violate = always + (rising.cumsum() - rising) + (falling.sum() - falling.cumsum())
    return values, violate / points.visits.sum()
