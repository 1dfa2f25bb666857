"""The cells of a map, or of a floor in metres, and what lies on them.

A place on the cells is (row, col) as numbers: the middle of cell (r, c) is (r + 0.5, c + 0.5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.constraints.table import TableConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Constraint
from ringfence.report.text import cell_name
from ringfence.worlds.sim.floor import CELL, THRESHOLD, Layout, cell_means

Cell = tuple[int, int]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Learned:
    """One constraint over the cells: its cost [rows, cols] and the cells it forbids."""

    cost: Array
    forbidden: Bools


@dataclass(frozen=True, eq=False)
class Cells:
    """width: features that name a cell, 1 where all lie in one row; starts, goals: places of note;
    walls [rows, cols]: the truth, None where it is not known; layout: where cells lie in metres, if
    this is a floor; letters: what a cell is marked with.
    """

    shape: Cell
    width: int
    starts: tuple[Cell, ...]
    goals: tuple[Cell, ...]
    walls: Bools | None
    layout: Layout | None
    letters: Mapping[Cell, str]

    def task_of(self, goal: Cell, tasks: Sequence[str]) -> int | None:
        """The number of the task whose goal this is, if it is among those played."""
        named = [k for k, name in enumerate(tasks) if cell_name(goal) in name]
        if named:
            return named[0]
        in_order = goal in self.goals and len(self.goals) == len(tasks)
        return self.goals.index(goal) if in_order else None

    def places(self, phi: Array) -> Array:
        """Features [n, width] -> places (row, col) [n, 2]."""
        if self.layout is not None:
            return on_floor(self.layout, phi)
        return np.asarray(np.pad(phi, ((0, 0), (2 - self.width, 0))) + 0.5)

    def path(self, phi: Array) -> NDArray[np.intp]:
        """A trajectory's cells [n, 2]: on a map up to where it rests, on a floor each stay once."""
        if self.layout is not None:
            return self.layout.cell_path(phi)
        cells = np.floor(self.places(phi)).astype(np.intp)
        if (cells < 0).any() or (cells >= np.array(self.shape)).any():
            rows, cols = self.shape
            raise InvalidInput(
                f"a trajectory leaves the map of {rows} x {cols} cells; these are not the "
                "demonstrations of this run"
            )
        moving = np.flatnonzero((np.diff(cells, axis=0) != 0).any(axis=1))
        return cells[: (moving[-1] + 2) if len(moving) else 1]

    def visits(self, pi: Behaviour) -> Array:
        """Expected steps per episode in each cell, [rows, cols]; those outside are left out."""
        at = np.floor(self.places(pi.features)).astype(np.intp)
        within = ((at >= 0) & (at < np.array(self.shape))).all(axis=1)
        table = np.zeros(self.shape)
        np.add.at(table, tuple(at[within].T), pi.visits[within])
        return table

    def over(self, c: Constraint) -> Learned:
        """A constraint over the cells."""
        if self.layout is not None:
            cost = cell_means(c, self.layout)
            return Learned(cost, cost > THRESHOLD)
        shape = self.shape[-self.width :]
        if isinstance(c, TableConstraint) and c.values.shape != shape:
            raise InvalidInput(f"a constraint over {c.values.shape} cells, the map has {shape}")
        cells = np.indices(shape).reshape(self.width, -1).T.astype(np.float64)
        forbidden = (c.raw(cells) > 0).reshape(self.shape)
        return Learned(c.cost(cells).reshape(self.shape), forbidden)


def on_floor(layout: Layout, xy: Array) -> Array:
    """(x, y) in metres [n, 2] -> places (row, col) [n, 2]."""
    rows, cols = layout.shape
    return np.column_stack([rows / 2 - xy[:, 1] / CELL, xy[:, 0] / CELL + cols / 2])


def make_cells(view: Mapping[str, Any], drawn: Sequence[str]) -> Cells:
    """The cells of a view (checked already); `drawn` are a text map's lines, if there is one."""
    rows, cols = view["shape"]
    starts, goals = (tuple((r, c) for r, c in view[name]) for name in ("starts", "goals"))
    letters = {cell: str(k) for k, cell in enumerate(goals)} | dict.fromkeys(starts, "S")
    if len(drawn) == rows and all(len(line) == cols for line in drawn):
        letters = {(r, c): drawn[r][c] for r, c in letters}
    return Cells(
        shape=(rows, cols),
        width=len(view["columns"]),
        starts=starts,
        goals=goals,
        walls=None if view["walls"] is None else np.array(view["walls"], np.bool_),
        layout=Layout((rows, cols)) if view["kind"] == "floor" else None,
        letters=letters,
    )
