"""Intervals by bootstrap over demonstrations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from played_games import FAMILY, SPEED, drive, played, solution
from ringfence.analysis.intervals import bootstrap, interval, parameter_interval
from ringfence.constraints.family import make_family
from ringfence.constraints.template import parse_template
from ringfence.errors import InvalidInput
from ringfence.objects import Feature, NotHere, TaskDemos, Trajectory, behaviour_of
from ringfence.players.payoff import PayoffPlayer
from ringfence.players.player import Begun
from ringfence.players.regression import TemplateRegression, regress
from speed_groups import FEATURES, LEARNER


def test_bootstrap_covers_the_spread_of_trajectories() -> None:
    """The interval of a mean over trajectories has the textbook's width."""
    rng = np.random.default_rng(0)
    levels = rng.normal(1.0, 0.2, 40)
    trajectories = [
        Trajectory(np.zeros((6, 1)), np.zeros((5, 1)), np.zeros(5), np.full((5, 3), v), False)
        for v in levels
    ]
    template = parse_template("speed <= ?", FEATURES)
    samples = bootstrap(lambda e: regress(template, e, [LEARNER]), [trajectories], 400, (0,))
    low, high = interval(samples)
    expected = 2 * 1.96 * levels.std() / np.sqrt(len(levels)) / 2
    assert float((high - low)[0]) == pytest.approx(expected, rel=0.2)
    again = bootstrap(lambda e: regress(template, e, [LEARNER]), [trajectories], 400, (0,))
    np.testing.assert_array_equal(samples, again)


# Of a game that was played


def test_the_interval_holds_what_was_learned() -> None:
    """Of the regression, for whom other experts would have moved the learners, too: twice as wide
    as the demonstrations alone make it."""
    game = played(2)
    found = parameter_interval(game)
    assert isinstance(found, dict)
    (low, high) = found["parameters"]["limit"]
    assert low < high
    assert (found["level"], found["resamples"], found["unanswered"]) == (0.95, 50, 0)
    template, learners = game.family.template, [pi for seen in game.before for pi in seen]
    samples = bootstrap(
        lambda e: regress(template, e, learners), [d.train for d in game.demos], 50, (0,)
    )
    narrow = interval(samples)
    assert high - low == pytest.approx(2 * float((narrow[1] - narrow[0])[0]))


def test_the_same_seed_gives_the_same_interval() -> None:
    rng = np.random.default_rng(0)
    many = TaskDemos("drive", tuple(drive(*rng.random(4)) for _ in range(9)), ())
    one, same, other = (parameter_interval(played(demos=[many], seed=n)) for n in (0, 0, 1))
    assert one == same != other


def test_a_first_constraint_that_answers_to_nobody_has_no_interval() -> None:
    found = parameter_interval(played(1))
    assert isinstance(found, NotHere)
    assert "answers to no learner" in found.reason


@pytest.mark.parametrize("keep", [False, True])
def test_learners_from_before_the_game_count_as_the_player_counted_them(keep: bool) -> None:
    plain = played(2)
    first = [solution(3.0).behaviour]
    begun = Begun(plain.player, plain.experts, first, keep)
    assert isinstance(parameter_interval(played(1, player=begun)), dict)
    same = parameter_interval(played(2, player=begun)) == parameter_interval(plain)
    assert same == (not keep)


def test_where_few_resampled_experts_have_an_answer_there_is_no_interval() -> None:
    class Fails:
        def update(self, experts, history):
            raise InvalidInput("no constraint within the budget")

    found = parameter_interval(played(player=Fails()))
    assert isinstance(found, NotHere)
    assert "most resampled demonstrations" in found.reason


def test_the_payoff_players_interval_is_not_widened() -> None:
    template = FAMILY.template
    player = PayoffPlayer(template, 3.0, 0.1)
    game = played(player=player)
    found = parameter_interval(game)
    samples = bootstrap(
        lambda e: np.array([player.update(e, game.before).offset]),
        [d.train for d in game.demos],
        50,
        (0,),
    )
    low, high = interval(samples)
    assert found["parameters"]["limit"] == [pytest.approx(low[0]), pytest.approx(high[0])]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"family": make_family("mlp", (), SPEED, None, None)}, "'mlp' has no parameters"),
        ({"resamples": 0}, "resamples is 0"),
    ],
)
def test_what_has_no_interval_says_why(change: dict, word: str) -> None:
    found = parameter_interval(played(**change))
    assert isinstance(found, NotHere)
    assert word in found.reason


STEPS = 10


def at(*features: float) -> Trajectory:
    """Ten steps at one point."""
    phi = np.tile(features, (STEPS, 1))
    return Trajectory(np.zeros((STEPS + 1, 1)), np.zeros((STEPS, 1)), np.zeros(STEPS), phi, False)


def of_experts(experts: list[Trajectory], learner: Trajectory, player: Any, **changes: Any) -> Any:
    """The interval of a first constraint that answers to this learner."""
    begun = Begun(player, [behaviour_of(experts)], [behaviour_of([learner])], False)
    demos = [TaskDemos("drive", tuple(experts), ())]
    return parameter_interval(played(1, player=begun, demos=demos, **changes))


def test_the_regressions_interval_covers_what_other_demonstrations_would_give() -> None:
    """With learners that go as fast as the experts on average."""
    rng, covered, games = np.random.default_rng(0), 0, 150
    for game in range(games):
        speeds = rng.normal(0.7, 0.1, 20)
        player = TemplateRegression(FAMILY.template, STEPS)
        experts = [at(v) for v in speeds]
        found = of_experts(experts, at(float(speeds.mean())), player, resamples=150, seed=game)
        low, high = found["parameters"]["limit"]
        covered += low <= 0.7 <= high
    assert 0.88 < covered / games < 0.99


@pytest.mark.parametrize("kind", [TemplateRegression, PayoffPlayer])
def test_the_answer_lies_in_its_interval(kind: Any) -> None:
    speeds = np.random.default_rng(1).normal(0.7, 0.1, 20)
    experts, learner = [at(v) for v in speeds], at(float(speeds.mean()))
    player = kind(FAMILY.template, STEPS)
    limit = player.update([behaviour_of(experts)], [[behaviour_of([learner])]]).offset
    low, high = of_experts(experts, learner, player, resamples=200)["parameters"]["limit"]
    assert low <= limit <= high


def test_resamples_beyond_the_budget_are_counted_and_left_out() -> None:
    """Who is at (1, 1) needs a slope of at most 1, who is at (-1, -2) one of at least 2.

    Of six demonstrations one is there. Resampled, it is three of six in every twentieth case: then
    an episode costs at least STEPS log(2) / 2 = 3.5.
    """
    plane = (Feature("x", "m"), Feature("y", "m"))
    family = make_family("? x - y <= 0", (), plane, None, None)
    experts = [at(1.0, 1.0)] * 5 + [at(-1.0, -2.0)]
    player = PayoffPlayer(family.template, STEPS, 2.4)
    found = of_experts(experts, at(2.0, 1.0), player, family=family, resamples=200)
    assert 3 < found["unanswered"] < 25
    assert np.isfinite(found["parameters"]["x"]).all()
