"""What a game says against its own outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from played_games import ROW, chosen, drive, played, records, solution
from ringfence.analysis.doubts import doubts, doubts_of_probe
from ringfence.objects import Behaviour, Solution, behaviour_of


def of(limit: float = 1.2, rewarding: bool = True, **changes: Any) -> list[str]:
    game = played(
        records=records([limit], [solution(1.0)]),
        rows=[ROW | changes],
        chosen=chosen(1, 1, rewarding),
    )
    return doubts(game)


def test_a_game_that_went_well_has_none() -> None:
    assert of() == []
    assert of(learner_cost_mean=0.9, delta_mean=0.0) == []  # 0 is approached, never reached


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rewarding": False}, "learners don't earn what the experts do"),
        ({"learner_reward_mean": 151.4}, "the learner earns 151.4, the experts 100"),
        ({"learner_cost_mean": 31.5}, "costs 31.5, 10 are allowed"),
        ({"learner_cost_mean": 5.2, "delta_mean": 0.0}, "costs 5.2, 0 are allowed"),
        ({"learner_failed": [3.0]}, "3 of the learners' episodes failed at the task"),
        ({"limit": 0.5}, "limit of 0: steps that cost something on drive (100.0%)"),
        ({"limit": 1.763}, "no demonstrated step comes near the constraint"),
    ],
)
def test_what_speaks_against_it_is_said(given: dict[str, Any], words: str) -> None:
    (only,) = of(**given)
    assert words in only


def test_rewards_may_be_negative() -> None:
    assert of(learner_reward_mean=-90.0, expert_reward_mean=-100.0) == []
    assert len(of(learner_reward_mean=-60.0, expert_reward_mean=-100.0)) == 1


def test_only_the_selected_iterate_is_doubted() -> None:
    bad, rounds = ROW | {"learner_cost_mean": 99.0}, records([1.2] * 3, [solution(1.0)] * 3)
    assert doubts(played(2, records=rounds, rows=[bad, ROW, bad])) == []
    assert len(doubts(played(3, records=rounds, rows=[ROW, ROW, bad]))) == 1


def test_a_probe_that_earns_less_than_the_demonstrators_is_doubted() -> None:
    """Episodes earn 1 a step."""
    experts = [behaviour_of([drive(1.0, 1.0, 1.0)])]
    assert doubts_of_probe([solution(1.0, 1.0, 1.0)], experts) == []
    assert doubts_of_probe([solution(*[1.0] * 4)], experts) == []
    (only,) = doubts_of_probe([solution(1.0, 1.0)], experts)
    assert "earns less than the demonstrators on 1 of 1 task(s) after 0 steps" in only


def test_a_trained_probe_that_finds_nothing_is_doubted_too() -> None:
    pi = Behaviour(np.zeros((1, 1)), np.ones(1), 1.0, 0.1, 1.0, 10)
    (doubt,) = doubts_of_probe([Solution({}, 0.0, pi, env_steps=500)], [pi])
    assert "after 500 steps" in doubt
    assert "opening.kind=none" in doubt
