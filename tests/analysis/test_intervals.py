"""Intervals by bootstrap over demonstrations."""

from __future__ import annotations

import numpy as np
import pytest

from played_games import FAMILY, SPEED, drive, played, solution
from ringfence.analysis.intervals import bootstrap, interval, parameter_interval
from ringfence.constraints.family import make_family
from ringfence.constraints.template import parse_template
from ringfence.errors import InvalidInput
from ringfence.objects import NotHere, TaskDemos, Trajectory
from ringfence.players.base import Begun
from ringfence.players.payoff import PayoffPlayer
from ringfence.players.regression import regress
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
