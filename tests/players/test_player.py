"""What every constraint player is: payoffs, and a player that begins with known learners."""

from __future__ import annotations

import numpy as np
import pytest

from class_cases import CASES, Case
from class_cases import T as CASE_T
from ringfence.constraints.linear import parse_inequality
from ringfence.constraints.template import parse_template
from ringfence.objects import J
from ringfence.players.player import Begun, payoff, payoff_gradient
from ringfence.players.regression import TemplateRegression
from speed_groups import EXPERT, FEATURES, LEARNER, OTHER, T


def test_known_learners_are_answered_first_and_kept_if_asked() -> None:
    template = parse_template("speed <= ?", FEATURES)
    player = TemplateRegression(template, T)
    for keep in (False, True):
        begun = Begun(player, [EXPERT], [LEARNER], keep)
        assert begun.initial().offset == player.update([EXPERT], [[LEARNER]]).offset
        history = [[LEARNER], [OTHER]] if keep else [[OTHER]]
        expected = player.update([EXPERT], history).offset
        assert begun.update([EXPERT], [[OTHER]]).offset == expected


def test_a_begun_players_payoff_is_the_players() -> None:
    player = TemplateRegression(parse_template("speed <= ?", FEATURES), T)
    begun = Begun(player, [EXPERT], [LEARNER], keep=True)
    assert begun.best_payoff([EXPERT], [OTHER]) == player.best_payoff([EXPERT], [OTHER])


@pytest.mark.parametrize(("case", "restricted", "seed"), CASES[:4])
def test_the_payoff_is_the_mean_gap_per_step(case: Case, restricted: bool, seed: int) -> None:
    """Equation 8, as a gradient over the class and of one constraint."""
    F_c, experts, history = case(seed, restricted)
    learners, theta = history[0], F_c.maximise(np.ones(len(F_c.moments(experts[0]))))
    c = F_c.constraint(theta)
    gaps = [J(pi, c) - J(pi_E, c) for pi, pi_E in zip(learners, experts, strict=True)]
    mean = sum(gaps) / len(gaps) / CASE_T
    assert payoff_gradient(F_c, experts, learners, CASE_T) @ theta == pytest.approx(mean)
    assert payoff(c, experts, learners, CASE_T) == pytest.approx(max(0.0, mean))


def test_no_constraint_at_all_is_always_among_the_answers() -> None:
    """A constraint that costs the experts more pays 0, not less: there is the zero constraint."""
    c = parse_inequality("speed >= 3", FEATURES)
    assert J(EXPERT, c) > J(OTHER, c)
    assert payoff(c, [EXPERT], [OTHER], T) == 0.0


def test_every_expert_needs_a_learner() -> None:
    with pytest.raises(ValueError, match="longer"):
        payoff(parse_inequality("speed <= 1", FEATURES), [EXPERT, EXPERT], [OTHER], T)
