"""The symmetries are proven on the simulator: act in the view, step, look again."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.worlds.ant import AntSimulator, AntTask
from ringfence.worlds.sim import ant_symmetry as symmetry

COPIES = 6


def stepped(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Observations after each of the actions [T, n, 8], [T + 1, n, 27]."""
    simulator = AntSimulator(AntTask(), len(states))
    seen = [simulator.place(np.arange(len(states)), states)]
    seen += [simulator.step(a).observations for a in actions]
    return np.array(seen)


def walking_states() -> np.ndarray:
    """States (qpos, qvel) in contact with the floor, with x = y = 0."""
    simulator, rng = AntSimulator(AntTask(), COPIES), np.random.default_rng(0)
    seen = simulator.reset(np.arange(COPIES), [np.random.default_rng(n) for n in range(COPIES)])
    for _ in range(40):
        seen = simulator.step(rng.uniform(-1, 1, (COPIES, 8))).observations
    return np.hstack([np.zeros((COPIES, 2)), seen])


@pytest.mark.parametrize("k", [1, 2, 3])
def test_quarter_turns_are_symmetries_of_the_simulator(k: int) -> None:
    """Walking towards k quarter turns with renamed legs is walking along +x, step by step."""
    states, quarters = walking_states(), np.full(COPIES, k)
    direction = 0.5 * np.pi * quarters
    actions = np.random.default_rng(1).uniform(-1, 1, (5, COPIES, 8))
    real = stepped(states, np.array([symmetry.torques(a, quarters) for a in actions]))
    viewed = np.hstack([states[:, :2], symmetry.view(states[:, 2:], direction, quarters)])
    virtual = stepped(viewed, actions)
    for after_real, after_virtual in zip(real, virtual, strict=True):
        np.testing.assert_allclose(
            symmetry.view(after_real, direction, quarters), after_virtual, atol=1e-10
        )


def test_four_quarter_turns_change_nothing() -> None:
    seen, once = walking_states()[:, 2:], np.ones(COPIES, int)
    turned, actions = seen, np.random.default_rng(2).uniform(-1, 1, (COPIES, 8))
    back = actions
    for _ in range(4):
        turned = symmetry.view(turned, 0.5 * np.pi * once, once)
        back = symmetry.torques(back, once)
    np.testing.assert_allclose(turned, seen, atol=1e-12)
    np.testing.assert_allclose(back, actions, atol=1e-12)


def test_the_nearest_renaming_leaves_at_most_an_eighth_of_a_turn() -> None:
    seen = walking_states()[:, 2:]
    rng = np.random.default_rng(3)
    for _ in range(20):
        direction = rng.uniform(-np.pi, np.pi, COPIES)
        quarters = symmetry.nearest_quarters(seen, direction)
        left = symmetry.yaw(symmetry.view(seen, direction, quarters))
        # The torso is tilted a little, so yaw and turns commute only nearly.
        assert np.abs(left).max() < np.pi / 4 + 0.1
