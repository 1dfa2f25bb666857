"""Network constraints: the formula, words, speed and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ringfence.constraints.mlp import NUMBERS_AT_ONCE, MLPConstraint, zero_network
from ringfence.errors import InvalidInput
from ringfence.objects import Array
from saved_constraints import PLANE, random_network


def by_hand(c: MLPConstraint, phi: Array) -> Array:
    """The same network in float64, one row at a time."""
    out = []
    for row in phi:
        x = (row - c.mean) / c.scale
        for w, b in zip(c.weights[:-1], c.biases[:-1], strict=True):
            x = np.array([max(0.0, float(v)) for v in x @ w + b])
        out.append(float((x @ c.weights[-1] + c.biases[-1])[0]) - c.offset)
    return np.array(out)


def test_raw_is_the_network_and_cost_its_log_activation() -> None:
    c = random_network()
    phi = np.random.default_rng(1).normal(size=(50, 2)) * 3
    expected = by_hand(c, phi)
    assert (expected > 0).any()
    assert (expected < 0).any()
    raw = c.raw(phi)
    assert raw.dtype == np.float64
    assert raw.shape == (50,)
    np.testing.assert_allclose(raw, expected, rtol=1e-4, atol=1e-5)
    assert np.array_equal(c.cost(phi), np.log1p(np.maximum(raw, 0)))


def test_large_batches_give_what_small_ones_give() -> None:
    c = random_network()
    phi = np.random.default_rng(1).normal(size=(2 * NUMBERS_AT_ONCE // 8 + 7, 2))
    parts = [c.raw(phi[at : at + 1000]) for at in range(0, len(phi), 1000)]
    np.testing.assert_allclose(c.raw(phi), np.concatenate(parts), rtol=1e-5, atol=1e-5)
    assert c.raw(phi[:0]).shape == (0,)


def test_a_feature_with_zero_rows_is_not_used() -> None:
    c = random_network()
    c.weights[0][1] = 0
    phi = np.random.default_rng(1).normal(size=(20, 2))
    assert np.array_equal(c.raw(phi), c.raw(phi * [1, -5]))
    assert c.describe() == "network 1-8-5-1 of x, lowered by 0.25"


def test_words() -> None:
    assert random_network((128, 128), offset=0.0).describe() == "network 2-128-128-1 of x, y"
    zero = zero_network(PLANE)
    assert zero.describe() == "no constraint (zero everywhere)"
    assert not zero.raw(np.random.default_rng(0).normal(size=(9, 2))).any()


def test_wrong_networks_are_refused_with_the_reason() -> None:
    c = random_network()
    cases = [
        ("means and scales", {"mean": np.zeros(3)}),
        ("1 weights and 3 biases", {"weights": c.weights[:1]}),
        ("layer 0 .* input has 2", {"weights": (c.weights[1], *c.weights[1:])}),
        ("end in one output", {"weights": c.weights[:2], "biases": c.biases[:2]}),
        ("finite", {"offset": np.nan}),
        ("finite", {"biases": (*c.biases[:2], np.full(1, np.inf, np.float32))}),
        ("scales positive", {"scale": np.zeros(2)}),
    ]
    for word, change in cases:
        with pytest.raises(InvalidInput, match=word):
            replace(c, **change)
    with pytest.raises(InvalidInput, match="don't fit"):
        c.raw(np.zeros((4, 3)))
