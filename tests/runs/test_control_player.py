"""The interval around a learned constraint."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.constraints.template import parse_template
from ringfence.errors import InvalidInput
from ringfence.objects import Feature, Trajectory, behaviour_of
from ringfence.players.base import Begun, ConstraintPlayer
from ringfence.players.payoff import PayoffPlayer
from ringfence.players.regression import TemplateRegression
from ringfence.runs.control_player import make_interval

STEPS = 10
TEMPLATE = parse_template("speed <= ?", (Feature("speed", "m/s"),))


def at(*features: float) -> Trajectory:
    return Trajectory(
        np.zeros((STEPS + 1, 1)),
        np.zeros((STEPS, 1)),
        np.zeros(STEPS),
        np.tile(features, (STEPS, 1)),
        False,
    )


def interval_of(player: ConstraintPlayer, speeds: np.ndarray, resamples: int, seed: int):
    """With learners that go as fast as the experts on average."""
    experts = [at(v) for v in speeds]
    learners = [behaviour_of([at(float(speeds.mean()))])]
    begun = Begun(player, [behaviour_of(experts)], learners, False)
    return make_interval(begun, TEMPLATE, [experts], [learners], resamples, seed)


def test_the_regressions_interval_covers_what_other_demonstrations_would_give() -> None:
    rng, covered, games = np.random.default_rng(0), 0, 150
    for game in range(games):
        found = interval_of(
            TemplateRegression(TEMPLATE, STEPS), rng.normal(0.7, 0.1, 20), 150, game
        )
        low, high = found["parameters"]["limit"]
        covered += low <= 0.7 <= high
    assert 0.88 < covered / games < 0.99


def test_resamples_beyond_the_budget_are_counted_and_left_out() -> None:
    """Who is at (1, 1) needs a slope of at most 1, who is at (-1, -2) one of at least 2.

    Of six demonstrations one is there. Resampled, it is three of six in every twentieth case: then
    an episode costs at least STEPS log(2) / 2 = 3.5.
    """
    template = parse_template("? x - y <= 0", (Feature("x", "m"), Feature("y", "m")))
    experts = [at(1.0, 1.0)] * 5 + [at(-1.0, -2.0)]
    player, learners = PayoffPlayer(template, STEPS, 2.4), [behaviour_of([at(2.0, 1.0)])]
    begun = Begun(player, [behaviour_of(experts)], learners, False)
    found = make_interval(begun, template, [experts], [learners], 200, 0)
    assert found is not None
    assert 3 < found["unanswered"] < 25
    assert np.isfinite(found["parameters"]["x"]).all()


def test_without_an_answer_for_most_resamples_there_is_no_interval(monkeypatch) -> None:
    def refuse(*_):
        raise InvalidInput("no constraint of the class")

    monkeypatch.setattr(PayoffPlayer, "update", refuse)
    assert interval_of(PayoffPlayer(TEMPLATE, STEPS), np.array([0.5, 0.7]), 20, 0) is None


@pytest.mark.parametrize(
    "player", [TemplateRegression(TEMPLATE, STEPS), PayoffPlayer(TEMPLATE, STEPS)]
)
def test_the_answer_lies_in_its_interval(player: ConstraintPlayer) -> None:
    speeds = np.random.default_rng(1).normal(0.7, 0.1, 20)
    experts, learners = behaviour_of([at(v) for v in speeds]), behaviour_of([at(speeds.mean())])
    limit = player.update([experts], [[learners]]).offset
    low, high = interval_of(player, speeds, 200, 0)["parameters"]["limit"]
    assert low <= limit <= high
