"""How often verdicts are right: saturation on demonstrators of known kind, and intervals on games
that are played hundreds of times. Nothing of it is trained.

Every data set has a number, from which all its randomness comes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringfence.analysis.intervals import drawn, parameter_interval
from ringfence.analysis.saturation import AGREE, BAND, PRESSING, USED_UP, saturation
from ringfence.binomial import binomial_interval
from ringfence.reproduce.rows import Found, Row, Rows
from ringfence.reproduce.simulated import KINDS
from ringfence.reproduce.small_games import EPISODES, WORLDS, SmallWorld, played
from ringfence.reproduce.study import Study

#: The oracle's interval is that of the estimates on all data sets, at the intervals' level.
CENTRAL = (0.025, 0.975)


def numbers(study: Study) -> range:
    """Of the data sets."""
    first = int(study.options["first"])
    return range(first, first + (study.seeds or int(study.options["data_sets"])))


def saturation_kinds(study: Study) -> Found:
    """The confusion table: what the check says of demonstrators of each kind."""
    rows: Rows = []
    for k, (name, make) in enumerate(KINDS.items()):
        said, truth = [], []
        for n in numbers(study):
            d = make(np.random.default_rng([n, k]))
            found = saturation(d.template, name, d.trajectories, d.budget, d.true_cost)
            said.append(found.severity == "ok")
            truth.append(d.saturated)
        study.say(f"  {name}: {sum(said)} of {len(said)} are called saturated")
        row: Row = {"kind": name, "data_sets": len(said), "called_saturated": sum(said)}
        row |= {"called_not": len(said) - sum(said), "truth": truth_words(truth[0])}
        if truth[0] is not None:
            row |= share("right", [a == b for a, b in zip(said, truth, strict=True)])
        rows.append(row)
    judged = [row for row in rows if "right" in row]
    facts = {"agree": AGREE, "pressing": PRESSING, "band": BAND, "used_up": USED_UP}
    return Found(rows, {**facts, "least_right": min(row["right"] for row in judged)})


def truth_words(saturated: bool | None) -> str:
    return {True: "saturated", False: "not saturated", None: "either"}[saturated]


def share(name: str, holds: Sequence[bool]) -> Row:
    count = int(sum(holds))
    low, high = binomial_interval(count, len(holds))
    return {name: count / len(holds), f"{name}_low": low, f"{name}_high": high}


def interval_coverage(study: Study) -> Found:
    """How often intervals hold the truth, and how wide they are beside the oracle's."""
    rows: Rows = []
    for name, make in WORLDS.items():
        world = make()
        value, low, high, a, b = np.array(
            [outcome(world, n, int(study.options["resamples"])) for n in numbers(study)]
        ).T
        width, oracle = float((high - low).mean()), float(np.ptp(np.quantile(value, CENTRAL)))
        row: Row = {"world": name, "data_sets": len(value), "true": world.true}
        row |= share("covered", list((low <= world.true) & (world.true <= high)))
        row |= share("narrow", list((a <= world.true) & (world.true <= b)))
        row |= {"mean": float(value.mean()), "width": width, "oracle": oracle}
        rows.append({**row, "ratio": width / oracle})
        study.say(f"  {name}: {rows[-1]['covered']:.1%} covered")
    return Found(rows, {"episodes": EPISODES, "shares": f"{USED_UP:.0%} to 100%"})


def outcome(world: SmallWorld, n: int, resamples: int) -> tuple[float, ...]:
    """A game's estimate, its interval, and what resampled demonstrations alone would give."""
    game = played(world, n, resamples)
    found = parameter_interval(game)
    assert isinstance(found, dict)
    ((low, high),) = found["parameters"].values()
    (value,) = world.family.parameters(game.c).values()
    return (value, low, high, *np.quantile(drawn(game, game.player, game.before), CENTRAL))
