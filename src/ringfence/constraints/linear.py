"""A linear constraint on features: weights . phi <= offset."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Feature

Sense = Literal["<=", ">="]


@dataclass(frozen=True, eq=False)
class LinearConstraint:
    """raw(phi) = (weights . phi - offset) / scale.

    cost = log(1 + relu(raw)), the paper's activation; with activation "none" the cost is raw
    itself, signed: the theory's linear class, on which exact FTRL is defined. scale: in the units
    of the offset, what a raw value of 1 is; the region doesn't depend on it. sense: how it is
    written; "x >= -3" is held as -x <= 3.
    """

    features: tuple[Feature, ...]
    weights: Array
    offset: float
    activation: Literal["log", "none"] = "log"
    scale: float = 1.0
    sense: Sense = "<="

    def __post_init__(self) -> None:
        if self.weights.shape != (len(self.features),):
            raise InvalidInput(
                f"{len(self.features)} features need as many weights, got {self.weights.shape}"
            )
        if not (np.isfinite(self.weights).all() and np.isfinite(self.offset)):
            raise InvalidInput("a linear constraint's weights and offset must be finite")
        if not 0 < self.scale < np.inf:
            raise InvalidInput(f"a constraint's scale must be positive and finite: {self.scale}")

    def raw(self, phi: ArrayLike) -> Array:
        return (np.asarray(phi) @ self.weights - self.offset) / self.scale

    def activate(self, raw: Array) -> Array:
        return np.log1p(np.maximum(raw, 0)) if self.activation == "log" else raw

    def cost(self, phi: ArrayLike) -> Array:
        return self.activate(self.raw(phi))

    def describe(self) -> str:
        turned = -1.0 if self.sense == ">=" else 1.0
        left = terms(turned * self.weights, self.features)
        if not left:
            return "nothing is forbidden" if self.offset >= 0 else "everything is forbidden"
        used = [(w, f.unit) for w, f in zip(self.weights, self.features, strict=True) if w != 0]
        unit = used[0][1] if len(used) == 1 and abs(used[0][0]) == 1 else "1"
        limit = figure(turned * self.offset + 0.0)  # no -0
        return f"{left} {self.sense} {limit}" + (f" {unit}" if unit != "1" else "")

    def inequality(self) -> str:
        """All digits, for `parse_inequality` to read this constraint again."""
        pairs = zip(self.weights, self.features, strict=True)
        terms = [f"{float(w)!r} {f.name}" for w, f in pairs if w != 0]
        return f"{' + '.join(terms).replace('+ -', '- ')} <= {float(self.offset)!r}"


def terms(weights: Array, features: Sequence[Feature]) -> str:
    """A sum of features in words: "0.5 x - y"; empty where all weights are 0."""
    each = [
        (w, f"{figure(abs(w))} {f.name}" if abs(w) != 1 else f.name)
        for w, f in zip(weights, features, strict=True)
        if w != 0
    ]
    words = "".join((" - " if w < 0 else " + ") + term for w, term in each)
    return f"-{words[3:]}" if words.startswith(" - ") else words[3:]


def figure(value: float) -> str:
    """A number for reading: four digits, or all before the point ("10,050")."""
    return f"{value:,.0f}" if 9999.5 <= abs(value) < 1e12 else f"{value:.4g}"


_NUMBER = r"(?:\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)"
_TERM = re.compile(rf"\s*([+-]?)\s*({_NUMBER})?\s*\*?\s*([A-Za-z_]\w*)?\s*", re.IGNORECASE)


def parse_inequality(text: str, features: Sequence[Feature]) -> LinearConstraint:
    """A linear inequality over feature names: "speed <= 0.75", "0.5 x - y <= 0", "col >= 3"."""
    names = [f.name for f in features]
    weights, offset = coefficients(text, names)
    if not weights.any():
        raise InvalidInput(
            f"constraint {text!r}: no feature in it; features are {', '.join(names)}"
        )
    return LinearConstraint(tuple(features), weights, offset, sense=sense_of(text))


def sense_of(text: str) -> Sense:
    return ">=" if ">=" in text else "<="


def coefficients(text: str, names: list[str]) -> tuple[Array, float]:
    """weights [d] and offset of an inequality, as weights . phi <= offset."""
    sides = re.split(r"<=|>=", text)
    if len(sides) != 2:
        raise InvalidInput(f"constraint {text!r}: write one linear inequality with <= or >=")
    left, left_const = _terms(sides[0], names, text)
    right, right_const = _terms(sides[1], names, text)
    sign = -1.0 if sense_of(text) == ">=" else 1.0
    return sign * (left - right), sign * (right_const - left_const)


def _terms(side: str, names: list[str], text: str) -> tuple[Array, float]:
    """Coefficients per feature and the constant of one side of an inequality."""
    weights, constant, at = np.zeros(len(names)), 0.0, 0
    while at < len(side):
        match = _TERM.match(side, at)
        if match is None or match.end() == at or not (match[2] or match[3]):
            raise InvalidInput(f"constraint {text!r}: can't read {side[at:].strip()!r}")
        if at > 0 and not match[1]:
            raise InvalidInput(
                f"constraint {text!r}: a + or - is missing before {match[0].strip()!r}"
            )
        value = (-1.0 if match[1] == "-" else 1.0) * float(match[2] or 1)
        if match[3] is None:
            constant += value
        elif match[3] in names:
            weights[names.index(match[3])] += value
        else:
            raise InvalidInput(
                f"constraint {text!r}: there is no feature {match[3]!r}; "
                f"features are {', '.join(names)}"
            )
        at = match.end()
    if at == 0:
        raise InvalidInput(f"constraint {text!r}: one side is empty")
    return weights, constant
