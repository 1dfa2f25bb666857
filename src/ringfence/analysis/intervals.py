"""How sure a game makes a constraint's parameters.

The *interval* is over demonstrations, learners and budget: what the same demonstrators' other
episodes, other learners of the game, and demonstrators who used no more than USED_UP of their
budget would have given. It is as wide on one side as on the
other, by Student's factor wider where episodes are few, and then reaches as far as a smaller
budget takes it.

With one unknown and no stated budget, limit and budget can't be told apart. Then the *curve* is
the answer: an interval of the limit for each of some budgets.

`ringfence reproduce verdicts` measures how often they hold the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from ringfence.analysis.edges import one_sided, resampled_edges
from ringfence.analysis.played import Played
from ringfence.analysis.saturation import CONVENTION, USED_UP
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, J, NotHere, Trajectory, behaviour_of
from ringfence.players.payoff import PayoffPlayer
from ringfence.players.player import Begun, ConstraintPlayer, History
from ringfence.players.regression import TemplateRegression

LEVEL = 0.95
BOOTSTRAP = 40  # its stream of random numbers
#: Budgets of the curve, in units of the paper's per step.
BUDGETS = (0.25, 1.0, 4.0)

NEARLY_ALL = 0.99  # of a budget that is used up
OTHER = "other demonstrations by the same demonstrators"

#: (experts [K], learners [i][K]) -> parameters [k], NaN where the class has no answer.
Fit = Callable[[Sequence[Behaviour], History], Array]


def bootstrap(
    fit: Fit,
    trajectories: Sequence[Sequence[Trajectory]],
    learners: History,
    resamples: int,
    seed: tuple[int, ...],
) -> Array:
    """fit on resampled trajectories of each task and other learners: [resamples, k].

    Whole trajectories are drawn, because steps of one are not independent. In the place of an
    iteration's learners stand its own, or those of the iteration before or after: a game approaches
    its end in the same way with other seeds, and learners differ as neighbours do.
    """
    rng, found = np.random.default_rng([*seed, BOOTSTRAP]), []
    for _ in range(resamples):
        experts = [
            steps_of([task[n] for n in rng.integers(len(task), size=len(task))])
            for task in trajectories
        ]
        last = len(learners) - 1
        beside = [int(rng.integers(max(i - 1, 0), min(i + 1, last) + 1)) for i in range(last + 1)]
        found.append(fit(experts, [learners[n] for n in beside]))
    return np.array(found)


def steps_of(trajectories: Sequence[Trajectory]) -> Behaviour:
    """A behaviour without reward, one row per step."""
    features = np.concatenate([t.features for t in trajectories])
    n = len(trajectories)
    visits = np.full(len(features), 1 / n)
    return Behaviour(features, visits, 0.0, 0.0, len(features) / n, n)


def half_width(samples: Array, centre: Array, episodes: int) -> Array:
    """Around the centre [k] that lie LEVEL of the samples [n, k], for so many episodes [k].

    A resampled mean of n episodes varies by (n - 1) / n less than a mean of fresh ones, and the
    normal distribution's quantile is Student's.
    """
    n, tail = max(episodes, 2), (1 + LEVEL) / 2
    factor = stdtrit(n - 1, tail) / ndtri(tail) * np.sqrt(n / (n - 1))
    return np.asarray(factor * np.quantile(np.abs(samples - centre), LEVEL, axis=0))


def parameter_interval(played: Played) -> dict[str, Any] | NotHere:
    """The interval of the selected constraint's parameters, and their curve."""
    form = played.family.form
    if form is None or not form.names:
        return NotHere(f"the class {played.family.text!r} has no parameters with a meaning each")
    if played.resamples < 1:
        return NotHere("[analysis] resamples is 0")
    begun = played.player if isinstance(played.player, Begun) else None
    player = begun.player if begun is not None else played.player
    learners = list(played.before)
    if begun is not None and (begun.keep or not learners):
        learners = [begun.first, *learners]
    if not learners:
        return NotHere("the first constraint was selected, which answers to no learner")
    found = bounds(played, player, learners)
    if isinstance(found, NotHere):
        return found
    varied = len(learners) > 1 or answers_to_none(played, player)
    over = ["demonstrations", *(["learners"] if varied else [])]
    over += ["budget"] if getattr(player, "budget", 0.0) > 0 else []
    at = None if isinstance(player, PayoffPlayer) else curve(played)
    return {
        "level": LEVEL,
        "resamples": played.resamples,
        "unanswered": found.unanswered,
        "over": over,
        "words": words(over, player) if at is None else curve_words(at),
        "parameters": dict(zip(form.names, found.wide.tolist(), strict=True)),
        "curve": at,
    }


@dataclass(frozen=True, eq=False)
class Bounds:
    """centre [k]; wide [k, 2]; unanswered: resamples that the class has no answer to."""

    centre: Array
    wide: Array
    unanswered: int


def bounds(played: Played, player: ConstraintPlayer, learners: History) -> Bounds | NotHere:
    centre, *rest = drawn(played, player, learners)
    samples = np.array(rest)
    answered = ~np.isnan(samples).any(axis=1)
    if np.isnan(centre).any() or answered.mean() < 0.5:
        return NotHere("most resampled demonstrations are within no constraint's budget")
    if isinstance(player, TemplateRegression):
        # The regression lies between experts and learners, and learners follow their experts:
        # other experts would have moved both, so the answer twice as far as they alone do.
        samples = centre + 2 * (samples - centre)
    width = half_width(samples[answered], centre, min(len(d.train) for d in played.demos))
    low, high = centre - width, centre + width
    if isinstance(player, PayoffPlayer) and player.budget > 0:
        smaller = replace(player, budget=USED_UP * player.budget)
        moved = np.nan_to_num(drawn(replace(played, resamples=0), smaller, learners)[0] - centre)
        low, high = low + np.minimum(moved, 0), high + np.maximum(moved, 0)
    return Bounds(centre, np.column_stack([low, high]), int((~answered).sum()))


def curve(played: Played) -> list[dict[str, float]] | None:
    """The limit's interval for each of some budgets, of a class with one unknown."""
    template, found = played.family.template, []
    if template is None or not has_edge(played):
        return None
    length = max(pi.length for pi in played.experts)
    for share in BUDGETS:
        budget = share * CONVENTION * length
        player = PayoffPlayer(template, length, budget)
        made = bounds(played, player, []) if answers_to_none(played, player) else None
        if isinstance(made, Bounds):
            (value,), ((low, high),) = made.centre.tolist(), made.wide.tolist()
            found.append({"budget": budget, "parameter": value, "low": low, "high": high})
    return found or None


def drawn(played: Played, player: ConstraintPlayer, learners: History) -> Array:
    """The player's parameters [resamples + 1, k]: for the game as it was, then for resamples."""
    trajectories = [d.train for d in played.demos]
    if answers_to_none(played, player):
        assert isinstance(player, PayoffPlayer)
        assert played.family.template is not None
        rng, count = np.random.default_rng((played.seed, BOOTSTRAP)), played.resamples
        edges = resampled_edges(played.family.template, trajectories, player.budget, count, rng)
        return edges[:, None]
    fit = fitting(played, player)
    centre = fit([behaviour_of(task) for task in trajectories], learners)
    samples = bootstrap(fit, trajectories, learners, played.resamples, (played.seed,))
    return np.array([centre, *samples])


def answers_to_none(played: Played, player: ConstraintPlayer) -> bool:
    """Is the demonstrations' edge the player's answer, whatever the learners do?

    It isn't where a budget lasts beyond all that was seen, and the search stops before it.
    """
    if not isinstance(player, PayoffPlayer) or not has_edge(played):
        return False
    experts = [behaviour_of(d.train) for d in played.demos]
    try:
        c = player.update(experts, [])
    except InvalidInput:
        return False
    return max(J(pi_E, c) for pi_E in experts) >= NEARLY_ALL * player.budget


def has_edge(played: Played) -> bool:
    """Has the class one unknown, which allows more at every step, or less at every one?"""
    template, every = played.family.template, [t for d in played.demos for t in d.train]
    return template is not None and len(template.names) == 1 and one_sided(template, every)


def fitting(played: Played, player: ConstraintPlayer) -> Fit:
    """What the player answers, as parameters."""
    form = played.family.form
    assert form is not None

    def fit(experts: Sequence[Behaviour], learners: History) -> Array:
        try:
            theta = form.theta_of(player.update(experts, learners))
        except InvalidInput:  # payoff: these few are in no constraint's budget
            theta = None
        return np.full(len(form.names), np.nan) if theta is None else theta

    return fit


def words(over: Sequence[str], player: ConstraintPlayer) -> str:
    """What an interval covers, as people read it."""
    covered = [OTHER]
    if "learners" in over:
        covered.append("other learners and seeds of the game")
    budget = getattr(player, "budget", None)
    if "budget" in over:
        covered.append(f"demonstrators who use {USED_UP:.0%} to 100% of a budget of {budget:g}")
    said = f"covers {', '.join(covered)}"
    if budget is None:
        return f"{said}; not that demonstrators may have been allowed more, or less"
    return said if budget > 0 else f"{said}; not that demonstrators may have been allowed some cost"


def curve_words(at: Sequence[Mapping[str, float]]) -> str:
    """The answer where there is no single number."""
    pairs = [f"{p['low']:.4g} to {p['high']:.4g} if it was {p['budget']:.3g}" for p in at]
    return (
        "limit and budget can't be told apart, so the limit depends on what an episode was allowed "
        f"to cost: {', '.join(pairs)} ({LEVEL:.0%}; covers {OTHER}, and that they use "
        f"{USED_UP:.0%} to 100% of it). State it (--player payoff --expert-budget) for a number"
    )
