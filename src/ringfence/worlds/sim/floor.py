"""The floor of a maze: where its cells lie, and the task of walking to a goal on it.

Cells are squares of 4 m around the origin, row 0 at the top, as Gymnasium-Robotics' AntMaze lays
them out. Start and goal are off their cells' centres by up to a quarter of a cell in x and y; the
reward of a step is exp(-distance to the goal in m); an episode ends within 0.5 m of the goal, with
a fall, or after 1500 steps. Nothing here knows which cells are forbidden.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.objects import Array, Constraint, Feature

Cell = tuple[int, int]

FEATURES = (Feature("x", "m"), Feature("y", "m"))

CELL = 4.0  # m
NOISE = 0.25  # of a cell
REACHED = 0.5  # m
HORIZON = 1500

#: How an episode ended: at the goal, with a fall, or at its horizon.
ARRIVED, FELL, LATE = 0, 1, 2
OUTCOMES = ("arrived", "fell", "late")


@dataclass(frozen=True)
class Layout:
    """Where the cells of a map of `shape` = (rows, cols) lie on the floor."""

    shape: tuple[int, int]

    def centre(self, cells: NDArray[np.integer] | Cell) -> Array:
        """Cells [..., 2] as (row, col) -> their centres [..., 2] as (x, y), m."""
        rows, cols = self.shape
        row, col = np.moveaxis(np.asarray(cells, np.float64), -1, 0)
        x = (col + 0.5 - cols / 2) * CELL
        y = (rows / 2 - row - 0.5) * CELL
        return np.stack([x, y], axis=-1)

    def cell(self, xy: Array) -> NDArray[np.intp]:
        """Points [..., 2] -> the cells [..., 2] they are in; beyond the map counts on."""
        rows, cols = self.shape
        row = np.floor(rows / 2 - xy[..., 1] / CELL)
        col = np.floor(xy[..., 0] / CELL + cols / 2)
        return np.stack([row, col], axis=-1).astype(np.intp)

    def inside(self, cells: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of the cells [..., 2] belong to the map."""
        return np.asarray(((cells >= 0) & (cells < np.array(self.shape))).all(axis=-1))

    def cell_path(self, xy: Array) -> NDArray[np.intp]:
        """The cells [n, 2] of a path, each stay counted once; outside the map is left out."""
        cells = self.cell(xy)
        cells = cells[self.inside(cells)]
        new = np.ones(len(cells), np.bool_)
        new[1:] = (np.diff(cells, axis=0) != 0).any(axis=1)
        return np.asarray(cells[new])


@dataclass(frozen=True, eq=False)
class MazeTask:
    """Walk from a start to a goal. It knows cells, but not which of them are forbidden."""

    name: str
    layout: Layout
    starts: tuple[Cell, ...]
    goal: Cell
    horizon: int = HORIZON

    @property
    def features(self) -> tuple[Feature, ...]:
        return FEATURES

    def places(self, start: Cell, rng: np.random.Generator) -> tuple[Array, Array]:
        """Where one episode starts and where its goal is, each off its cell's centre, (x, y)."""
        spread = NOISE * CELL
        return (
            self.layout.centre(start) + rng.uniform(-spread, spread, 2),
            self.layout.centre(self.goal) + rng.uniform(-spread, spread, 2),
        )


def reward(xy: Array, goal: Array) -> Array:
    """exp(-distance), points and goals [n, 2] -> [n]."""
    return np.asarray(np.exp(-np.linalg.norm(xy - goal, axis=-1)))


# Constraints on (x, y) as flagged cells -------------------------------------------------------

#: A cell is flagged where the mean of the activated cost over it exceeds this (the paper's).
THRESHOLD = 0.5
#: Points per side of a cell's lattice. The paper samples 100,000 points per cell.
LATTICE = 20


def cell_means(c: Constraint, layout: Layout, lattice: int = LATTICE) -> Array:
    """The mean activated cost of each cell over lattice^2 points, [rows, cols]."""
    offsets = ((np.arange(lattice) + 0.5) / lattice - 0.5) * CELL
    square = np.stack(np.meshgrid(offsets, offsets), axis=-1).reshape(-1, 2)
    centres = layout.centre(np.indices(layout.shape).reshape(2, -1).T)
    cost = c.cost((centres[:, None] + square).reshape(-1, 2))
    return np.asarray(cost.reshape(*layout.shape, -1).mean(axis=-1))


def flag(c: Constraint, layout: Layout) -> NDArray[np.bool_]:
    """The cells that a planner goes around, [rows, cols]."""
    return cell_means(c, layout) > THRESHOLD
