"""Nothing that isn't finite crosses between a policy and an environment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringfence.errors import SolverFailed
from ringfence.worlds.sim.border import Border
from ringfence.worlds.sim.rollouts import Step


class Simulator:
    """Two copies; after the step `at`, `spoilt` replaces an entry of copy 1."""

    copies = 2

    def __init__(self, at: int = 0, **spoilt: Any) -> None:
        self.at, self.spoilt, self.steps = at, spoilt, 0

    def reset(self, which: Any, rngs: Any) -> np.ndarray:
        return np.array([[0.0], [self.spoilt.get("start", 0.0)]])

    def step(self, actions: np.ndarray) -> Step:
        self.steps += 1
        step = Step(np.zeros((2, 1)), np.zeros(2), np.zeros((2, 1)), np.zeros(2, bool))
        for name, value in self.spoilt.items() if self.steps == self.at else ():
            if name == "terminated":
                return step._replace(terminated=value)
            getattr(step, name)[1] = value
        return step


def walked(simulator: Simulator, action: float = 0.0) -> Border:
    border = Border(simulator, "cart", first=4)
    border.reset(np.arange(2), [])
    for _ in range(3):
        border.step(np.full((2, 1), action))
    return border


@pytest.mark.parametrize(
    ("quantity", "spoilt"),
    [
        ("observation", {"observations": np.nan}),
        ("reward", {"rewards": np.inf}),
        ("feature", {"features": np.nan}),
    ],
)
def test_what_is_not_finite_is_named_with_copy_and_step(quantity: str, spoilt: dict) -> None:
    walked(Simulator())
    with pytest.raises(SolverFailed, match=rf"cart: {quantity} is (nan|inf) at step 3 .* copy 5"):
        walked(Simulator(3, **spoilt))


def test_a_start_that_is_not_finite_is_named() -> None:
    with pytest.raises(SolverFailed, match="observation is nan at step 0 of an episode in copy 5"):
        walked(Simulator(start=np.nan))


def test_an_action_that_is_not_finite_reaches_no_environment() -> None:
    simulator = Simulator()
    with pytest.raises(SolverFailed, match=r"action is nan at step 0 .*diverged"):
        walked(simulator, np.nan)
    assert simulator.steps == 0


def test_ends_are_true_or_false() -> None:
    with pytest.raises(SolverFailed, match="ends of episodes are float64, not bool"):
        walked(Simulator(2, terminated=np.array([0.0, np.nan])))
