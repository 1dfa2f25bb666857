"""Constraints and classes of them as people write them.

    "|y| <= ? and speed <= ?"          several limits, each of its own
    "? <= x <= ?"                      two sides: "x >= ?" and "x <= ?"
    "speed <= ? while altitude <= ?"   a limit that holds under a condition
    "outside disc(x, y)"               a region: constraints/regions.py

With `?` it is a class, in which these numbers are learned; without, one constraint.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ringfence.constraints.conditional import ConditionalConstraint
from ringfence.constraints.conjunction import Conjunction
from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.regions import RegionForm, is_region, read_region
from ringfence.constraints.template import HOLE, LIMIT, Template, read_inequality
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint, Feature


class Form(Protocol):
    """A class with numbers to be learned, theta [k]."""

    @property
    def text(self) -> str: ...

    @property
    def features(self) -> tuple[Feature, ...]: ...

    @property
    def names(self) -> tuple[str, ...]:
        """What each number is."""
        ...

    @property
    def used(self) -> list[str]:
        """The features that it is about."""
        ...

    def constraint(self, theta: Array) -> Constraint: ...

    def theta_of(self, c: Constraint) -> Array | None:
        """The numbers of c, or None if the class doesn't hold it."""
        ...

    def error(self, theta: Array, true: Array) -> float:
        """How far apart two constraints of the class are."""
        ...


def nothing_forbidden(features: tuple[Feature, ...]) -> LinearConstraint:
    """c = 0 everywhere."""
    return LinearConstraint(features, np.zeros(len(features)), 0.0)


@dataclass(frozen=True, eq=False)
class ConditionalForm:
    """A limit with its own numbers, under a condition of which at most the limit is learned."""

    limit: Template
    condition: Template

    @property
    def text(self) -> str:
        return f"{self.limit.text} while {self.condition.text}"

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.limit.features

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(_distinct([*titles(self.limit), *titles(self.condition)]))

    @property
    def used(self) -> list[str]:
        return _in_order(self.features, [self.limit.used, self.condition.used])

    def constraint(self, theta: Array) -> ConditionalConstraint:
        k = len(self.limit.names)
        return ConditionalConstraint(
            self.limit.constraint(theta[:k]), self.condition.constraint(theta[k:])
        )

    def theta_of(self, c: Constraint) -> Array | None:
        if not isinstance(c, ConditionalConstraint):
            return None
        found = [self.limit.theta_of(c.limit), self.condition.theta_of(c.condition)]
        return None if any(x is None for x in found) else np.concatenate(found)  # type: ignore[arg-type]

    def error(self, theta: Array, true: Array) -> float:
        return _error((self.limit, self.condition), theta, true)


@dataclass(frozen=True, eq=False)
class ConjunctionForm:
    """Several classes at once; each part's numbers are its own."""

    text: str
    parts: tuple[Form, ...]

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.parts[0].features

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(_distinct([name for part in self.parts for name in titles(part)]))

    @property
    def used(self) -> list[str]:
        return _in_order(self.features, [part.used for part in self.parts])

    def constraint(self, theta: Array) -> Conjunction:
        pairs = zip(self.parts, shares(self.parts, theta), strict=True)
        return Conjunction(tuple(part.constraint(own) for part, own in pairs))

    def theta_of(self, c: Constraint) -> Array | None:
        if not isinstance(c, Conjunction) or len(c.parts) != len(self.parts):
            return None
        found = [p.theta_of(own) for p, own in zip(self.parts, c.parts, strict=True)]
        return None if any(x is None for x in found) else np.concatenate(found)  # type: ignore[arg-type]

    def error(self, theta: Array, true: Array) -> float:
        return _error(self.parts, theta, true)


def shares(parts: Sequence[Form], theta: Array) -> list[Array]:
    """theta [k], cut into the numbers of each part."""
    return np.split(theta, np.cumsum([len(part.names) for part in parts])[:-1])


def _error(parts: Sequence[Form], theta: Array, true: Array) -> float:
    """The largest of the parts', each in units of its scale."""
    pairs = zip(parts, shares(parts, theta), shares(parts, true), strict=True)
    return max(p.error(a, b) / getattr(p, "scale", 1.0) for p, a, b in pairs)


def titles(part: Form) -> list[str]:
    """The names of a part's numbers, where there are other parts."""
    if not isinstance(part, Template):
        return list(part.names)
    side = re.split(r"<=|>=", part.text)[0].strip()
    if HOLE in side or len(part.names) > 1:
        side = part.text
    which = "upper" if part.sense == "<=" else "lower"
    return [f"{which} limit of {side}" if name == LIMIT else name for name in part.names]


def _distinct(names: list[str]) -> list[str]:
    """Equal names with a number behind."""
    count, seen, found = Counter(names), Counter[str](), []
    for name in names:
        seen[name] += 1
        found.append(name if count[name] == 1 else f"{name} ({seen[name]})")
    return found


def _in_order(features: Sequence[Feature], used: Sequence[Sequence[str]]) -> list[str]:
    every = {name for names in used for name in names}
    return [f.name for f in features if f.name in every]


# Reading -----------------------------------------------------------------------------------------


def is_composed(text: str) -> bool:
    """Is it something else than one inequality, to be found by a search?"""
    return bool(re.search(r"\b(and|while)\b|[<>]=.*[<>]=", text)) or is_region(text)


def is_written(text: str) -> bool:
    """Does it state a constraint or a class, rather than name one?"""
    return "<" in text or ">" in text or is_region(text)


def parse_class(text: str, features: Sequence[Feature]) -> Form:
    """A class: something in it is to be learned."""
    form = _read(text, features)
    if not _learned(form):
        raise InvalidInput(
            f"class {text!r}: nothing in it is to be learned; put ? in the place of a number, "
            'such as "speed <= ?"'
        )
    return form


def parse_constraint(text: str, features: Sequence[Feature]) -> Constraint:
    """One constraint: every number is given."""
    form = _read(text, features)
    if _learned(form):
        raise InvalidInput(
            f"constraint {text!r}: give every number of it, such as 'speed <= 1' or 'outside "
            "disc(x, y) at (0, 0) of radius 1'"
        )
    return form.constraint(np.zeros(0))


def _learned(form: Form) -> bool:
    if isinstance(form, ConjunctionForm):
        return any(map(_learned, form.parts))
    return not form.given if isinstance(form, RegionForm) else bool(form.names)


def _read(text: str, features: Sequence[Feature]) -> Form:
    parts: list[Form] = []
    for piece in re.split(r"\band\b", text):
        parts += _read_part(piece, features, text)
    if len(parts) == 1:
        return parts[0]
    form = ConjunctionForm(text.strip(), tuple(parts))
    if len({part.text for part in parts}) < len(parts):
        raise InvalidInput(f"class {text!r}: the same limit stands in it twice; keep one")
    return form


def _read_part(text: str, features: Sequence[Feature], whole: str) -> list[Form]:
    """One limit or region, or the two of a two-sided limit."""
    if is_region(text):
        return [read_region(text, features)]
    limit, *conditions = (piece.strip() for piece in re.split(r"\bwhile\b", text))
    sides = [_one_sided(piece) for piece in (limit, *conditions)]
    if not limit or len(conditions) > 1:
        raise InvalidInput(
            f"class {whole!r}: write limits such as 'speed <= ? while altitude <= ?', joined by and"
        )
    if not conditions:
        return [read_inequality(side, features) for side in sides[0]]
    if any(len(found) > 1 for found in sides):
        raise InvalidInput(
            f"class {whole!r}: a limit under a condition has one side, and so has the condition; "
            "write two of them, joined by and"
        )
    template, condition = (read_inequality(found[0], features) for found in sides)
    if condition.names not in ((), (LIMIT,)):
        raise InvalidInput(
            f"class {whole!r}: of a condition only the limit can be learned ('altitude <= ?')"
        )
    return [ConditionalForm(template, condition)]


def _one_sided(text: str) -> list[str]:
    """ "1 <= x <= ?" as "x >= 1" and "x <= ?"; the lower limit first."""
    sides = re.split(r"(<=|>=)", text)
    if len(sides) != 5 or sides[1] != sides[3]:
        return [text]
    low, high = (sides[0], sides[4]) if sides[1] == "<=" else (sides[4], sides[0])
    middle = sides[2].strip()
    return [f"{middle} >= {low.strip()}", f"{middle} <= {high.strip()}"]
