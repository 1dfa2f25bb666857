"""Demonstrations on continuous worlds: noise, the published filter, where they come from."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from random_policies import policy_for
from ringfence.demos import dataset as demos
from ringfence.errors import InvalidInput, SolverFailed
from ringfence.experts.trained import Config, roll_out, truth_of, with_noise
from ringfence.objects import Demonstrations
from ringfence.worlds.ant import AntTask

TASK = AntTask(horizon=30)
TRUTH = "speed <= 0.5"
SETTINGS = Config(delta=5.0, paths=4, heldout=2, seed=3)
ORIGIN = {"world": {"kind": "ant", "truth": TRUTH}}


def rolled(settings: Config = SETTINGS, truth: str = TRUTH, **changes: Any) -> Demonstrations:
    given = {"policies": [policy_for(TASK)], "provenance": ORIGIN, **changes}
    return roll_out([TASK], truth, settings, **given)


def test_demonstrations_read_back_and_say_where_they_come_from(tmp_path: Path) -> None:
    made = rolled()
    demos.save(made, tmp_path / "demos")
    again = demos.load(tmp_path / "demos")
    assert demos.content_hash(again) == demos.content_hash(made)
    (task,) = again.tasks
    assert (len(task.train), len(task.heldout)) == (4, 2)
    said = again.provenance
    assert said["filter"] == "none"
    assert (said["delta"], said["noise"], said["seed"]) == (5.0, 0.0, 3)
    assert said["world"] == ORIGIN["world"]
    c = truth_of(TRUTH, TASK)
    cost = np.mean([c.cost(t.features).sum() for _, t in task.labelled])
    assert said["true_cost"] == {task.task: pytest.approx(float(cost))}


def test_training_and_heldout_differ_and_the_seed_decides() -> None:
    made, same = rolled(), rolled()
    other = rolled(replace(SETTINGS, seed=4))
    assert demos.content_hash(made) == demos.content_hash(same) != demos.content_hash(other)
    task = made.tasks[0]
    assert not np.array_equal(task.train[0].features[:3], task.heldout[0].features[:3])


def test_noise_adds_to_the_policys_own() -> None:
    policy = policy_for(TASK)
    noisy = with_noise(policy, 0.7)
    own = np.exp(policy["actor/log_std"])
    np.testing.assert_allclose(np.exp(noisy["actor/log_std"]), np.hypot(own, 0.7), rtol=1e-6)


def test_keep_saturated_keeps_what_lies_just_below_the_limit() -> None:
    truth = truth_of(TRUTH, TASK)
    free = rolled(replace(SETTINGS, paths=20)).tasks[0].train
    means = [truth.raw(t.features).mean() for t in free]
    level = float(np.median(means)) + 0.5
    other = f"speed <= {level + 0.1:.6f}"
    said: list[str] = []
    made = rolled(replace(SETTINGS, keep_saturated=0.4), other, say=said.append)
    assert re.search(r"\d+ of \d+ episodes are saturated, \d+ are wanted", said[-1])
    kept = truth_of(other, TASK)
    for _, t in made.tasks[0].labelled:
        assert -0.4 <= kept.raw(t.features).mean() <= 0
    assert made.provenance["filter"] == "keep-saturated 0.4"
    assert made.provenance["episodes_rolled_out"] > 6


def test_a_filter_that_nothing_passes_says_so() -> None:
    with pytest.raises(SolverFailed, match=r"0 of \d+ episodes are saturated within 0.1"):
        rolled(replace(SETTINGS, keep_saturated=0.1), "speed <= 50")


def test_a_policy_that_was_not_to_see_the_truths_value_does_not() -> None:
    """Its weights of that input were never trained: they are large here, and must not matter."""
    policy = policy_for(TASK)
    w0 = policy["actor/w0"].copy()
    w0[-1] = 100.0
    blind = {**policy, "actor/w0": w0}
    zero = policy | {"actor/w0": np.concatenate([w0[:-1], 0 * w0[-1:]])}
    made, same = (rolled(policies=[p], augment=False) for p in (blind, zero))
    seeing = rolled(policies=[blind])
    assert demos.content_hash(made) == demos.content_hash(same) != demos.content_hash(seeing)


def test_each_task_needs_a_policy() -> None:
    with pytest.raises(InvalidInput, match=r"2 policies for 1 tasks \(ant\)"):
        rolled(policies=[policy_for(TASK)] * 2)


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


def test_a_truth_and_a_fitting_policy_are_needed() -> None:
    with pytest.raises(InvalidInput, match="--truth"):
        rolled(truth="")
    wrong = {**policy_for(TASK), "actor/w0": np.zeros((5, 16), np.float32)}
    with pytest.raises(InvalidInput, match="trained on another world"):
        rolled(policies=[wrong])
