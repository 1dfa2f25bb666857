"""A table over cells of one to three features, also where these are real numbers.

"table(x, y)"                 cells of a size that the demonstrations suggest
"table(x by 0.1, speed by 2)" cells of these sizes, in the features' units
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringfence.constraints.boxes import largest_boxes
from ringfence.constraints.linear import figure
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Feature

MOST_FEATURES = 3
MOST_CELLS = 1_000_000
FEWEST, MOST = 8, 64  # cells over the demonstrated range of a feature, where nobody gave a size
SAID = 4  # boxes of forbidden cells that are named


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells of some columns of the features.

    columns [k]; low [k]: where the first cell ends on its lower side; size [k]; shape [k]. Whatever
    lies beyond the first or last cell of an axis belongs to it.
    """

    columns: tuple[int, ...]
    low: Array
    size: Array
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        k = len(self.columns)
        if not 1 <= k <= MOST_FEATURES or len(set(self.columns)) < k:
            raise InvalidInput(f"a table is over one to {MOST_FEATURES} different features")
        if self.low.shape != (k,) or self.size.shape != (k,) or len(self.shape) != k:
            raise InvalidInput(f"{k} features need as many edges, sizes and counts of cells")
        if (
            not (np.isfinite(self.low).all() and np.isfinite(self.size).all())
            or min(*self.shape, *self.size) <= 0
        ):
            raise InvalidInput("cells must have a finite place and a size above 0")
        if np.prod([float(n) for n in self.shape]) > MOST_CELLS:
            raise InvalidInput(
                f"{' x '.join(map(str, self.shape))} cells are more than {MOST_CELLS:,}; choose "
                "larger cells ('table(x by 0.5, y by 0.5)') or fewer features"
            )

    def index(self, phi: ArrayLike) -> tuple[NDArray[np.intp], ...]:
        """features [n, d] -> the cell of each, as an index into a table."""
        phi = np.asarray(phi, np.float64)
        at = np.floor((phi[:, list(self.columns)] - self.low) / self.size)
        return tuple(np.clip(at, 0, np.array(self.shape) - 1).astype(np.intp).T)

    def edges(self, axis: int) -> Array:
        """The edges between cells along an axis, [cells + 1], the outer ones included."""
        return np.asarray(self.low[axis] + self.size[axis] * np.arange(self.shape[axis] + 1))

    def visits(self, features: Array, visits: Array) -> Array:
        """Expected visits of each cell [shape]."""
        table = np.zeros(self.shape)
        np.add.at(table, self.index(features), visits)
        return table


def around(
    points: Array, columns: Sequence[int], sizes: Sequence[float | None], rounded: bool = True
) -> Grid:
    """Cells around demonstrated features [n, d]: their range, and as much again on each side.

    Edges lie at whole multiples of the size. Where nobody gave one, the range has 2 n^(1 / (2 + k))
    cells, as histograms do: smaller cells have gaps between the demonstrators' steps, in which
    learners look guilty. rounded: to sizes that people would choose, which differ from unit to
    unit.
    """
    own = points[:, list(columns)]
    low, high = own.min(axis=0), own.max(axis=0)
    span = np.where(high > low, high - low, np.maximum(np.abs(high), 1.0))
    count = np.clip(2 * len(own) ** (1 / (2 + len(columns))), FEWEST, MOST)
    suggested = [_round(wide / count) if rounded else wide / round(count) for wide in span]
    size = np.array([given or own for given, own in zip(sizes, suggested, strict=True)], np.float64)
    first, last = np.floor((low - span) / size), np.ceil((high + span) / size)
    shape = tuple(int(n) for n in last - first)
    return Grid(tuple(columns), first * size, size, shape)


def _round(size: float) -> float:
    """The nearest of 1, 2, 5 times a power of ten: sizes that people would choose."""
    power = 10.0 ** np.floor(np.log10(size))
    return float(power * min((1, 2, 5, 10), key=lambda n: abs(np.log(n * power / size))))


@dataclass(frozen=True, eq=False)
class CellConstraint:
    """c[cell] in [0, 1] for the cells of a grid over some of the features.

    raw tells, beside the cost, how far a cell is from the others' edge, in cells: below 0 in a free
    one, above 1 in one that costs 1. cost = raw between 0 and 1.
    """

    features: tuple[Feature, ...]
    grid: Grid
    values: Array

    def __post_init__(self) -> None:
        if max(self.grid.columns) >= len(self.features) or min(self.grid.columns) < 0:
            raise InvalidInput(f"cells of columns {self.grid.columns} of {len(self.features)}")
        if self.values.shape != self.grid.shape:
            raise InvalidInput(f"{self.values.shape} values for {self.grid.shape} cells")
        if not ((self.values >= 0) & (self.values <= 1)).all():
            raise InvalidInput("a table's values must be finite and in [0, 1]")

    def raw(self, phi: ArrayLike) -> Array:
        return np.asarray(self._heights[self.grid.index(phi)])

    def activate(self, raw: Array) -> Array:
        return np.clip(raw, 0.0, 1.0)

    def cost(self, phi: ArrayLike) -> Array:
        return np.asarray(self.values[self.grid.index(phi)])

    @cached_property
    def _heights(self) -> Array:
        """raw of each cell [shape]."""
        from scipy.ndimage import distance_transform_edt  # a saved constraint is loaded without it

        free, whole = self.values == 0, self.values == 1
        if free.all() or whole.all():
            return self.values
        # From a cell's middle to that of the nearest of the other sort; the edge is half a cell
        # nearer.
        outside, inside = (distance_transform_edt(cells) - 0.5 for cells in (free, whole))
        return np.where(free, -outside, np.where(whole, 1.0 + inside, self.values))

    @property
    def over(self) -> tuple[Feature, ...]:
        """The features that have cells."""
        return tuple(self.features[k] for k in self.grid.columns)

    @property
    def forbidden(self) -> NDArray[np.bool_]:
        """The cells that a policy with limit 0 can't enter."""
        return self.values > 0

    @cached_property
    def _words(self) -> str:
        sizes = [
            f"{f.name} by {_united(figure(size), f)}"
            for f, size in zip(self.over, self.grid.size, strict=True)
        ]
        count, cells = int(self.forbidden.sum()), f"cells ({', '.join(sizes)})"
        if not count:
            return f"no {cells} forbidden"
        boxes = largest_boxes(self.forbidden, SAID)
        named = "; ".join(named_box(self.grid, self.over, *box) for box in boxes)
        inside = sum(int(np.prod([b - a for a, b in zip(*box, strict=True)])) for box in boxes)
        rest = f"; and {count - inside} more" if count > inside else ""
        return f"{count} of {self.values.size} {cells} forbidden: {named}{rest}"

    def describe(self) -> str:
        return self._words


def named_box(grid: Grid, over: Sequence[Feature], first: Sequence[int], end: Sequence[int]) -> str:
    """A box of cells in the features' units; outer cells have no end."""
    sides = []
    for axis, f in enumerate(over):
        edges, a, b = grid.edges(axis), first[axis], end[axis]
        low, high = figure(edges[a] + 0.0), figure(edges[b] + 0.0)
        below, above = a == 0, b == grid.shape[axis]
        if below and above:
            continue
        words = f"below {high}" if below else f"above {low}" if above else f"{low} to {high}"
        sides.append(f"{f.name} {_united(words, f)}")
    return " x ".join(sides) or "everything"


def _united(words: str, feature: Feature) -> str:
    return words if feature.unit == "1" else f"{words} {feature.unit}"


# Reading -----------------------------------------------------------------------------------------

_TABLE = re.compile(r"\s*table\s*\((.*)\)\s*")
_AXIS = re.compile(r"\s*(\w+)(?:\s+by\s+(\S+))?\s*")


def read_axes(
    text: str, features: Sequence[Feature]
) -> tuple[list[int], list[float | None]] | None:
    """The columns and cell sizes of "table(x by 0.1, y)"; None where the text is something else."""
    match = _TABLE.fullmatch(text)
    if match is None:
        return None
    names = [f.name for f in features]
    columns: list[int] = []
    sizes: list[float | None] = []
    for piece in match[1].split(","):
        axis = _AXIS.fullmatch(piece)
        if axis is None or axis[1] not in names:
            raise InvalidInput(
                f"class {text!r}: can't read {piece.strip()!r}; write features, with or without "
                f"the size of a cell ('table({names[0]} by 0.1)'); features are {', '.join(names)}"
            )
        columns.append(names.index(axis[1]))
        sizes.append(None if axis[2] is None else _size(axis[2], text))
    return columns, sizes


def _size(word: str, text: str) -> float:
    try:
        size = float(word)
    except ValueError:
        size = np.nan
    if not 0 < size < np.inf:
        raise InvalidInput(f"class {text!r}: a cell's size must be above 0, got {word!r}")
    return size
