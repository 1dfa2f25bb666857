"""Recorded flights, played: the rule with its interval, how it depends on choices and data, what
the evidence says, and who broke it.

Truth is not known here: tables compare with it afterwards (`flight_rows.py`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from itertools import repeat
from multiprocessing import get_context
from typing import Any

import numpy as np

from ringfence import api
from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence.groups import group_paths
from ringfence.demos.flights import cleaning, positions
from ringfence.demos.flights.airspeed import calibrated_airspeed
from ringfence.demos.flights.cleaning import Flight
from ringfence.demos.flights.passages import Leg, legs, passages, shared_wind
from ringfence.deploy.breaches import breaches
from ringfence.objects import Array, J, Trajectory, behaviour_of
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.flight_games import (
    ALTITUDE,
    KINDS,
    SPEED,
    Learned,
    Settings,
    Shown,
    answer,
    demonstrations,
    experts_of,
    form,
    free_learners,
    learn,
    seen,
    show,
)
from ringfence.reproduce.study import Study, Summary
from ringfence.runs.config import build
from ringfence.worlds.flights import ARRIVAL, DEPARTURE, fastest

PARTS = {"all": KINDS, "departures": (DEPARTURE,), "arrivals": (ARRIVAL,)}
BOOTSTRAP, DRAWS = 11, 12  # streams of random numbers
LEVEL = 0.95
#: Of the air in the band, K: a speed's relative error is half of the temperature's.
KELVIN = 270.0
#: A breach that people should look at: beyond the errors of nearly all, for so many seconds.
ERRORS_QUANTILE, SECONDS = 0.95, 30


@dataclass(frozen=True)
class Plan:
    """What is played of a variant beside the rule.

    sensitivity: other settings, each under a name; sizes: numbers of flights that are drawn, draws
    of them; evidence: cells of it (height, width) with min_paths; game: settings of a whole game
    per class; watched_half: flights that the rule is held against.
    """

    sensitivity: dict[str, dict[str, Any]] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()
    draws: int = 40
    evidence: dict[str, float] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    watched_half: int | None = None


def play(study: Study, variant: Variant, seed: int) -> tuple[Summary, float]:
    """One variant's summary, and the seconds that it took."""
    began = time.monotonic()
    given = variant.get("flights")
    own = {name: given.pop(name) for name in list(given) if name in Plan.__dataclass_fields__}
    settings, plan = build("flights", given, Settings), build("flights", own, Plan)
    table = positions.read(study.data)
    everybody, dropped = cleaning.clean(table)
    chosen = everybody if settings.half is None else cleaning.of_half(everybody, settings.half)
    shown = show(legs(chosen, settings.band), settings)
    study.say(f"  {len(shown.legs)} flights; wind {shown.wind.describe()}")
    learned = {part: learn(shown, kinds) for part, kinds in PARTS.items()}
    samples = resampled(shown, learned, seed, study.processes)
    summary = {
        "schema": 2,
        "settings": asdict(settings),
        "rows": {**asdict(dropped), "used": dropped.used},
        "flights": counted(chosen, shown, learned["all"]),
        "wind": shown.wind.describe(),
        "tasks": [asdict(task) for task in shown.world.settings.tasks],
        "errors_kt": np.quantile(learned["all"].errors, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist(),
        "parts": [described(part, learned[part], samples[part], settings, seed) for part in PARTS],
        "crossed": crossed(shown, learned),
        "density": density(shown),
        "sensitivity": [],
        "curve": [],
    }
    for row in summary["parts"]:
        study.say(f"  {row['part']}: {row['speed_kt']:.1f} kt ({row['speed_low']:.1f} to "
                  f"{row['speed_high']:.1f}) while altitude <= {row['altitude_ft']:,.0f} ft "
                  f"({row['altitude_low']:,.0f} to {row['altitude_high']:,.0f})")  # fmt: skip
    for name, changed in plan.sensitivity.items():
        summary["sensitivity"].append(otherwise(chosen, settings, name, changed))
        study.say(f"  {summary['sensitivity'][-1]}")
    if plan.sizes:
        summary["curve"] = curve(shown, learned["all"], plan.sizes, plan.draws, seed)
    if plan.evidence:
        summary["evidence"] = evidence(chosen, settings, learned["all"], plan.evidence)
    if plan.classes:
        summary["games"] = [game(shown, learned["all"], text) for text in plan.classes]
    if plan.watched_half is not None:
        watched = cleaning.of_half(everybody, plan.watched_half)
        summary["watched"] = watch(study, watched, settings, learned["all"])
    return summary, time.monotonic() - began


def counted(chosen: Sequence[Flight], shown: Shown, learned: Learned) -> dict[str, Any]:
    whole = shown.settings.band.rows
    return {
        "tracks": len(chosen),
        "aircraft": len({f.aircraft for f in chosen}),
        "flights": len(shown.legs),
        "heard_in_part": sum(len(p.rows) < whole for p in shown.passages),
        "by_task": {name: len(shown.of_task(name)) for name in shown.names()},
        "slack": len(shown.slack),
        "apart": len(learned.apart),
    }


# The interval ------------------------------------------------------------------------------------


def resampled(
    shown: Shown, learned: Mapping[str, Learned], seed: int, workers: int
) -> dict[str, Array]:
    """The rule of each part [resamples, 2] from flights drawn again within their tasks, in the wind
    that these would have shown; the method's bias is as it was found."""
    count = shown.settings.resamples
    numbers = [list(range(n, count, workers)) for n in range(workers)]
    given = (repeat(shown), repeat(dict(learned)), repeat(seed), numbers)
    if workers == 1:
        found = list(map(_resamples, *given))
    else:
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            found = list(pool.map(_resamples, *given))
    ordered = sorted((row for part in found for row in part), key=lambda row: row[0])
    return {part: np.array([rules[part] for _, rules in ordered]) for part in PARTS}


def _resamples(
    shown: Shown, learned: Mapping[str, Learned], seed: int, numbers: Sequence[int]
) -> list[tuple[int, dict[str, Array]]]:
    learners = {part: free_learners(shown, shown.names(kinds)) for part, kinds in PARTS.items()}
    found = []
    for number in numbers:
        rng = np.random.default_rng([seed, BOOTSTRAP, number])
        drawn: list[int] = []
        for name in shown.names():
            mine = shown.of_task(name)
            drawn += [mine[n] for n in rng.integers(len(mine), size=len(mine))]
        again = drawn_again(shown, drawn)
        rules = {}
        for part, kinds in PARTS.items():
            gone = learned[part].slack | learned[part].apart
            without = frozenset(n for n, old in enumerate(drawn) if old in gone)
            experts = experts_of(again, again.names(kinds), without)
            rules[part] = rule_of(learned[part], experts, learners[part], shown.settings)
        found.append((number, rules))
    return found


def drawn_again(shown: Shown, drawn: Sequence[int]) -> Shown:
    """These flights, with the airspeeds of their own wind, in the tasks that they had."""
    some: list[Leg] = [shown.legs[n] for n in drawn]
    band = shown.settings.band
    wind = shared_wind(some, band) if shown.settings.knots else shown.wind
    return Shown(
        shown.settings, tuple(some), wind, tuple(passages(some, band, wind)), shown.world,
        tuple(shown.task_of[n] for n in drawn),
    )  # fmt: skip


def rule_of(learned: Learned, experts: Any, learners: Any, settings: Settings) -> Array:
    answers = np.array([answer(experts, learners, b) for b in settings.budgets])
    return np.asarray(np.median(answers - learned.bias, axis=0))


def described(
    part: str, learned: Learned, samples: Array, settings: Settings, seed: int
) -> dict[str, Any]:
    """A part's row. The interval is of the flights that happened to fly; that of the speed also of
    the temperature, which nobody reports."""
    rng = np.random.default_rng([seed, BOOTSTRAP])
    many = np.repeat(samples, 100, axis=0)
    warm = 1 - rng.normal(0.0, settings.warmer, len(many)) / (2 * KELVIN)
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = np.quantile(many * np.stack([warm, np.ones(len(many))], axis=1), ends, axis=0)
    sampled = np.quantile(samples[:, SPEED], ends)
    rule = learned.rule
    return {
        "part": part,
        "flights": learned.flights,
        "speed_kt": float(rule[SPEED]),
        "speed_low": float(low[SPEED]),
        "speed_high": float(high[SPEED]),
        "altitude_ft": float(rule[ALTITUDE]),
        "altitude_low": float(low[ALTITUDE]),
        "altitude_high": float(high[ALTITUDE]),
        "speed_low_same_air": float(sampled[0]),
        "speed_high_same_air": float(sampled[1]),
        "answer_kt": float(np.median(learned.answers[:, SPEED])),
        "answer_ft": float(np.median(learned.answers[:, ALTITUDE])),
        "bias_kt": float(np.median(learned.bias[:, SPEED])),
        "bias_ft": float(np.median(learned.bias[:, ALTITUDE])),
        "slack": len(learned.slack),
        "apart": len(learned.apart),
        "budgets": list(settings.budgets),
        "first": learned.first.tolist(),
        "answers": learned.answers.tolist(),
        "rules": learned.rules.tolist(),
    }


# What it depends on ------------------------------------------------------------------------------


def otherwise(
    chosen: Sequence[Flight], settings: Settings, name: str, changed: Mapping[str, Any]
) -> dict[str, Any]:
    """The rule with other settings."""
    other = build("flights", {**asdict(settings), **changed}, Settings)
    found = learn(show(legs(chosen, other.band), other))
    speed, altitude = map(float, found.rule)
    return {"changed": name, "speed_kt": speed, "altitude_ft": altitude, "apart": len(found.apart)}


def curve(
    shown: Shown, learned: Learned, sizes: Sequence[int], draws: int, seed: int
) -> list[dict[str, Any]]:
    """The rule from few flights, drawn with repetition from those that are there; the wind and the
    method's bias are as all of them show it."""
    names, gone = shown.names(), learned.slack | learned.apart
    kept = [n for n in range(len(shown.legs)) if n not in gone]
    learners = dict(zip(names, free_learners(shown, names), strict=True))
    rows = []
    for size in sizes:
        rules = []
        for draw in range(draws):
            rng = np.random.default_rng([seed, DRAWS, size, draw])
            by_task: dict[str, list[Trajectory]] = {}
            for n in rng.choice(kept, size):
                by_task.setdefault(shown.task_of[n], []).append(shown.trajectories[n])
            experts = [behaviour_of(some) for some in by_task.values()]
            answering = [learners[name] for name in by_task]
            rules.append(rule_of(learned, experts, answering, shown.settings))
        rows.append({"flights": size, "draws": draws, "rules": np.array(rules).tolist()})
    return rows


def crossed(shown: Shown, learned: Mapping[str, Learned]) -> list[dict[str, Any]]:
    """The rule of one kind of flights, held against the other kind's."""
    rows = []
    for part, other in (("departures", "arrivals"), ("arrivals", "departures")):
        c = form().constraint(learned[part].rule)
        names = shown.names(PARTS[other])
        flown = experts_of(shown, names, learned[other].slack | learned[other].apart)
        errors = learned[other].errors
        config = shown.world.settings
        free = free_learners(shown, names)
        tasks = [t for t in config.tasks if t.name in names]
        keeping = [
            seen(config, fastest(config, t, *learned[part].rule) + errors[:, None]) for t in tasks
        ]
        rows.append({
            "learned_on": part,
            "checked_on": other,
            "flown_cost": float(np.mean([J(pi, c) for pi in flown])),
            "keeping_cost": float(np.mean([J(pi, c) for pi in keeping])),
            "free_cost": float(np.mean([J(pi, c) for pi in free])),
        })  # fmt: skip
    return rows


def density(shown: Shown) -> dict[str, Any]:
    """How many flights were in each cell of speed in each row [rows][V], by kind."""
    config, found = shown.world.settings, {}
    for kind in KINDS:
        table = shown.table[[n for n, p in enumerate(shown.passages) if p.kind == kind]]
        counts = np.zeros((config.rows, len(config.speeds)), int)
        for row in range(config.rows):
            heard = table[np.isfinite(table[:, row]), row]
            np.add.at(counts[row], config.cell(heard), 1)
        found[kind] = counts.tolist()
    return {
        "altitudes": config.altitudes[1:-1].tolist(),
        "speeds": config.speeds.tolist(),
        "medians": np.nanmedian(shown.table, axis=0).tolist(),
        **found,
    }


# Evidence, games ---------------------------------------------------------------------------------


def evidence(
    chosen: Sequence[Flight], settings: Settings, learned: Learned, given: Mapping[str, float]
) -> dict[str, Any]:
    """Labels of larger cells: few flights are in each of the small ones.

    Flights are not optimal: as much time as the slowest task loses against the best of what its
    flights visited may be lost by all (suboptimality).
    """
    sizes = {name: given[name] for name in ("height", "width")}
    shown = show(
        legs(chosen, settings.band), build("flights", {**asdict(settings), **sizes}, Settings)
    )
    gone, min_paths = learned.slack | learned.apart, int(given["min_paths"])
    path = shown.world.cells.path
    assert path is not None
    groups = []
    for task in shown.world.tasks:
        mine = [n for n in shown.of_task(task.name) if n not in gone]
        whole = [n for n in mine if len(shown.passages[n].rows) == shown.settings.band.rows]
        groups += group_paths(task, [path(shown.trajectories[n]) for n in whole])
    first = evidences.label(groups, min_paths=min_paths)
    slack = max(s.gap for s in first.standings)
    found = evidences.label(groups, min_paths=min_paths, suboptimality=slack + 1e-6)
    points = shown.world.points
    return {
        **sizes,
        "min_paths": min_paths,
        "suboptimality_min": slack,
        "gaps_min": {s.task: s.gap for s in first.standings},
        "counts": found.counts(),
        "doubtful": len(found.doubtful),
        "cells": [
            {"altitude": float(a), "speed": float(v), "label": evidences.LABELS[k], "m": int(m)}
            for (a, v), k, m in zip(points, found.labels, found.m, strict=True)
            if settings.bottom < a < settings.top
        ],
        "conflicts": [points[list(conflict.cells)].tolist() for conflict in found.conflicts],
    }


def game(shown: Shown, learned: Learned, text: str) -> dict[str, Any]:
    """A whole game of that class: opening, iterations, selection on held-out flights, doubts."""
    budget = float(np.median(shown.settings.budgets))
    player = {"kind": "payoff", "expert_budget": budget} if "?" in text else {"kind": "regression"}
    found = api.learn(
        shown.world,
        demonstrations(shown, KINDS, learned.slack | learned.apart),
        text,
        settings={
            "player": player,
            "game": {"iterations": 2, "extra": 0},
            "solver": {"kind": "soft", "temperature": shown.settings.temperature},
            "analysis": {"resamples": 0},
        },
    )
    summary = found.summary
    return {
        "class": text,
        "constraint": summary["constraint"]["description"],
        "selected": summary["selected"],
        "selection": summary["selection"],
        "learner_reward": [row["learner_reward_mean"] for row in summary["iterations"]],
        "expert_reward": summary["iterations"][0]["expert_reward_mean"],
        "doubts": summary["doubts"],
    }


# Who broke it ------------------------------------------------------------------------------------


def watch(
    study: Study, flights: Sequence[Flight], settings: Settings, learned: Learned
) -> dict[str, Any]:
    """Flights that the rule was not learned from, second by second, in their own wind.

    Names are told to who has the data; what is written down has a short hash in their place.
    """
    some = legs(flights, settings.band)
    wind = shared_wind(some, settings.band)
    c = form().constraint(learned.rule)
    tolerance = float(np.quantile(learned.errors, ERRORS_QUANTILE))
    rows: list[dict[str, Any]] = []
    for leg in some:
        h, ground, track = (leg.column(name) for name in ("altitude", "groundspeed", "track"))
        features = np.stack([h, calibrated_airspeed(wind, h, ground, track)], axis=1)
        for breach in breaches(c, features, tolerance, pause=5, shortest=SECONDS):
            at = leg.first + breach.worst
            moment = datetime.fromtimestamp(leg.flight.seconds[at], UTC)
            stretch = features[breach.first : breach.last + 1, 0]
            rows.append({
                "flight": sha256(leg.flight.name.encode()).hexdigest()[:6],
                "kind": leg.kind,
                "utc": moment.strftime("%H:%M:%S"),
                "seconds": breach.steps,
                "from_ft": float(stretch[0]),
                "to_ft": float(stretch[-1]),
                "worst_kt": float(breach.features[1]),
                "excess_kt": breach.excess,
                "latitude": round(float(leg.flight.latitude[at]), 2),
                "longitude": round(float(leg.flight.longitude[at]), 2),
            })  # fmt: skip
            study.say(
                f"  {leg.flight.name}, {leg.kind}, {rows[-1]['utc']}: {breach.features[1]:.0f} kt "
                f"at {breach.features[0]:,.0f} ft, {breach.excess:.0f} kt over, {breach.steps} s"
            )
    rows.sort(key=lambda row: row["excess_kt"], reverse=True)
    return {
        "flights": len(some), "breaking": len({row["flight"] for row in rows}),
        "tolerance_kt": tolerance, "rule": learned.rule.tolist(), "breaches": rows,
    }  # fmt: skip
