"""Several tasks as one: copies spread over them, episodes of all alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from line_task import Line
from random_policies import policy_for
from ringfence.errors import InvalidInput
from ringfence.objects import Array
from ringfence.worlds.sim.mixture import Mixture
from ringfence.worlds.sim.rollouts import CollectorSpec

A, B, C = (replace(Line(), name=name) for name in "abc")


def speed(phi: Array) -> Array:
    return phi[:, 1]


def spec(copies: int = 7) -> CollectorSpec:
    return CollectorSpec(copies, speed, (3, 1, 3))


def test_every_task_has_its_share_of_the_copies() -> None:
    chunk = Mixture((A, B, C)).collector(spec()).collect(policy_for(A), 5, 0)
    assert chunk.rewards.shape == (5, 7)
    alone = A.collector(CollectorSpec(3, speed, (3, 1, 3, 4, 0))).collect(policy_for(A), 5, 0)
    assert np.array_equal(chunk.features[:, :3], alone.features)


def test_episodes_are_of_the_tasks_in_turn() -> None:
    mixture, policy = Mixture((A, B)), policy_for(A)
    runs = mixture.collector(spec(4)).episodes(policy, 5, False, (9,))
    own = [t.collector(spec(2)).episodes(policy, 3, False, (9, k)) for k, t in enumerate((A, B))]
    expected = [own[0][0], own[1][0], own[0][1], own[1][1], own[0][2]]
    assert len(runs) == 5
    for run, other in zip(runs, expected, strict=True):
        assert np.array_equal(run.features, other.features)


def test_a_training_that_was_saved_goes_on_in_the_same_steps() -> None:
    mixture, policy = Mixture((A, B)), policy_for(A)
    one, other = (mixture.collector(spec(4)) for _ in range(2))
    one.collect(policy, 10, 0)
    other.restore(one.save())
    ours, theirs = (each.collect(policy, 10, 1) for each in (one, other))
    assert np.array_equal(ours.features, theirs.features)


def test_tasks_of_one_policy_are_alike_and_not_more_than_copies() -> None:
    with pytest.raises(InvalidInput, match="episode lengths differ"):
        Mixture((A, replace(B, horizon=9)))
    with pytest.raises(InvalidInput, match="at least 3 copies"):
        Mixture((A, B, C)).collector(spec(2))
