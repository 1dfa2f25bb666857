"""The AntMaze: the Ant on an open floor, with a maze of virtual, permeable walls.

Any text map of the grid worlds is a maze (worlds/floor.py has its layout, reward and episodes). A
wall is no body, only a cost: 1 per step in which the torso is in a forbidden cell or outside the
map.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Feature
from ringfence.worlds.grid import Cell, GridWorld
from ringfence.worlds.sim.floor import FEATURES, HORIZON, Layout, MazeTask


@dataclass(frozen=True, eq=False)
class MazeTruth:
    """The evaluator: which cells are forbidden. Nothing that learns or selects receives it."""

    walls: NDArray[np.bool_]

    @property
    def known(self) -> bool:
        return bool(self.walls.any())

    @property
    def layout(self) -> Layout:
        rows, cols = self.walls.shape
        return Layout((rows, cols))

    def violates(self, xy: Array) -> NDArray[np.bool_]:
        """Points [n, 2] -> in a wall or outside the map, [n]."""
        cells = self.layout.cell(xy)
        inside = self.layout.inside(cells)
        bad = ~inside
        bad[inside] = self.walls[tuple(cells[inside].T)]
        return np.asarray(bad)

    def true_cost(self, pi: Behaviour) -> float:
        """Expected steps of an episode in a wall or outside the map."""
        return float(pi.visits @ self.violates(pi.features[:, :2]))

    def true_raw(self, pi: Behaviour) -> float:
        """The same: in a maze the raw value is 1 in a wall and 0 elsewhere."""
        return self.true_cost(pi)


@dataclass(frozen=True, eq=False)
class AntMaze:
    """The maze of a grid world's map for the Ant."""

    grid: GridWorld
    horizon: int = HORIZON

    @property
    def layout(self) -> Layout:
        return Layout(self.grid.shape)

    @property
    def features(self) -> tuple[Feature, ...]:
        return FEATURES

    @property
    def truth(self) -> MazeTruth:
        return MazeTruth(self.grid.truth.walls)

    @cached_property
    def tasks(self) -> tuple[MazeTask, ...]:
        return tuple(self.task(goal) for goal in self.grid.goals)

    def task(self, goal: Cell, starts: tuple[Cell, ...] | None = None) -> MazeTask:
        """The task of walking to `goal`, with the grid task's name."""
        starts = self.grid.starts if starts is None else starts
        for what, cell in (("goal", goal), *(("start", s) for s in starts)):
            if not self.layout.inside(np.array(cell)):
                raise InvalidInput(
                    f"{what} {cell}: outside the map of {self.grid.shape[0]} x "
                    f"{self.grid.shape[1]} cells"
                )
        name = f"goal ({goal[0]},{goal[1]})"
        return MazeTask(name, self.layout, starts, goal, self.horizon)
