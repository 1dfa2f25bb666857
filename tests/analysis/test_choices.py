"""The selected iterate beside the last, a random one and the truth's choice."""

from __future__ import annotations

from typing import Any

import pytest

from ringfence.analysis.choices import COMPARED, choices
from ringfence.selection import Selection


def row(i: int, reward: float, true_cost: float | None, error: float | None) -> dict[str, Any]:
    return {
        "i": i,
        "constraint_error": error,
        "learner_reward_mean": reward,
        "learner_true_raw_mean": None if true_cost is None else true_cost - 1,
        "learner_true_cost_mean": true_cost,
        "expert_true_cost_mean": None if true_cost is None else 1.0,
    }


def chosen(i: int, *rewards: float) -> Selection:
    """The experts earn 5, give or take 1."""
    none = (0,) * len(rewards)
    return Selection(i, len(rewards), 0, none, none, none, rewards, 5.0, 1.0, True)


def test_selected_last_and_random_are_compared() -> None:
    rows = [row(1, 9.0, 8.0, 0.5), row(2, 6.0, 2.0, 0.25), row(3, 3.0, 0.0, 0.0)]
    found = choices(rows, chosen(2, 9.0, 6.0, 3.0))
    assert {name: found[name]["i"] for name in found} == {
        **{"selected": 2, "last": 3, "random": None},
        "truth": 2,
    }
    assert found["selected"]["constraint_error"] == 0.25
    assert found["random"]["learner_reward_mean"] == pytest.approx(6.0)
    assert all(set(COMPARED) < set(choice) for choice in found.values())


def test_the_truths_choice_earns_enough_and_violates_least() -> None:
    """Of those that earn enough the least true cost beyond the experts'; of those without any the
    one that earns most. The safest learner here earns too little."""
    rows = [
        row(1, 9.0, 8.0, 0.5),
        row(2, 6.0, 0.5, 0.2),
        row(3, 7.0, 0.9, 0.1),
        row(4, 3.0, 0.0, 0),
    ]
    assert choices(rows, chosen(1, 9.0, 6.0, 7.0, 3.0))["truth"]["i"] == 3


def test_without_a_truth_there_is_no_such_choice() -> None:
    rows = [row(1, 9.0, None, None), row(2, 6.0, None, None)]
    found = choices(rows, chosen(2, 9.0, 6.0))
    assert found["truth"] is None
    assert found["random"]["constraint_error"] is None
    assert found["selected"]["learner_true_cost_mean"] is None
