"""Intervals over demonstrations, learners and budget, and the curve where there is no budget."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from played_games import FAMILY, SPEED, drive, played, solution
from ringfence.analysis.intervals import bootstrap, half_width, parameter_interval
from ringfence.constraints.family import make_family
from ringfence.constraints.template import parse_template
from ringfence.errors import InvalidInput
from ringfence.objects import Feature, NotHere, TaskDemos, Trajectory, behaviour_of
from ringfence.players.payoff import PayoffPlayer
from ringfence.players.player import Begun
from ringfence.players.regression import TemplateRegression, regress
from ringfence.players.search import best_within
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

    def fit(experts: Any, learners: Any) -> Any:
        return regress(template, experts, [LEARNER])

    samples = bootstrap(fit, [trajectories], [], 400, (0,))
    centre = fit([behaviour_of(trajectories)], [])
    expected = 1.96 * levels.std() / np.sqrt(len(levels)) / 2
    assert float(half_width(samples, centre, 10**6)[0]) == pytest.approx(expected, rel=0.2)
    np.testing.assert_array_equal(samples, bootstrap(fit, [trajectories], [], 400, (0,)))


def test_few_episodes_make_an_interval_wider() -> None:
    """By Student's quantile, and by what a resampled mean varies less than a fresh one."""
    samples, centre = np.linspace(-1, 1, 201)[:, None], np.zeros(1)
    (many,), (few,) = (half_width(samples, centre, n) for n in (10**6, 5))
    assert many == pytest.approx(0.95, abs=0.01)
    assert few / many == pytest.approx(2.776 / 1.96 * np.sqrt(5 / 4), rel=1e-3)


def test_other_learners_are_those_of_neighbouring_iterations() -> None:
    seen: list[tuple[int, ...]] = []

    def fit(experts: Any, learners: Any) -> Any:
        seen.append(tuple(learners))
        return np.zeros(1)

    bootstrap(fit, [[at(1.0)]], [0, 1, 2, 3], 300, (0,))  # type: ignore[list-item]
    places = [set(column) for column in zip(*seen, strict=True)]
    assert places == [{0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3}]


# Of a game that was played


def test_the_interval_holds_what_was_learned() -> None:
    """Of the regression, for whom other experts would have moved the learners, too: twice as wide
    as the samples make it."""
    game = played(2)
    found = parameter_interval(game)
    assert isinstance(found, dict)
    (low, high) = found["parameters"]["limit"]
    assert (found["level"], found["resamples"], found["unanswered"]) == (0.95, 50, 0)
    template = game.family.template

    def fit(experts: Any, learners: Any) -> Any:
        return regress(template, experts, [pi for seen in learners for pi in seen])

    trajectories = [d.train for d in game.demos]
    samples = bootstrap(fit, trajectories, game.before, 50, (0,))
    centre = fit(game.experts, game.before)
    assert low < float(centre[0]) < high
    assert high - low == pytest.approx(2 * 2 * float(half_width(samples, centre, 2)[0]))


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


def speeds(count: int = 12, seed: int = 0) -> TaskDemos:
    rng = np.random.default_rng(seed)
    return TaskDemos("drive", tuple(drive(*rng.normal(1, 0.2, 20)) for _ in range(count)), ())


def of_budget(budget: float, **changes: Any) -> Any:
    demos = speeds()
    player = PayoffPlayer(FAMILY.template, 20.0, budget)  # type: ignore[arg-type]
    experts = [behaviour_of(demos.train)]
    return parameter_interval(played(player=player, demos=[demos], experts=experts, **changes))


def test_a_budget_widens_the_interval_on_the_loose_side_to_what_a_smaller_one_gives() -> None:
    demos = speeds()
    theta, smaller = (
        best_within(FAMILY.template, [behaviour_of(demos.train)], [], b)[0] for b in (1.0, 0.75)
    )
    low, high = of_budget(1.0)["parameters"]["limit"]
    assert high - smaller == pytest.approx(theta - low, rel=1e-2)
    assert smaller > theta


@pytest.mark.parametrize(
    ("budget", "over", "words"),
    [
        (1.0, ["demonstrations", "learners", "budget"], "who use 75% to 100% of a budget of 1"),
        (0.0, ["demonstrations", "learners"], "not that demonstrators may have been allowed some"),
    ],
)
def test_what_an_interval_covers_is_said(budget: float, over: list[str], words: str) -> None:
    found = of_budget(budget)
    assert found["over"] == over
    assert "other demonstrations by the same demonstrators" in found["words"]
    assert "other learners and seeds of the game" in found["words"]
    assert words in found["words"]
    assert found["curve"] is None


def test_without_a_budget_the_curve_is_the_answer() -> None:
    """For each of some budgets the interval of a player that is told this budget."""
    demos = speeds()
    game = played(demos=[demos], experts=[behaviour_of(demos.train)])
    found = parameter_interval(game)
    assert isinstance(found, dict)
    assert [point["budget"] for point in found["curve"]] == pytest.approx([0.1, 0.4, 1.6])
    for point in found["curve"]:
        told = of_budget(point["budget"])["parameters"]["limit"]
        assert [point["low"], point["high"]] == pytest.approx(told)
        assert point["low"] < point["parameter"] < point["high"]
        assert f"{point['low']:.4g} to {point['high']:.4g} if it was" in found["words"]
    assert "can't be told apart" in found["words"]


def test_a_class_with_two_unknowns_has_no_curve() -> None:
    family = make_family("? speed <= ?", (), SPEED, None, None)
    found = parameter_interval(
        played(family=family, player=TemplateRegression(family.template, 3.0))
    )
    assert isinstance(found, dict)
    assert found["curve"] is None
    assert "may have been allowed more, or less" in found["words"]


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
