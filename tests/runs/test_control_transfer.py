from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import own_cart
from ringfence.constraints.linear import LinearConstraint
from ringfence.errors import InvalidInput
from ringfence.intervals import binomial_interval
from ringfence.objects import Feature, Trajectory
from ringfence.runs.control_transfer import Settings, read_task, violations

SPEED = LinearConstraint((Feature("speed", "m/s"),), np.ones(1), 1.0)


def episode(speed: float) -> Trajectory:
    """Three steps at one speed."""
    steps = np.full((3, 1), speed)
    return Trajectory(np.zeros((4, 1)), steps, steps[:, 0], steps, False)


def test_an_episode_violates_if_its_cost_sums_to_more_than_delta() -> None:
    runs = [episode(speed) for speed in (0.5, 1.0, 1.2, 3.0)]
    delta = 3 * np.log1p(0.2) + 1e-9  # the third episode just keeps it
    found = violations("true_", SPEED, runs, delta)
    assert found["true_violating_episodes"] == 1
    assert found["true_violation_chance"] == list(binomial_interval(1, 4))
    assert found["true_cost"] == pytest.approx(3 * (np.log1p(0.2) + np.log1p(2.0)) / 4)
    assert found["true_raw"] == pytest.approx(3 * (-0.5 + 0.0 + 0.2 + 2.0) / 4)
    assert violations("", SPEED, runs, 0.0)["violating_episodes"] == 2


def test_a_task_is_one_of_a_file(tmp_path: Path) -> None:
    two = 'steps = 50\ntasks = [{ name = "a" }, { name = "b", kwargs = { pay = 2.0 } }]'
    path = own_cart.write(tmp_path, own_cart.TOML.replace("steps = 50", two, 1))
    world, ppo = read_task(f"{path}:b")
    assert [t.kwargs for t in world.tasks] == [{"pay": 2.0}]
    assert ppo.env_steps == 2048
    with pytest.raises(InvalidInput, match="choose one with --task"):
        read_task(str(path))
    with pytest.raises(InvalidInput, match="no task 'c'; it has a, b"):
        read_task(f"{path}:c")


@pytest.mark.parametrize(("delta", "episodes"), [(-1.0, 100), (float("inf"), 100), (1.0, 1)])
def test_impossible_settings_are_refused(delta: float, episodes: int) -> None:
    with pytest.raises(InvalidInput):
        Settings(delta, episodes)
