from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import own_cart
import ringfence
from ringfence import demos as demonstrations
from ringfence.constraints.linear import LinearConstraint
from ringfence.demos import Demonstrations, TaskDemos, content_hash
from ringfence.errors import InvalidInput
from ringfence.intervals import binomial_interval
from ringfence.objects import Feature, Trajectory
from ringfence.runs import control_transfer
from ringfence.runs.control_transfer import (
    FILE,
    Settings,
    TransferConfig,
    create,
    read_task,
    summarise,
    violations,
)
from ringfence.runs.control_world import make_tasks

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


def learned(run: Path, speeds: tuple[float, ...]) -> Path:
    """A run that learned speed <= 0.65 from demonstrations at these speeds, the last held out."""
    *train, heldout = map(episode, speeds)
    demos = Demonstrations((TaskDemos("cart", tuple(train), (heldout,)),), SPEED.features, {})
    demonstrations.save(demos, run / "demos")
    (run / "config.toml").write_text("")
    c = LinearConstraint(SPEED.features, np.ones(1), 0.65)
    source = {"demonstrations_sha256": content_hash(demos)}
    ringfence.save(c, run / "constraint", delta=86.0, provenance=source)
    return run / "constraint"


def transferred(folder: Path, constraint: Path, speeds: list[float]) -> dict:
    """The summary of a transfer to the cart whose truth is speed <= 0.75."""
    text = own_cart.TOML.replace("steps = 50", 'steps = 50\ntruth = "speed <= 0.75"', 1)
    world, ppo = read_task(str(own_cart.write(folder, text)))
    create(folder / "out", TransferConfig("", 0, world, Settings(86.0), ppo), constraint)
    config = control_transfer.read(folder / "out" / FILE)
    (task,) = make_tasks(config.world)
    return summarise(
        config, task, ringfence.load(constraint).constraint, list(map(episode, speeds))
    )


def test_true_violations_are_counted_against_the_costliest_demonstration(tmp_path: Path) -> None:
    constraint = learned(tmp_path / "run", (0.6, 0.7, 0.7))
    found = transferred(tmp_path, constraint, [0.80] * 9 + [0.70])
    assert found["violating_episodes"] == 0
    assert found["true_violating_episodes"] == 9
    assert found["true_violation_chance"] == list(binomial_interval(9, 10))
    assert found["true_limit"] == 0.0
    assert found["true_limit_is"] == "the most that a demonstration costs"


def test_held_out_demonstrations_show_what_is_allowed_too(tmp_path: Path) -> None:
    found = transferred(tmp_path, learned(tmp_path / "run", (0.6, 0.78, 0.79)), [0.78, 0.80])
    assert found["true_limit"] == pytest.approx(3 * np.log1p(0.79 - 0.75))
    assert found["true_violating_episodes"] == 1


@pytest.mark.parametrize("others", [False, True])
def test_without_its_own_demonstrations_any_true_cost_counts(tmp_path: Path, others: bool) -> None:
    constraint, elsewhere = learned(tmp_path / "run", (0.6, 0.79, 0.7)), tmp_path / "elsewhere"
    if others:
        learned(elsewhere, (0.9, 0.9))
        shutil.rmtree(elsewhere / "constraint")
    shutil.copytree(constraint, elsewhere / "constraint")
    found = transferred(tmp_path, elsewhere / "constraint", [0.76, 0.70])
    assert found["true_violating_episodes"] == 1
    assert found["true_limit"] == 0.0
    assert "any true cost counts" in found["true_limit_is"]


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
