"""A constraint that is a table over integer features: one cost in [0, 1] per cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Feature


@dataclass(frozen=True, eq=False)
class TableConstraint:
    """c[cell] for cells indexed by integer features, e.g. (row, col).

    `signed` lifts the range check from [0, 1] to [-1, 1]: the theory's class, for tests only.
    """

    features: tuple[Feature, ...]
    values: Array
    signed: bool = False

    def __post_init__(self) -> None:
        if self.values.ndim != len(self.features):
            raise InvalidInput(
                f"a table over {len(self.features)} features needs as many axes, "
                f"it has {self.values.ndim}"
            )
        low = -1.0 if self.signed else 0.0
        if (
            not (np.isfinite(self.values).all() and (self.values >= low).all())
            or (self.values > 1).any()
        ):
            raise InvalidInput(f"a table's values must be finite and in [{low:g}, 1]")

    def raw(self, phi: ArrayLike) -> Array:
        return self.values[cell_index(phi, self.values.shape)]

    def activate(self, raw: Array) -> Array:
        return raw

    def cost(self, phi: ArrayLike) -> Array:
        return self.raw(phi)

    @property
    def forbidden(self) -> NDArray[np.bool_]:
        """The cells that a policy with limit 0 can't enter."""
        return self.values > 0

    def describe(self) -> str:
        count, total = int(self.forbidden.sum()), self.values.size
        if count == 0:
            return f"no {_cells(self.features)} forbidden (0 of {total})"
        names = ", ".join(f.name for f in self.features)
        return f"{count} of {total} cells ({names}) forbidden: {self._regions()}"

    def _regions(self) -> str:
        """The forbidden cells as runs along the last axis, merged over equal runs of the first."""
        if self.values.ndim == 1:
            spans = [_span(*ends) for ends in _runs(self.forbidden)]
            return f"{self.features[0].name} {', '.join(spans)}"
        if self.values.ndim != 2:
            return ", ".join(str(tuple(map(int, cell))) for cell in np.argwhere(self.forbidden))
        first, last = self.features
        blocks: list[list[int]] = []  # [top, bottom, left, right]
        for row, line in enumerate(self.forbidden):
            for left, right in _runs(line):
                for block in blocks:
                    if block[1] == row - 1 and block[2:] == [left, right]:
                        block[1] = row
                        break
                else:
                    blocks.append([row, row, left, right])
        return "; ".join(
            f"{first.name} {_span(top, bottom)} x {last.name} {_span(left, right)}"
            for top, bottom, left, right in blocks
        )


def _runs(line: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last index of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], line, [0]])))
    return list(zip(edges[::2].tolist(), (edges[1::2] - 1).tolist(), strict=True))


def _span(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low}-{high}"


def _cells(features: tuple[Feature, ...]) -> str:
    return "cell (" + ", ".join(f.name for f in features) + ")"


def cell_index(phi: ArrayLike, shape: tuple[int, ...]) -> tuple[NDArray[np.intp], ...]:
    """Integer features [n, d] as an index into a table; anything else is an error."""
    phi = np.asarray(phi)
    if phi.ndim != 2 or phi.shape[1] != len(shape):
        raise InvalidInput(f"features of shape {phi.shape} don't fit a table of shape {shape}")
    index = phi.astype(np.intp)
    if (index != phi).any() or (index < 0).any() or (index >= np.array(shape)).any():
        raise InvalidInput(f"a table of shape {shape} was asked for a cell that it doesn't have")
    return tuple(index.T)


def visit_table(pi: Behaviour, shape: tuple[int, ...]) -> Array:
    """Expected visits per episode of each cell."""
    table = np.zeros(shape)
    np.add.at(table, cell_index(pi.features, shape), pi.visits)
    return table
