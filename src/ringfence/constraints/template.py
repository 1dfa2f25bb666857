"""A class of linear constraints, written as an inequality with `?` for what is to be learned.

    "speed <= ?"        a threshold             raw = speed - theta
    "? x - y <= 0"      a slope                 raw = theta x - y
    "? x + ? y <= ?"    any line                raw = theta_1 x + theta_2 y - theta_3

An inequality is affine in each of its question marks, so for every template

    raw(phi) = fixed(phi) + theta . psi(phi).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringfence.constraints.linear import LinearConstraint, coefficients
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Feature

HOLE = "?"
LIMIT = "limit"  # the name of a parameter that stands alone


@dataclass(frozen=True, eq=False)
class Template:
    """weights [d], offset: the fixed part; basis [k, d], basis_offset [k]: one row per `?`.

    The constraint of theta [k] is (weights + theta @ basis) . phi <= offset + theta @ basis_offset.
    """

    text: str
    features: tuple[Feature, ...]
    names: tuple[str, ...]
    weights: Array
    offset: float
    basis: Array
    basis_offset: Array

    def constraint(self, theta: Array) -> LinearConstraint:
        return LinearConstraint(
            self.features,
            self.weights + theta @ self.basis,
            self.offset + float(theta @ self.basis_offset),
        )

    def none(self) -> LinearConstraint:
        """c = 0 everywhere."""
        return LinearConstraint(self.features, np.zeros(len(self.features)), 0.0)

    def fixed(self, phi: Array) -> Array:
        """phi [n, d] -> [n]."""
        return phi @ self.weights - self.offset

    def psi(self, phi: Array) -> Array:
        """phi [n, d] -> [n, k]."""
        return phi @ self.basis.T - self.basis_offset

    @property
    def scale_free(self) -> bool:
        """Every part is learned, so that theta and 2 theta describe the same region."""
        return not self.weights.any() and self.offset == 0.0

    def theta_of(self, c: LinearConstraint) -> Array | None:
        """The parameters [k] that describe c, or None if the class does not hold it."""
        rows = np.hstack([self.basis, self.basis_offset[:, None]]).T
        wanted = np.append(c.weights - self.weights, c.offset - self.offset)
        theta = np.linalg.lstsq(rows, wanted, rcond=None)[0]
        off = np.abs(rows @ theta - wanted).max()
        return theta if off <= 1e-9 * max(1.0, float(np.abs(wanted).max())) else None

    def error(self, theta: Array, true: Array) -> float:
        """|theta - theta*|; of directions where theta has no scale of its own."""
        if self.scale_free:
            theta, true = (t / max(float(np.linalg.norm(t)), 1e-300) for t in (theta, true))
        return float(np.linalg.norm(theta - true))


def parse_template(text: str, features: Sequence[Feature]) -> Template:
    """A linear inequality over feature names with at least one `?`."""
    names, pieces = [f.name for f in features], text.split(HOLE)
    holes = len(pieces) - 1
    if holes < 1:
        raise InvalidInput(
            f"class {text!r}: nothing in it is to be learned; put ? in the place of a number, "
            'such as "speed <= ?"'
        )

    def filled(values: Sequence[int]) -> tuple[Array, float]:
        numbers = [f" {value} " for value in values]
        inequality = "".join(p + n for p, n in zip(pieces, [*numbers, ""], strict=True))
        try:
            return coefficients(inequality, names)
        except InvalidInput as problem:
            reason = str(problem).removeprefix(f"constraint {inequality!r}: ")
            raise InvalidInput(f"class {text!r}: {reason}") from None

    weights, offset = filled([0] * holes)
    rows = [filled([int(k == j) for j in range(holes)]) for k in range(holes)]
    basis = np.array([w - weights for w, _ in rows])
    basis_offset = np.array([o - offset for _, o in rows])
    if not (weights.any() or basis.any()):
        raise InvalidInput(f"class {text!r}: no feature in it; features are {', '.join(names)}")
    parameters = tuple(_name(row, names) for row in basis)
    if len(set(parameters)) < holes:
        raise InvalidInput(f"class {text!r}: two ? stand for the same thing; keep one of them")
    return Template(text, tuple(features), parameters, weights, offset, basis, basis_offset)


def _name(row: Array, names: Sequence[str]) -> str:
    """What a parameter is called: the feature it multiplies, or the limit."""
    return names[int(np.flatnonzero(row)[0])] if row.any() else LIMIT


def linear_template(features: Sequence[Feature], used: Sequence[str]) -> Template:
    """Any linear constraint on the features `used`."""
    terms = " + ".join(f"{HOLE} {name}" for name in used)
    return parse_template(f"{terms} <= {HOLE}", features)
