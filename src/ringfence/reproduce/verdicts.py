"""How often verdicts are right: saturation on demonstrators of known kind, and intervals on games
that are played hundreds of times. Nothing of it is trained.

Every data set has a number, from which all its randomness comes. What is found for a kind or a
world is kept, so that a killed study goes on after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ringfence.analysis.intervals import drawn, parameter_interval
from ringfence.analysis.saturation import (
    AGREE,
    BAND,
    PRESSING,
    PRESSING_FARTHEST,
    USED_UP,
    saturation,
)
from ringfence.binomial import binomial_interval
from ringfence.reproduce.rows import Found, Row, Rows
from ringfence.reproduce.simulated import KINDS
from ringfence.reproduce.small_games import EPISODES, WORLDS, SmallWorld, played
from ringfence.reproduce.study import Study, kept

#: The oracle's interval is that of the estimates on all data sets, at the intervals' level.
CENTRAL = (0.025, 0.975)
#: What is kept is of these.
SETTINGS = {
    **{"agree": AGREE, "pressing": PRESSING, "farthest": PRESSING_FARTHEST, "band": BAND},
    "used_up": USED_UP,
}


def numbers(study: Study) -> range:
    """Of the data sets."""
    first = int(study.options["first"])
    return range(first, first + (study.seeds or int(study.options["data_sets"])))


def saturation_kinds(study: Study) -> Found:
    """The confusion table: what the check says of demonstrators of each kind."""
    rows: Rows = []
    for k, name in enumerate(KINDS):
        document = {**SETTINGS, "kind": name, "numbers": list(numbers(study))}
        rows.append(kept("saturation", document, partial(kind_row, k, numbers(study))))
        study.say(f"  {name}: {rows[-1]['called_saturated']} are called saturated")
    least = min(row["right"] for row in rows if "right" in row)
    return Found(rows, {**SETTINGS, "least_right": least})


def kind_row(k: int, data_sets: Sequence[int]) -> Row:
    """The k-th kind: how often its demonstrators are called saturated, and whether rightly."""
    name, make = list(KINDS.items())[k]
    said, truth = [], None
    for n in data_sets:
        d = make(np.random.default_rng([n, k]))
        found = saturation(d.template, name, d.trajectories, d.budget, d.true_cost)
        said.append(found.severity == "ok")
        truth = d.saturated
    words = {True: "saturated", False: "not saturated", None: "either"}[truth]
    row: Row = {"kind": name, "truth": words, "data_sets": len(said)}
    row |= {"called_saturated": sum(said), "called_not": len(said) - sum(said)}
    return row if truth is None else row | share("right", [s == truth for s in said])


def share(name: str, holds: Sequence[bool]) -> Row:
    count = int(sum(holds))
    low, high = binomial_interval(count, len(holds))
    return {name: count / len(holds), f"{name}_low": low, f"{name}_high": high}


def interval_coverage(study: Study) -> Found:
    """How often intervals hold the truth, and how wide they are beside the oracle's."""
    rows: Rows = []
    for name in WORLDS:
        resamples = int(study.options["resamples"])
        document = {
            "used_up": USED_UP,
            "world": name,
            "numbers": list(numbers(study)),
            "of": resamples,
        }
        made = partial(world_row, name, numbers(study), resamples)
        rows.append(kept("intervals", document, made))
        study.say(f"  {name}: {rows[-1]['covered']:.1%} covered")
    return Found(rows, {"episodes": EPISODES, "shares": f"{USED_UP:.0%} to 100%"})


def world_row(name: str, data_sets: Sequence[int], resamples: int) -> Row:
    world = WORLDS[name]()
    value, low, high, a, b = np.array([outcome(world, n, resamples) for n in data_sets]).T
    width, oracle = float((high - low).mean()), float(np.ptp(np.quantile(value, CENTRAL)))
    row: Row = {"world": name, "data_sets": len(value), "true": world.true}
    row |= share("covered", list((low <= world.true) & (world.true <= high)))
    row |= share("narrow", list((a <= world.true) & (world.true <= b)))
    row |= {"mean": float(value.mean()), "width": width, "oracle": oracle}
    return {**row, "ratio": width / oracle if oracle > 0 else None}


def outcome(world: SmallWorld, n: int, resamples: int) -> tuple[float, ...]:
    """A game's estimate, its interval, and what resampled demonstrations alone would give."""
    game = played(world, n, resamples)
    found = parameter_interval(game)
    assert isinstance(found, dict)
    ((low, high),) = found["parameters"].values()
    (value,) = world.family.parameters(game.c).values()
    return (value, low, high, *np.quantile(drawn(game, game.player, game.before), CENTRAL))
