"""The networks, and their descent on a loss."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from ringfence.solvers.networks import descend, initial_params, log_prob, network, optimiser

PARAMS = initial_params(4, 2, (8, 8), -0.5, 0.01, np.random.default_rng(0))


def test_hidden_layers_are_orthogonal_and_the_actor_begins_near_zero():
    w = PARAMS["critic"]["w1"]
    np.testing.assert_allclose(w @ w.T, 2 * np.eye(8), atol=1e-5)
    x = np.random.default_rng(1).standard_normal((20, 4)).astype(np.float32)
    assert np.abs(network(PARAMS["actor"], x)).max() < 0.1
    assert network(PARAMS["critic"], x).shape == (20, 2)


def test_log_prob_is_the_gaussians():
    rng = np.random.default_rng(2)
    x, actions = rng.standard_normal((5, 4)), rng.standard_normal((5, 2))
    std = np.exp(-0.5)
    z = (actions - np.asarray(network(PARAMS["actor"], x))) / std
    wanted = (-0.5 * z**2 - np.log(std * np.sqrt(2 * np.pi))).sum(axis=1)
    np.testing.assert_allclose(log_prob(PARAMS["actor"], x, actions), wanted, rtol=1e-5)


def distance(params, rows, weight):
    return weight * jnp.square(params["w"] - rows["x"]).mean()


def test_descent_finds_the_mean_and_reports_loss_and_gradient():
    rows = {"x": np.full((8, 1), 3.0, np.float32)}
    params = {"w": np.zeros(1, np.float32)}
    order = np.tile(np.arange(8, dtype=np.int32), (400, 1))
    state = optimiser(10.0).init(params)
    found, _, loss, norm = descend(
        distance, (2.0,), params, state, rows, np.float32(0.05), order, 10.0
    )
    assert float(found["w"][0]) == pytest.approx(3.0, abs=1e-2)
    assert 0 < loss < 2 * 9
    assert norm == pytest.approx(2 * 2 * 3)  # of the first step, unclipped


CHOOSING = initial_params(4, 2, (8,), -0.5, 1.0, np.random.default_rng(0), choices=(3, 2), values=4)


def test_an_actor_of_choices_ends_in_logits_and_a_critic_in_so_many_values():
    x = np.random.default_rng(1).standard_normal((20, 4)).astype(np.float32)
    assert network(CHOOSING["actor"], x).shape == (20, 5)
    assert network(CHOOSING["critic"], x).shape == (20, 4)
    assert "log_std" not in CHOOSING["actor"]


def test_log_prob_of_choices_is_the_sum_of_their_softmaxes():
    x = np.random.default_rng(1).standard_normal((20, 4)).astype(np.float32)
    logits = np.asarray(network(CHOOSING["actor"], x), np.float64)
    total = np.zeros(20)
    for first in range(3):
        for second in range(2):
            taken = np.tile(np.array([first, second], np.float32), (20, 1))
            found = np.asarray(log_prob(CHOOSING["actor"], x, taken, (3, 2)))
            one, two = (np.exp(part) for part in (logits[:, :3], logits[:, 3:]))
            wanted = one[:, first] / one.sum(axis=1) * two[:, second] / two.sum(axis=1)
            np.testing.assert_allclose(np.exp(found), wanted, rtol=1e-4)
            total += np.exp(found)
    np.testing.assert_allclose(total, 1.0, rtol=1e-4)
