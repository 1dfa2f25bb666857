"""Least squares, free and under linear inequalities: what the regression is made of."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from ringfence.errors import InvalidInput
from ringfence.objects import Array

#: A dual residual this small means that no constraint of the class is admissible.
IMPOSSIBLE = 1e-12


def solve_normal(A: Array, b: Array) -> Array:
    """A x = b for a positive semi-definite A; directions without data keep x = 0."""
    scale = np.sqrt(np.maximum(np.diag(A), 1e-300))
    x = np.linalg.lstsq(A / np.outer(scale, scale), b / scale, rcond=1e-12)[0]
    return np.asarray(x / scale)


def least_squares_under(
    A: Array, b: Array, rows: Array | None, bound: Array | float = 0.0, text: str = "linear"
) -> Array:
    """argmin ||A x - b|| subject to rows @ x <= bound (Lawson and Hanson's LSI, by NNLS).

    With A = U S V^T the problem is to find the shortest z = S V^T x - U^T b in a polyhedron, whose
    dual is non-negative least squares. Directions in which A has no data keep x = 0. text: of the
    class, for the message where no x is admissible.
    """
    U, S, Vt = np.linalg.svd(A, full_matrices=False)
    keep = 1e-10 * S[0] < S
    U, S, Vt = U[:, keep], S[keep], Vt[keep]
    target = U.T @ b
    if rows is None:
        return np.asarray(Vt.T @ (target / S))
    G = -rows @ Vt.T / S
    h = -bound - G @ target
    E = np.vstack([G.T, h])
    f = np.zeros(len(E))
    f[-1] = 1.0
    y, _ = nnls(E, f, maxiter=100 * E.shape[1])
    residual = E @ y - f
    if np.linalg.norm(residual) <= IMPOSSIBLE:
        raise InvalidInput(
            f"class {text!r}: every constraint of it forbids a step of some expert; use player "
            "payoff with an --expert-budget, or another class"
        )
    z = -residual[:-1] / residual[-1]
    return np.asarray(Vt.T @ ((z + target) / S))
