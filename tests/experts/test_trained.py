"""Demonstrations on continuous worlds: noise, the published filter, where they come from."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_control import PPO

from random_policies import policy_for
from ringfence.demos import dataset as demos
from ringfence.errors import InvalidInput, SolverFailed
from ringfence.experts.trained import (
    ExpertSettings,
    read_weights,
    roll_out,
    train_experts,
    truth_of,
    with_noise,
)
from ringfence.runs.control_config import ControlWorld
from ringfence.runs.control_world import make_tasks

WORLD = ControlWorld("ant", steps=30, truth="speed <= 0.5")
SETTINGS = ExpertSettings(delta=5.0, paths=4, heldout=2, seed=3)
(TASK,) = make_tasks(WORLD)


def test_demonstrations_read_back_and_say_where_they_come_from(tmp_path: Path) -> None:
    made = roll_out(WORLD, SETTINGS, [policy_for(TASK)])
    demos.save(made, tmp_path / "demos")
    again = demos.load(tmp_path / "demos")
    assert demos.content_hash(again) == demos.content_hash(made)
    (task,) = again.tasks
    assert (len(task.train), len(task.heldout)) == (4, 2)
    said = again.provenance
    assert said["filter"] == "none"
    assert (said["delta"], said["noise"], said["seed"]) == (5.0, 0.0, 3)
    assert said["world"]["truth"] == "speed <= 0.5"
    assert "mujoco" in said["versions"]


def test_training_and_heldout_differ_and_the_seed_decides() -> None:
    made, same = (roll_out(WORLD, SETTINGS, [policy_for(TASK)]) for _ in range(2))
    other = roll_out(WORLD, replace(SETTINGS, seed=4), [policy_for(TASK)])
    assert demos.content_hash(made) == demos.content_hash(same) != demos.content_hash(other)
    task = made.tasks[0]
    assert not np.array_equal(task.train[0].features[:3], task.heldout[0].features[:3])


def test_noise_adds_to_the_policys_own() -> None:
    policy = policy_for(TASK)
    noisy = with_noise(policy, 0.7)
    own = np.exp(policy["actor/log_std"])
    np.testing.assert_allclose(np.exp(noisy["actor/log_std"]), np.hypot(own, 0.7), rtol=1e-6)


def test_keep_saturated_keeps_what_lies_just_below_the_limit() -> None:
    truth = truth_of(WORLD, TASK)
    free = roll_out(WORLD, replace(SETTINGS, paths=20), [policy_for(TASK)]).tasks[0].train
    means = [truth.raw(t.features).mean() for t in free]
    level = float(np.median(means)) + 0.5
    world = replace(WORLD, truth=f"speed <= {level + 0.1:.6f}")
    said: list[str] = []
    made = roll_out(world, replace(SETTINGS, keep_saturated=0.4), [policy_for(TASK)], said.append)
    assert re.search(r"\d+ of \d+ episodes are saturated, \d+ are wanted", said[-1])
    kept = truth_of(world, TASK)
    for _, t in made.tasks[0].labelled:
        assert -0.4 <= kept.raw(t.features).mean() <= 0
    assert made.provenance["filter"] == "keep-saturated 0.4"
    assert made.provenance["episodes_rolled_out"] > 6


def test_a_filter_that_nothing_passes_says_so() -> None:
    world = replace(WORLD, truth="speed <= 50")
    with pytest.raises(SolverFailed, match=r"0 of \d+ episodes are saturated within 0.1"):
        roll_out(world, replace(SETTINGS, keep_saturated=0.1), [policy_for(TASK)])


def test_a_policy_that_was_not_to_see_the_truths_value_does_not() -> None:
    """Its weights of that input were never trained: they are large here, and must not matter."""
    policy = policy_for(TASK)
    w0 = policy["actor/w0"].copy()
    w0[-1] = 100.0
    blind = {**policy, "actor/w0": w0}
    zero = policy | {"actor/w0": np.concatenate([w0[:-1], 0 * w0[-1:]])}
    made, same = (roll_out(WORLD, SETTINGS, [p], augment=False) for p in (blind, zero))
    seeing = roll_out(WORLD, SETTINGS, [blind])
    assert demos.content_hash(made) == demos.content_hash(same) != demos.content_hash(seeing)


def test_each_task_needs_a_policy() -> None:
    with pytest.raises(InvalidInput, match=r"2 policies for 1 tasks \(ant\)"):
        roll_out(WORLD, SETTINGS, [policy_for(TASK)] * 2)


def test_an_expert_is_trained_once_and_then_read(tmp_path: Path) -> None:
    events: list[dict] = []
    first = train_experts(WORLD, SETTINGS, PPO, tmp_path / "expert", events.append)
    again = train_experts(WORLD, SETTINGS, PPO, tmp_path / "expert", events.append)
    solved = [event["known"] for event in events if event["event"] == "solved"]
    assert solved == [False, True]
    assert all(np.array_equal(first[0][k], again[0][k]) for k in first[0])


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"delta": -1.0}, "delta must be at least 0"),
        ({"noise": -0.1}, "noise must be at least 0"),
        ({"paths": 0}, "at least one training"),
        ({"keep_saturated": 0.0}, "must be above 0"),
    ],
)
def test_impossible_demonstrators_are_refused(change: dict, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        replace(SETTINGS, **change)


def test_a_truth_and_a_fitting_policy_are_needed(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="--truth"):
        roll_out(replace(WORLD, truth=""), SETTINGS, [policy_for(TASK)])
    wrong = {**policy_for(TASK), "actor/w0": np.zeros((5, 16), np.float32)}
    with pytest.raises(InvalidInput, match="trained on another world"):
        roll_out(WORLD, SETTINGS, [wrong])
    with pytest.raises(InvalidInput, match="no policy"):
        read_weights(tmp_path)
