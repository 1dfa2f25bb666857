"""What a game says against its own outcome."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.constraints.linear import parse_inequality
from ringfence.objects import Feature, Trajectory
from ringfence.runs.doubts import doubts

SPEED = (Feature("speed", "m/s"),)
FINE = {
    "learner_reward_mean": 104.0,
    "expert_reward_mean": 100.0,
    "learner_cost_mean": 12.0,
    "delta_mean": 10.0,
    "learner_length_mean": 100.0,
}


def drive(*speeds: float) -> Trajectory:
    n = len(speeds)
    phi = np.array(speeds)[:, None]
    return Trajectory(np.zeros((n + 1, 1)), np.zeros((n, 1)), np.ones(n), phi, terminated=False)


SHOWN = [drive(0.2, 0.8, 1.19), drive(0.3, 0.9, 1.2)]


def of(limit: float = 1.2, rewarding: bool = True, **changes: float) -> list[str]:
    return doubts(FINE | changes, rewarding, parse_inequality(f"speed <= {limit}", SPEED), SHOWN)


def test_a_game_that_went_well_has_none() -> None:
    assert of() == []
    assert of(limit=0.5) == []
    assert of(learner_cost_mean=0.9, delta_mean=0.0) == []  # 0 is approached, never reached


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rewarding": False}, "no learner earned what the experts do"),
        ({"learner_reward_mean": 151.4}, "the learner earns 151.4, the experts 100"),
        ({"learner_cost_mean": 31.5}, "costs 31.5, 10 are allowed"),
        ({"learner_cost_mean": 5.2, "delta_mean": 0.0}, "costs 5.2, 0 are allowed"),
        ({"limit": 1.763}, "no demonstrated step comes near the constraint"),
    ],
)
def test_what_speaks_against_it_is_said(given: dict, words: str) -> None:
    (only,) = of(**given)
    assert words in only


def test_rewards_may_be_negative() -> None:
    assert of(learner_reward_mean=-90.0, expert_reward_mean=-100.0) == []
    assert len(of(learner_reward_mean=-60.0, expert_reward_mean=-100.0)) == 1
