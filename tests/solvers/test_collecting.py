"""Between a simulator and PPO."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from random_policies import policy_for
from ringfence.constraints.linear import parse_inequality
from ringfence.errors import InvalidInput
from ringfence.objects import Problem
from ringfence.solvers.collecting import checked, evaluate, no_augmentation, prepare, seen_of
from ringfence.worlds.ant import AntTask
from ringfence.worlds.sim.rollouts import CollectorSpec

TASK = AntTask(horizon=20)
SPEED = parse_inequality("speed <= 0.75", TASK.features)


def test_a_policy_sees_the_constraint_or_nothing():
    phi = np.array([[0.0, 0.0, 1.75]])
    assert seen_of(SPEED, augment=True)(phi) == pytest.approx([1.0])
    assert seen_of(SPEED, augment=False) is no_augmentation
    assert no_augmentation(phi).tolist() == [0.0]


def test_a_limit_that_is_no_number_is_refused():
    problem = Problem(TASK, SPEED, 1.0, None, (0,))
    assert checked(problem) is TASK
    with pytest.raises(InvalidInput, match="limit must be finite"):
        checked(replace(problem, delta=np.inf))


def test_as_many_whole_episodes_as_asked_for_the_same_each_time():
    runs = [evaluate(TASK, policy_for(TASK), no_augmentation, 3, (7,)) for _ in range(2)]
    assert [len(t.rewards) <= 20 for t in runs[0]] == [True] * 3
    for one, two in zip(*runs, strict=True):
        assert np.array_equal(one.observations, two.observations)


@pytest.mark.parametrize(("steps", "room"), [(8, 8), (45, 24)])
def test_a_rollout_has_one_shape_however_many_episodes_end_in_it(steps: int, room: int):
    policy = policy_for(TASK)
    collector = TASK.collector(CollectorSpec(8, no_augmentation, (0,)))
    chunk = collector.collect(policy, steps, 0)
    data = prepare(chunk, np.ones((steps, 8, 2)), policy, TASK.horizon)
    cuts = len(chunk.final_at)
    assert 0 < cuts < room
    assert data["final_x"].shape == (room, 28)
    assert (data["final_at"][:cuts] == chunk.final_at).all()
    assert (data["final_at"][cuts:] == steps).all()  # beyond the end: ignored
    assert np.array_equal(data["signals"][..., 0], chunk.rewards.astype(np.float32))
    assert np.array_equal(data["signals"][..., 1:], np.ones((steps, 8, 2)))
    assert {data[k].dtype for k in ("x", "last_x", "final_x", "signals")} == {np.dtype("float32")}
