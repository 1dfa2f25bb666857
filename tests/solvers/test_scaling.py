"""Where the units of inputs and targets move, what a network says doesn't."""

from __future__ import annotations

import numpy as np

from ringfence.solvers.networks import initial_params, network
from ringfence.solvers.scaling import (
    Statistics,
    divided,
    normalised,
    rescaled,
    same_outputs,
    same_values,
)

RNG = np.random.default_rng(0)
PARAMS = initial_params(3, 2, (8,), -1.0, 1.0, RNG)


def test_statistics_are_those_of_all_inputs_together():
    x = np.random.default_rng(0).normal(3, 2, (5, 4, 3))
    s = Statistics(np.zeros(3), np.ones(3))
    for part in x:
        s = s.add(part)
    np.testing.assert_allclose(s.mean, x.reshape(-1, 3).mean(axis=0))
    np.testing.assert_allclose(s.std, x.reshape(-1, 3).std(axis=0))


def test_statistics_begin_where_a_policy_left_them():
    start = {"norm/mean": np.arange(3.0), "norm/std": np.full(3, 2.0), "norm/count": np.array(7.0)}
    s = Statistics.begin(start, 3)
    assert (s.mean.tolist(), s.var.tolist(), s.count) == ([0, 1, 2], [4, 4, 4], 7)
    fresh = Statistics.begin({}, 3)
    assert (fresh.mean.tolist(), fresh.var.tolist(), fresh.count) == ([0, 0, 0], [1, 1, 1], 0)


def test_an_actor_says_the_same_under_new_statistics():
    x = RNG.normal(1, 2, (50, 3))
    old, new = Statistics(np.zeros(3), np.ones(3)), Statistics(np.ones(3), np.array([4.0, 1, 9]))
    said = network(PARAMS["actor"], normalised(x, old.mean, old.std))
    moved = same_outputs(PARAMS["actor"], old, new)
    again = network(moved, normalised(x, new.mean, new.std))
    np.testing.assert_allclose(said, again, atol=1e-5)


def test_a_critic_says_the_same_in_new_units():
    x = RNG.standard_normal((50, 3)).astype(np.float32)
    old, new = np.array([[0.0, 1.0], [1.0, 3.0]]), np.array([[10.0, -2.0], [5.0, 0.5]])
    said = network(PARAMS["critic"], x) * old[1] + old[0]
    again = network(same_values(PARAMS["critic"], old, new), x) * new[1] + new[0]
    np.testing.assert_allclose(said, again, atol=1e-4)


def test_units_follow_the_targets():
    targets = RNG.normal([5.0, 0.0], [3.0, 0.0], (200, 4, 2))
    now = np.asarray(rescaled(np.array([[0.0, 0.0], [1.0, 1.0]]), targets, np.float32(1.0)))
    np.testing.assert_allclose(now[:, 0], [5.0, 3.0], rtol=0.1)
    assert now[:, 1].tolist() == [0.0, 0.0]  # a cost that is always 0 has no unit
    unmoved = rescaled(np.array([[1.0, 2.0], [3.0, 4.0]]), targets, np.float32(0.0))
    np.testing.assert_allclose(unmoved, [[1, 2], [3, 4]])


def test_a_scale_of_the_targets_is_a_scale_of_the_units_to_the_bit():
    targets = RNG.normal(5.0, 3.0, (20, 4, 2)).astype(np.float32)
    scale = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    ours = np.asarray(rescaled(scale, targets, np.float32(0.25)))
    for factor in (64.0, 1 / 64):
        theirs = rescaled(
            np.float32(factor) * scale, np.float32(factor) * targets, np.float32(0.25)
        )
        assert np.array_equal(theirs, np.float32(factor) * ours)


def test_what_never_varied_is_divided_to_0_and_a_critic_learns_it_anew():
    x = np.array([[3.0, 5.0], [0.0, -1.0]])
    np.testing.assert_array_equal(divided(x, np.array([2.0, 0.0])), [[1.5, 0], [0, 0]])
    inputs = RNG.standard_normal((10, 3)).astype(np.float32)
    none, some = np.zeros((2, 2)), np.array([[0.0, 1.0], [1.0, 2.0]])
    said = network(same_values(PARAMS["critic"], none, some), inputs) * some[1] + some[0]
    np.testing.assert_allclose(said, np.zeros((10, 2)), atol=1e-6)  # as before: nothing
    gone = same_values(PARAMS["critic"], some, none)
    assert all(np.isfinite(np.asarray(v)).all() for v in gone.values())
