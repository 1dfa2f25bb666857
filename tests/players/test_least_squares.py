"""Least squares under inequalities, by optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from ringfence.players.least_squares import least_squares_under


@pytest.mark.parametrize("seed", range(30))
def test_least_squares_under_rows_meets_the_optimality_conditions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(20, 4)), rng.normal(size=20)
    rows = rng.normal(size=(int(rng.integers(1, 12)), 4))
    x = least_squares_under(A, b, rows)
    spare = rows @ x
    assert spare.max() <= 1e-10
    # -gradient = rows^T y with y >= 0 on the active rows and 0 elsewhere.
    gradient = A.T @ (A @ x - b)
    active = rows[spare > -1e-8]
    unexplained = nnls(active.T, -gradient)[1] if len(active) else np.linalg.norm(gradient)
    assert unexplained <= 1e-8


@pytest.mark.parametrize("seed", range(10))
def test_inactive_rows_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(15, 3)), rng.normal(size=15)
    free = np.linalg.lstsq(A, b)[0]
    rows = rng.normal(size=(5, 3))
    rows *= -np.sign(rows @ free)[:, None]  # all satisfied, none at its edge
    np.testing.assert_allclose(least_squares_under(A, b, None), free, atol=1e-10)
    np.testing.assert_allclose(least_squares_under(A, b, rows), free, atol=1e-10)


def test_directions_without_data_stay_zero() -> None:
    A = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    x = least_squares_under(A, np.array([3.0, 4.0]), np.array([[1.0, 0.0, 5.0]]))
    np.testing.assert_allclose(x, [0.0, 2.0, 0.0], atol=1e-10)


# The paper's regression
