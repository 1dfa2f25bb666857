"""How many demonstrations are enough, and of which task more would help most.

What would be learned from more or fewer demonstrations is tried out on resampled ones: of each task
f times as many as there are, drawn with repetition. The *spread* of what is learned is, for a class
with numbers, the half-width of their 95% intervals relative to them (the widest); for a table, the
mean share of forbidden cells that change, 1 - IoU. It falls like f^-b: b is fitted, and from it
follows how many are needed for a spread that somebody wants. It is what other demonstrations by the
same demonstrators would change, not how far these are from their limit.

Beside it the paper's lemma: how many *tasks* bound the payoff of every constraint of a finite class
at once, to that share of what an episode can cost. It needs no data, holds for the worst of all
worlds, and is mostly far above what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ringfence.analysis import theory
from ringfence.analysis.intervals import LEVEL, steps_of
from ringfence.analysis.played import Played
from ringfence.constraints.classes import TableClass
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, NotHere
from ringfence.players.player import Begun

FACTORS = (0.25, 0.5, 1.0, 2.0)
SUFFICIENCY = 41  # its stream of random numbers
RESAMPLES = 40
#: Slopes of a spread over the number of demonstrations that are believed: a flatter one says that
#: more don't help, a steeper one is noise (errors fall like f^-1/2, edges like f^-1).
FLATTEST, STEEPEST = 0.1, 1.0
CONFIDENCE = 0.05

Fit = Callable[[Sequence[Behaviour]], Array]


def sufficiency(played: Played, wanted: float) -> dict[str, Any] | NotHere:
    """How many demonstrations give a spread of `wanted`, and of which task more help most."""
    if not 0 < wanted < 1:
        raise InvalidInput(f"the spread that is wanted must be between 0 and 1, got {wanted}")
    form, table = played.family.form, isinstance(played.family.convex, TableClass)
    if not table and (form is None or not form.names):
        return NotHere(
            f"the class {played.family.text!r} has neither numbers with a meaning nor cells, so "
            "what more demonstrations would change has no measure"
        )
    fit = fit_of(played)
    if fit is None:
        return NotHere("the first constraint was selected, which answers to no learner")
    sizes = np.array([len(d.train) for d in played.demos])
    spread = changed_cells if table else relative_width

    def at(factors: Array) -> float:
        return spread(resampled(fit, played, np.ceil(factors * sizes).astype(int)))

    every = np.ones(len(sizes))
    curve = [{"factor": f, "demonstrations": int(np.ceil(f * sizes).sum()), "spread": at(f * every)}
             for f in FACTORS]  # fmt: skip
    now = next(row["spread"] for row in curve if row["factor"] == 1.0)
    doubled = [at(np.where(np.arange(len(sizes)) == k, 2.0, 1.0)) for k in range(len(sizes))]
    best = int(np.argmin(doubled))
    return {
        "wanted": wanted,
        "measure": "share of forbidden cells" if table else "half-width relative to the number",
        "now": now,
        "curve": curve,
        **needed(curve, now, wanted, int(sizes.sum())),
        "tasks": [
            {"task": d.task, "demonstrations": int(n), "spread_if_doubled": value}
            for d, n, value in zip(played.demos, sizes, doubled, strict=True)
        ],
        "ask_for": played.demos[best].task,
        "theory": lemma(played, wanted),
    }


def fit_of(played: Played) -> Fit | None:
    """experts [K] -> the numbers [k] or the forbidden cells of what the player would have learned
    from them, answering to the same learners."""
    begun = played.player if isinstance(played.player, Begun) else None
    player = begun.player if begun is not None else played.player
    learners = list(played.before)
    if begun is not None and (begun.keep or not learners):
        learners = [begun.first, *learners]
    if not learners:
        return None
    form, table = played.family.form, played.family.convex
    own = getattr(player, "F_c", None)
    # A restricted class is zero where demonstrators were: where these were, not all of them.
    restricted = isinstance(own, TableClass) and own.zero is not None

    def fit(experts: Sequence[Behaviour]) -> Array:
        asked: Any = player
        if restricted and table is not None:
            asked = replace(asked, F_c=table.restricted(experts))
        try:
            c = asked.update(experts, learners)
        except InvalidInput:  # payoff: these few are in no constraint's budget
            return np.full(1 if form is None else len(form.names), np.nan)
        if form is None:
            values: Array = getattr(c, "values")  # noqa: B009
            return (values > 0).ravel().astype(np.float64)
        theta = form.theta_of(c)
        assert theta is not None
        return theta

    return fit


def resampled(fit: Fit, played: Played, sizes: Any) -> Array:
    """What is learned [RESAMPLES, k] from so many demonstrations of each task."""
    rng = np.random.default_rng([played.seed, SUFFICIENCY])
    found = []
    for _ in range(RESAMPLES):
        drawn = [
            [d.train[n] for n in rng.integers(len(d.train), size=size)]
            for d, size in zip(played.demos, sizes, strict=True)
        ]
        found.append(fit([steps_of(trajectories) for trajectories in drawn]))
    known = [x for x in found if not np.isnan(x).any()]
    return np.array(known)


def relative_width(samples: Array) -> float:
    """Of numbers [n, k]: the widest 95% interval's half-width, relative to the number."""
    low, high = np.quantile(samples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    middle = np.maximum(np.abs(np.median(samples, axis=0)), 1e-300)
    return float(((high - low) / 2 / middle).max())


def changed_cells(samples: Array) -> float:
    """Of forbidden cells [n, cells]: 1 - IoU with those that most samples forbid, on the mean."""
    usual = np.mean(samples, axis=0) > 0.5
    both = (samples > 0) & usual
    either = (samples > 0) | usual
    return float(np.mean(1 - both.sum(axis=1) / np.maximum(either.sum(axis=1), 1)))


def needed(
    curve: Sequence[dict[str, Any]], now: float, wanted: float, total: int
) -> dict[str, Any]:
    """slope b, and the demonstrations for the spread that is wanted; None where more don't help."""
    known = [(row["factor"], row["spread"]) for row in curve if row["spread"] > 0]
    if now <= wanted:
        return {"slope": None, "needed": total, "more": 0}
    factor, spread = np.log(np.array(known)).T
    slope = -float(np.polyfit(factor, spread, 1)[0])
    if slope < FLATTEST:
        return {"slope": slope, "needed": None, "more": None}
    enough = int(np.ceil(total * (now / wanted) ** (1 / min(slope, STEEPEST))))
    return {"slope": slope, "needed": enough, "more": enough - total}


def lemma(played: Played, wanted: float) -> dict[str, Any]:
    """The paper's K for an accuracy of `wanted` of an episode's cost, c in [0, 1]; a class with
    numbers counts as many constraints as there are steps of `wanted` in each of them."""
    form, cells = played.family.form, played.cells
    if form is not None:
        size = int(np.ceil(1 / wanted)) ** len(form.names)
    else:
        shape = played.family.convex.shape if cells is None else cells.shape  # type: ignore[union-attr]
        size = 2 ** int(np.prod(shape))
    K, w = len(played.demos), 2.0
    accuracy = theory.epsilon_for(K, CONFIDENCE, size, w)
    return {
        "tasks_needed": theory.tasks_needed(wanted, CONFIDENCE, size, w),
        "tasks": K,
        "accuracy_of_these": accuracy,
        "vacuous": theory.vacuous(accuracy, w) or accuracy >= 1.0,
        "confidence": CONFIDENCE,
        "class_size_log2": float(np.log2(float(size)))
        if form is not None
        else float(np.prod(shape)),
    }


def in_words(found: dict[str, Any]) -> list[str]:
    """As a person wants to read it."""
    have = sum(task["demonstrations"] for task in found["tasks"])
    said = [f"{have} demonstrations: a spread of {found['now']:.2%} ({found['measure']}); wanted "
            f"{found['wanted']:.2%}"]  # fmt: skip
    said += [f"  {row['demonstrations']} demonstrations: {row['spread']:.2%}"
             for row in found["curve"]]  # fmt: skip
    if found["more"] == 0:
        said.append("that is enough")
    elif found["more"] is None:
        said.append(
            "more demonstrations by the same people would not narrow it: look for other tasks, or "
            "for demonstrators who agree"
        )
    else:
        said.append(f"about {found['more']} more demonstrations are needed ({found['needed']} in "
                    f"all); most useful are those of {found['ask_for']!r}")  # fmt: skip
    lemma = found["theory"]
    said.append(
        f"the paper's lemma asks for {lemma['tasks_needed']:,} tasks (there are {lemma['tasks']}); "
        f"these guarantee payoffs to {lemma['accuracy_of_these']:.2g} of an episode's cost"
        + (": it says nothing here (vacuous)" if lemma["vacuous"] else "")
    )
    return said
