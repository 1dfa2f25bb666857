"""Games of milliseconds: their experts keep the truth, and what is learned is near it."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.constraints.written import parse_constraint
from ringfence.objects import J
from ringfence.reproduce.small_games import WORLDS, SmallWorld, played


@pytest.fixture(scope="module", params=list(WORLDS))
def world(request: pytest.FixtureRequest) -> SmallWorld:
    return WORLDS[request.param]()


def test_experts_use_their_share_of_the_budget(world: SmallWorld) -> None:
    """Where going beyond the limit pays: one of the hill's three valleys isn't deep enough."""
    c = parse_constraint(world.truth, world.tasks[0].features)
    costs = [J(world.expert(k, 1.0).behaviour, c) for k in range(len(world.tasks))]
    deep = sorted(costs)[-2:] if world.name == "hill" else costs
    assert deep == pytest.approx([world.budget] * len(deep), rel=0.2)


def test_experts_earn_less_than_learners_without_a_constraint(world: SmallWorld) -> None:
    game = played(world, 0, 1)
    for pi, pi_E in zip(game.records[0].learners, game.experts, strict=True):
        assert pi.reward > pi_E.reward


def test_what_is_learned_is_near_the_truth(world: SmallWorld) -> None:
    found = [list(world.family.parameters(played(world, n, 1).c).values()) for n in range(2)]
    assert np.mean(found) == pytest.approx(world.true, rel=0.1)
