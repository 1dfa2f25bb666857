"""The player that says what demonstrations testify to under a stated budget."""

from __future__ import annotations

import pytest

from ringfence.constraints.family import make_family
from ringfence.constraints.template import parse_template
from ringfence.errors import InvalidInput
from ringfence.objects import J
from ringfence.players.payoff import Config, PayoffPlayer, make
from ringfence.players.player import Ground
from ringfence.players.regression import TemplateRegression
from ringfence.players.search import best_within
from speed_groups import EXPERT, FEATURES, LEARNER, OTHER, T


def test_best_payoff_is_zero_against_the_experts_themselves() -> None:
    template = parse_template("speed <= ?", FEATURES)
    for player in (TemplateRegression(template, T), PayoffPlayer(template, T, 1.0)):
        assert player.best_payoff([EXPERT], [EXPERT]) == pytest.approx(0, abs=1e-12)
        assert player.best_payoff([EXPERT], [LEARNER]) > 0


def test_the_answer_leaves_every_tasks_experts_their_budget() -> None:
    template = parse_template("speed <= ?", FEATURES)
    player = PayoffPlayer(template, T, 2.0)
    c = player.update([EXPERT, OTHER], [[LEARNER, LEARNER], [OTHER, LEARNER]])
    costs = [J(pi, c) for pi in (EXPERT, OTHER)]
    assert max(costs) == pytest.approx(2.0)
    (theta,) = best_within(template, [EXPERT, OTHER], [LEARNER, LEARNER, OTHER, LEARNER], 2.0)
    assert c.offset == theta
    assert J(LEARNER, player.initial()) == 0


def ground(text: str) -> Ground:
    return Ground(make_family(text, (), FEATURES, None, None), T, [EXPERT], False, 5, 0)


def test_the_kind_is_made_for_inequalities() -> None:
    player = make(Config(expert_budget=1.5), ground("speed <= ?"))
    assert (player.budget, player.T) == (1.5, T)
    with pytest.raises(InvalidInput, match=r"payoff is for inequalities .*'mlp' use regression"):
        make(Config(), ground("mlp"))


@pytest.mark.parametrize("budget", [-1.0, float("nan"), float("inf")])
def test_a_budget_that_is_none_is_refused(budget: float) -> None:
    with pytest.raises(InvalidInput, match="budget must be at least 0"):
        Config(expert_budget=budget)
    with pytest.raises(InvalidInput, match="budget must be at least 0"):
        PayoffPlayer(parse_template("speed <= ?", FEATURES), T, budget)
