"""Places to stay out of, or inside of: discs and boxes over some of the features, and unions.

"outside disc(x, y)"                           one disc, to be learned
"outside up to 2 discs(x, y) or box(x, y)"     a union; "shapes" are discs or boxes
"inside box(x, y, z)"
"outside disc(x, y) at (1, 2) of radius 0.5"   one constraint: every number is given
"outside box(x, y) from (0, 0) to (1, 2)"
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ringfence.constraints.linear import figure
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint, Feature

Side = Literal["outside", "inside"]
MOST_SHAPES = 16


@dataclass(frozen=True, eq=False)
class Disc:
    """centre [k], radius: a ball in k features of one unit."""

    centre: Array
    radius: float

    def depth(self, z: Array, scale: Array) -> Array:
        """How far inside its edge points z [n, k] are, in units of the scale [k]; < 0 outside."""
        away = np.sqrt(np.square((z - self.centre) / scale).sum(axis=1))
        return np.asarray(self.radius / scale[0] - away)

    @property
    def numbers(self) -> Array:
        return np.append(self.centre, self.radius)

    def words(self, names: str, unit: str) -> str:
        return f"disc({names}) at {_point(self.centre)} of radius {figure(self.radius)}{unit}"


@dataclass(frozen=True, eq=False)
class Box:
    """low, high [k]."""

    low: Array
    high: Array

    def depth(self, z: Array, scale: Array) -> Array:
        """As a disc's: how far the nearest side is away."""
        return np.asarray((np.minimum(z - self.low, self.high - z) / scale).min(axis=1))

    @property
    def numbers(self) -> Array:
        return np.concatenate([self.low, self.high])

    def words(self, names: str, unit: str) -> str:
        return f"box({names}) from {_point(self.low)} to {_point(self.high)}{unit}"


Shape = Disc | Box


def _point(values: Array) -> str:
    return f"({', '.join(figure(v + 0.0) for v in values)})"


@dataclass(frozen=True, eq=False)
class RegionConstraint:
    """Outside of every shape, or inside of one.

    raw(phi) is the depth inside the shapes, in units of the scale [k] of the columns [k] (for
    "inside" its negative); cost = log(1 + relu(raw)).
    """

    features: tuple[Feature, ...]
    columns: tuple[int, ...]
    side: Side
    shapes: tuple[Shape, ...]
    scale: Array

    def __post_init__(self) -> None:
        k = len(self.columns)
        if not 1 <= len(self.shapes) <= MOST_SHAPES or not k:
            raise InvalidInput(f"a region has 1 to {MOST_SHAPES} shapes over some features")
        if not all(0 <= column < len(self.features) for column in self.columns):
            raise InvalidInput(f"a region of columns {self.columns} of {len(self.features)}")
        if self.scale.shape != (k,) or not ((self.scale > 0) & np.isfinite(self.scale)).all():
            raise InvalidInput("a region's scales must be positive and finite, one per feature")
        for shape in self.shapes:
            size = k + 1 if isinstance(shape, Disc) else 2 * k
            if shape.numbers.shape != (size,) or not np.isfinite(shape.numbers).all():
                raise InvalidInput(f"a {type(shape).__name__.lower()} of {k} features needs {size} "
                                   "finite numbers")  # fmt: skip
            if isinstance(shape, Disc) and (self.scale != self.scale[0]).any():
                raise InvalidInput("a disc's features must have one scale")

    def raw(self, phi: ArrayLike) -> Array:
        z = np.asarray(phi, np.float64)[:, list(self.columns)]
        inside = np.max([shape.depth(z, self.scale) for shape in self.shapes], axis=0)
        return np.asarray(inside if self.side == "outside" else -inside)

    def activate(self, raw: Array) -> Array:
        return np.log1p(np.maximum(raw, 0))

    def cost(self, phi: ArrayLike) -> Array:
        return self.activate(self.raw(phi))

    def describe(self) -> str:
        over = [self.features[k] for k in self.columns]
        units = {f.unit for f in over}
        unit = f" {over[0].unit}" if len(units) == 1 and over[0].unit != "1" else ""
        names = ", ".join(f.name for f in over)
        return f"{self.side} " + " or ".join(s.words(names, unit) for s in self.shapes)


@dataclass(frozen=True, eq=False)
class RegionForm:
    """A class of regions: how many discs, boxes and shapes of either kind there may be at most;
    or, where `given` are shapes, this region alone."""

    text: str
    features: tuple[Feature, ...]
    columns: tuple[int, ...]
    side: Side
    discs: int
    boxes: int
    either: int
    scale: Array
    given: tuple[Shape, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Of one shape's numbers; those of several have no order to compare them by."""
        over = [self.features[k].name for k in self.columns]
        if self.given or self.discs + self.boxes != 1 or self.either:
            return ()
        if self.discs:
            return (*(f"{name} of the centre" for name in over), "radius")
        return tuple(f"{which} limit of {name}" for which in ("lower", "upper") for name in over)

    @property
    def used(self) -> list[str]:
        return [f.name for k, f in enumerate(self.features) if k in self.columns]

    def region(self, shapes: Sequence[Shape]) -> RegionConstraint:
        return RegionConstraint(self.features, self.columns, self.side, tuple(shapes), self.scale)

    def constraint(self, theta: Array) -> RegionConstraint:
        if self.given:
            return self.region(self.given)
        k = len(self.columns)
        if self.discs:
            return self.region([Disc(theta[:k], float(theta[k]))])
        return self.region([Box(theta[:k], theta[k:])])

    def theta_of(self, c: Constraint) -> Array | None:
        """The numbers of a region of one shape of this kind; none ([0]) for one of several."""
        if not isinstance(c, RegionConstraint) or (c.columns, c.side) != (self.columns, self.side):
            return None
        if not self.names:
            return np.zeros(0)
        (shape, *others), kind = c.shapes, Disc if self.discs else Box
        return None if others or not isinstance(shape, kind) else shape.numbers

    def error(self, theta: Array, true: Array) -> float:
        """The largest difference of two numbers, in units of the scale."""
        scale = np.resize(self.scale, len(theta))
        return float((np.abs(theta - true) / scale).max())


# Reading -----------------------------------------------------------------------------------------

_SIDE = re.compile(r"\s*(outside|inside)\b(.*)")
_SHAPE = re.compile(
    r"\s*(?:up\s+to\s+(\d+)\s+)?(disc|box|shape)(?:e?s)?\s*\(([^()]*)\)\s*"
    r"(?:(?:at\s*\(([^()]*)\)\s*of\s+radius\s+(\S+)|from\s*\(([^()]*)\)\s*to\s*\(([^()]*)\))"
    r"\s*\S*\s*)?"
)


def is_region(text: str) -> bool:
    return _SIDE.fullmatch(text) is not None


def read_region(text: str, features: Sequence[Feature]) -> RegionForm:
    """A class of regions, or one region with every number given."""
    match = _SIDE.fullmatch(text)
    if match is None:
        raise InvalidInput(f"class {text!r}: a region begins with outside or inside")
    counts, over, given = {"disc": 0, "box": 0, "shape": 0}, set(), list[Shape]()
    pieces = re.split(r"\bor\b", match[2])
    for piece in pieces:
        shape = _SHAPE.fullmatch(piece)
        if shape is None:
            raise InvalidInput(
                f"class {text!r}: can't read {piece.strip()!r}; write disc(x, y), box(x, y), or up "
                "to 3 discs(x, y), boxes or shapes, joined by or"
            )
        counts[shape[2]] += int(shape[1] or 1)
        over.add(tuple(name.strip() for name in shape[3].split(",")))
        if shape[4] is not None:
            given.append(Disc(_numbers(shape[4], text), float(_numbers(shape[5], text)[0])))
        elif shape[6] is not None:
            given.append(Box(_numbers(shape[6], text), _numbers(shape[7], text)))
    if len(over) > 1:
        raise InvalidInput(f"class {text!r}: all shapes must be over the same features")
    if given and len(given) < len(pieces):
        raise InvalidInput(f"class {text!r}: give the numbers of every shape, or of none")
    columns = _columns(over.pop(), features, text, counts["disc"] + counts["shape"] > 0)
    if match[1] == "inside" and sum(counts.values()) > 1 and not given:
        raise InvalidInput(f"class {text!r}: what is to be kept inside of is one disc or one box")
    if not 1 <= sum(counts.values()) <= MOST_SHAPES:
        raise InvalidInput(f"class {text!r}: a region has 1 to {MOST_SHAPES} shapes")
    side: Side = "outside" if match[1] == "outside" else "inside"
    return RegionForm(
        text.strip(), tuple(features), columns, side, counts["disc"], counts["box"],
        counts["shape"], np.ones(len(columns)), tuple(given),
    )  # fmt: skip


def _columns(
    names: Sequence[str], features: Sequence[Feature], text: str, round_: bool
) -> tuple[int, ...]:
    known = [f.name for f in features]
    for name in names:
        if name not in known:
            raise InvalidInput(
                f"class {text!r}: there is no feature {name!r}; features are {', '.join(known)}"
            )
    if len(set(names)) < len(names):
        raise InvalidInput(f"class {text!r}: a feature stands in it twice")
    columns = tuple(known.index(name) for name in names)
    units = {features[k].unit for k in columns}
    if round_ and len(units) > 1:
        raise InvalidInput(
            f"class {text!r}: a disc's features must have one unit, these have "
            f"{', '.join(sorted(units))}; use a box"
        )
    return columns


def _numbers(text: str, whole: str) -> Array:
    try:
        return np.array([float(word) for word in text.replace(",", " ").split()])
    except ValueError:
        raise InvalidInput(f"constraint {whole!r}: {text!r} are not numbers") from None
