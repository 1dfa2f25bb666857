"""Chou et al.'s method: which episodes it takes, and what it regresses to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from ringfence.constraints.template import parse_template
from ringfence.objects import Feature, Problem, Solution, Trajectory, behaviour_of
from ringfence.players.rivals.chou import chou

SPEED = (Feature("speed", "m/s"),)


@dataclass(frozen=True)
class Track:
    name: str = "track"
    features: tuple[Feature, ...] = SPEED
    horizon: int = 4


def episode(speed: float) -> Trajectory:
    """At one speed throughout, which is also the reward of each step."""
    T = Track().horizon
    return Trajectory(
        np.zeros((T + 1, 1)), np.zeros((T, 1)), np.full(T, speed), np.full((T, 1), speed), False
    )


def run(speeds: list[float], seen: list[Problem]):
    def explore(problem: Problem) -> Solution:
        seen.append(problem)
        return Solution({}, 0.0, behaviour_of([episode(s) for s in speeds]), 10)

    return chou(
        Track(),
        parse_template("speed <= ?", SPEED),
        [episode(0.5), episode(0.7)],
        None,
        explore,
        lambda solution: [episode(s) for s in speeds],
        explore,
        seed=3,
    )


def test_one_regression_to_the_episodes_that_earn_more_and_then_limit_zero() -> None:
    seen: list[Problem] = []
    outcome = run([0.2, 0.55, 1.0, 2.0], seen)
    assert (outcome.tried, outcome.better) == (4, 2)
    assert outcome.c is not None
    assert outcome.c.offset == pytest.approx((0.6 + 1.5) / 2)
    free, constrained = seen
    assert not free.constraint.cost(np.array([[9.0]])).any()
    assert constrained.constraint is outcome.c
    assert constrained.delta == 0.0


def test_without_a_better_episode_there_is_no_constraint() -> None:
    outcome = run([0.1, 0.6], [])
    assert outcome.better == 0
    assert outcome.c is None
    assert outcome.solution is None
