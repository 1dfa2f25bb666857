"""A class of linear constraints, written as an inequality with `?` for what is to be learned.

    "speed <= ?"        a threshold             raw = speed - theta
    "? x - y <= 0"      a slope                 raw = theta x - y
    "? x + ? y <= ?"    any line                raw = theta_1 x + theta_2 y - theta_3
    "|y| <= ?"          both sides alike        raw = |y| - theta

An inequality is affine in each of its question marks, so for every template

    raw(phi) = (fixed(phi) + theta . psi(phi)) / scale.

Features may stand between bars; question marks may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringfence.constraints.absolute import AbsoluteConstraint, Lift
from ringfence.constraints.linear import LinearConstraint, Sense, coefficients, sense_of
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint, Feature

HOLE = "?"
LIMIT = "limit"  # the name of a parameter that stands alone


@dataclass(frozen=True, eq=False)
class Template:
    """weights [d], offset: the fixed part; basis [k, d], basis_offset [k]: one row per `?`.

    The constraint of theta [k] is (weights + theta @ basis) . phi <= offset + theta @ basis_offset,
    and its raw value the difference of both sides in units of `scale`. With a lift, phi is (phi,
    absolute values of it). sense: how it is written.
    """

    text: str
    features: tuple[Feature, ...]
    names: tuple[str, ...]
    weights: Array
    offset: float
    basis: Array
    basis_offset: Array
    sense: Sense = "<="
    scale: float = 1.0
    lift: Lift | None = None

    def constraint(self, theta: Array) -> LinearConstraint | AbsoluteConstraint:
        weights = self.weights + theta @ self.basis
        offset = self.offset + float(theta @ self.basis_offset)
        if self.lift is None:
            return LinearConstraint(self.features, weights, offset, "log", self.scale, self.sense)
        wide = self.lift.features(self.features)
        linear = LinearConstraint(wide, weights, offset, "log", self.scale, self.sense)
        return AbsoluteConstraint(self.features, self.lift, linear)

    def none(self) -> LinearConstraint:
        """c = 0 everywhere."""
        return LinearConstraint(self.features, np.zeros(len(self.features)), 0.0)

    def fixed(self, phi: Array) -> Array:
        """phi [n, d] -> [n]."""
        return np.asarray(self._lifted(phi) @ self.weights - self.offset)

    def psi(self, phi: Array) -> Array:
        """phi [n, d] -> [n, k]."""
        return np.asarray(self._lifted(phi) @ self.basis.T - self.basis_offset)

    def _lifted(self, phi: Array) -> Array:
        return phi if self.lift is None else self.lift(phi)

    @property
    def used(self) -> list[str]:
        """The names of the features that it is about."""
        rows = np.vstack([self.weights, self.basis])
        d = len(self.features)
        if self.lift is not None:
            among = rows[:, d:].any(axis=0)
            rows = np.vstack([rows[:, :d], self.lift.inner[among]])
        return [f.name for f, column in zip(self.features, rows.T, strict=True) if column.any()]

    @property
    def scale_free(self) -> bool:
        """Every part is learned, so that theta and 2 theta describe the same region."""
        return not self.weights.any() and self.offset == 0.0

    def theta_of(self, c: Constraint) -> Array | None:
        """The parameters [k] that describe c, or None if the class does not hold it."""
        if isinstance(c, AbsoluteConstraint) and self.lift is not None and c.lift.same(self.lift):
            c = c.linear
        elif self.lift is not None:
            return None
        if not isinstance(c, LinearConstraint):
            return None
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
    if HOLE not in text:
        raise InvalidInput(
            f"class {text!r}: nothing in it is to be learned; put ? in the place of a number, "
            'such as "speed <= ?"'
        )
    return read_inequality(text, features)


def read_inequality(text: str, features: Sequence[Feature]) -> Template:
    """A linear inequality over feature names, and absolute values of them, with or without `?`."""
    lift, plain = _read_bars(text, features)
    shown = [f.name for f in lift.features(tuple(features))]
    names = [f.name for f in features] + [_stand_in(k) for k in range(len(lift.centre))]
    pieces = plain.split(HOLE)
    holes = len(pieces) - 1

    def filled(values: Sequence[int]) -> tuple[Array, float]:
        numbers = [f" {value} " for value in values]
        inequality = "".join(p + n for p, n in zip(pieces, [*numbers, ""], strict=True))
        try:
            return coefficients(inequality, names)
        except InvalidInput as problem:
            reason = str(problem).removeprefix(f"constraint {inequality!r}: ")
            for stand_in, name in zip(names, shown, strict=True):
                reason = reason.replace(stand_in, name)
            raise InvalidInput(f"{_what(text)} {text!r}: {reason}") from None

    weights, offset = filled([0] * holes)
    rows = [filled([int(k == j) for j in range(holes)]) for k in range(holes)]
    basis = np.array([w - weights for w, _ in rows]).reshape(holes, len(names))
    basis_offset = np.array([o - offset for _, o in rows])
    if not (weights.any() or basis.any()):
        known = ", ".join(f.name for f in features)
        raise InvalidInput(f"{_what(text)} {text!r}: no feature in it; features are {known}")
    parameters = tuple(_name(row, shown) for row in basis)
    if len(set(parameters)) < holes:
        raise InvalidInput(f"class {text!r}: two ? stand for the same thing; keep one of them")
    return Template(
        text.strip(), tuple(features), parameters, weights, offset, basis, basis_offset,
        sense_of(text), lift=lift if len(lift.centre) else None,
    )  # fmt: skip


def _what(text: str) -> str:
    return "class" if HOLE in text else "constraint"


def _stand_in(k: int) -> str:
    """The name of the k-th absolute value, while the inequality around it is read."""
    return f"_absolute{k}_"


def _read_bars(text: str, features: Sequence[Feature]) -> tuple[Lift, str]:
    """What stands between bars, and the text with a name in the place of each."""
    pieces = text.split("|")
    if len(pieces) % 2 == 0:
        raise InvalidInput(f"{_what(text)} {text!r}: a | is missing; absolute values are |y|")
    names, inner, centre = [f.name for f in features], [], []
    for inside in pieces[1::2]:
        if HOLE in inside:
            raise InvalidInput(
                f"class {text!r}: ? can't stand between bars; for an unknown middle write "
                "'? <= x <= ?'"
            )
        try:
            weights, offset = coefficients(f"{inside} <= 0", names)
        except InvalidInput as problem:
            reason = str(problem).partition(": ")[2]
            raise InvalidInput(f"{_what(text)} {text!r}: {reason}") from None
        inner.append(weights)
        centre.append(offset)
    for k in range(len(inner)):
        pieces[2 * k + 1] = f" {_stand_in(k)} "
    rows = np.array(inner).reshape(len(inner), len(names))
    return Lift(rows, np.array(centre, np.float64)), "".join(pieces)


def _name(row: Array, names: Sequence[str]) -> str:
    """What a parameter is called: the feature it multiplies, or the limit."""
    return names[int(np.flatnonzero(row)[0])] if row.any() else LIMIT


def linear_template(features: Sequence[Feature], used: Sequence[str]) -> Template:
    """Any linear constraint on the features `used`."""
    terms = " + ".join(f"{HOLE} {name}" for name in used)
    return parse_template(f"{terms} <= {HOLE}", features)
