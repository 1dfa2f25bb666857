"""A small game over a speed limit as analyses look at it, without a world, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringfence.analysis.played import Played
from ringfence.constraints.family import make_family
from ringfence.constraints.linear import parse_inequality
from ringfence.game import Record
from ringfence.objects import (
    Behaviour,
    Constraint,
    Feature,
    NotHere,
    Solution,
    TaskDemos,
    Trajectory,
    behaviour_of,
)
from ringfence.players.regression import TemplateRegression
from ringfence.selection import Selection

SPEED = (Feature("speed", "m/s"),)
FAMILY = make_family("speed <= ?", (), SPEED, None, None)


def drive(*speeds: float) -> Trajectory:
    n = len(speeds)
    phi = np.array(speeds)[:, None]
    return Trajectory(np.zeros((n + 1, 1)), np.zeros((n, 1)), np.ones(n), phi, terminated=False)


SHOWN = (drive(0.2, 0.8, 1.19), drive(0.3, 0.9, 1.2))
DEMOS = TaskDemos("drive", SHOWN, SHOWN[:1])
#: Of the selected iterate: a learner that keeps its limit and earns what the experts do.
ROW: dict[str, Any] = {
    "learner_reward_mean": 104.0,
    "expert_reward_mean": 100.0,
    "learner_cost_mean": 12.0,
    "delta_mean": 10.0,
    "learner_length_mean": 100.0,
    "learner_failed": [0.0],
}


def limit(value: float) -> Constraint:
    return parse_inequality(f"speed <= {value}", SPEED)


def solution(*speeds: float, lam: float = 0.0, succeeded: Behaviour | None = None) -> Solution:
    return Solution({}, lam, behaviour_of([drive(*speeds)]), env_steps=0, succeeded=succeeded)


def records(limits: Sequence[float], solutions: Sequence[Solution]) -> list[Record]:
    pairs = enumerate(zip(limits, solutions, strict=True), 1)
    return [Record(i, limit(v), (0.0,), (s,), 0.0, limit(v)) for i, (v, s) in pairs]


def chosen(i: int, count: int, rewarding: bool = True) -> Selection:
    """The first learner earned more than the experts; every iterate explains it and does well."""
    none, one = (0,) * count, (1,) * count
    return Selection(i, count, 1, none, one, one, (0.0,) * count, 0.0, 0.0, rewarding)


def played(i: int = 2, rewarding: bool = True, **changes: Any) -> Played:
    """Three iterations, of which the i-th was selected; changes: of the fields of Played."""
    rounds = records([9.0, 1.6, 1.4], [solution(2.0, 2.2), solution(1.6, 1.5), solution(1.3, 1.4)])
    given: dict[str, Any] = {
        "family": FAMILY,
        "player": TemplateRegression(FAMILY.template, 3.0),  # type: ignore[arg-type]
        "weighted": False,
        "demos": (DEMOS,),
        "experts": (behaviour_of(DEMOS.train),),
        "heldout": (behaviour_of(DEMOS.heldout),),
        "records": rounds,
        "rows": [ROW] * 3,
        "chosen": chosen(i, 3, rewarding),
        "groups": NotHere("no cells"),
        "cells": None,
        "resamples": 50,
        "seed": 0,
    }
    return Played(**{**given, **changes})
