"""The AntMaze: the Ant on an open floor, with a maze of virtual, permeable walls.

Any text map of the grid worlds is a maze (worlds/sim/floor.py has its layout, reward and
episodes). A wall is no body, only a cost: 1 per step in which the torso is in a forbidden cell or
outside the map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import (
    Array,
    Behaviour,
    Demonstrations,
    Feature,
    Finding,
    Solution,
    Trajectory,
)
from ringfence.worlds.grid import Cell, GridWorld, map_config, places, read_map
from ringfence.worlds.sim.floor import CELL, FEATURES, HORIZON, OUTCOMES, Layout, MazeTask, flag
from ringfence.worlds.world import Cells, Tables, View, require_fields


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


@dataclass(frozen=True)
class Config:
    """A maze for MuJoCo's Ant, with the features x, y (m).

    map: the lines of a text map, as of kind "grid"; its cells are squares of 4 m; name: in reports;
    horizon: steps of an episode.
    """

    map: tuple[str, ...]
    kind: Literal["ant-maze"] = "ant-maze"
    name: str = "ant-maze"
    horizon: int = HORIZON


def make(config: Config) -> AntMaze:
    if config.horizon < 1:
        raise InvalidInput(f"[world] horizon must be at least 1, got {config.horizon}")
    return AntMaze(read_map("\n".join(config.map)), config.horizon, config.name)


#: How the restricted class is fitted, by measurement. With the paper's fit (learning rate 3e-4,
#: points by visits) and tolerance 0 the output was lowered by 0.4 to 0.6, most walls with it (IoU
#: 0.25). On squares of 0.5 m it is lowered by 0.003 to 0.017, and no wall's mean is below 0.59.
RESTRICTED = {"learning_rate": 3e-3, "final_rate": 0.0, "steps": 6_000, "penalty": 10.0,
              "spread": 0.5, "batch": 512, "stream": []}  # fmt: skip
PAPER = {"batch": 512, "stream": []}


@dataclass(frozen=True, eq=False)
class AntMaze:
    """The maze of a grid world's map for the Ant."""

    grid: GridWorld
    horizon: int = HORIZON
    name: str = "ant-maze"
    packages: ClassVar[tuple[str, ...]] = ("mujoco", "jax", "jaxlib", "optax")
    experts: ClassVar[str] = "walking"

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

    # The world's protocol ------------------------------------------------------------------------

    @cached_property
    def cells(self) -> Cells:
        """The grid of the same map: a demonstrator's return there is T less its moves."""
        under = self.grid.cells
        return replace(
            under,
            index=self._state,
            forbidden=lambda c: flag(c, self.layout),
            path=self._cell_path,
        )

    def _state(self, xy: Array) -> NDArray[np.intp]:
        cells = self.layout.cell(xy)
        states = cells[:, 0] * self.grid.shape[1] + cells[:, 1]
        return np.where(self.layout.inside(cells), states, -1)

    def _cell_path(self, t: Trajectory) -> tuple[NDArray[np.intp], float]:
        """The cells of a walk as states, and its return on the grid; a corner counts as two."""
        cells = self.layout.cell_path(t.observations[:, :2])
        moves = int(np.abs(np.diff(cells, axis=0)).sum())
        states = cells[:, 0] * self.grid.shape[1] + cells[:, 1]
        return states, float(max(self.grid.horizon - moves, 0))

    def check(self, demos: Demonstrations) -> list[Finding]:
        """Tasks, features, where walks end, and claimed walls that they cross."""
        tasks = {task.name: task for task in self.tasks}
        if [f.name for f in demos.features] != [f.name for f in self.features]:
            names = ", ".join(f.name for f in demos.features)
            return [Finding("error", "features", f"{names}; the Ant's maze has x and y")]
        findings = []
        for d in demos.tasks:
            if d.task not in tasks:
                message = f"this world has no such task; there are: {', '.join(tasks)}"
                findings.append(Finding("error", f"task {d.task!r}", message))
                continue
            goal = tasks[d.task].goal
            for label, t in d.labelled:
                if not np.array_equal(self.layout.cell(t.features[-1]), goal):
                    message = f"it does not end in the goal's {goal}"
                    findings.append(Finding("warning", label, message))
                if self.truth.known and (bad := crossing(self.truth, t.features)):
                    findings.append(Finding("warning", label, f"it crosses a claimed wall: {bad}"))
        return findings

    def new_task(self, spec: Mapping[str, Any]) -> MazeTask:
        """Walking to the cell `goal` from the cell `start`."""
        require_fields("the Ant's maze", spec, ("goal", "start"))
        goal, start = ((int(spec[name][0]), int(spec[name][1])) for name in ("goal", "start"))
        return self.task(goal, (start,))

    def defaults(self, given: Tables) -> Tables:
        """A network on (x, y) and the planner. All iterations are played: a small payoff of the
        last network doesn't say that none is better."""
        restricted = given.get("player", {}).get("restricted", True)
        fit = {"network": RESTRICTED, "tolerance": 0.5} if restricted else {"network": PAPER}
        if given.get("game", {}).get("constraint", "mlp") != "mlp":
            fit = {}
        return {
            "game": {"constraint": "mlp", "epsilon": -1.0},
            "player": fit,
            "solver": {"kind": "planner"},
        }

    def views(self) -> list[View]:
        return [{"kind": "floor", "columns": [0, 1], "cell": CELL, **places(self.grid)}]

    def columns(self, tasks: Sequence[str], solutions: Sequence[Solution]) -> dict[str, Any]:
        """How episodes ended, and each that was in a wall: of the planner's solutions."""
        if any("outcome" not in s.policy for s in solutions):
            return {}
        known = self.truth.known
        return {
            "episodes": ends(solutions),
            "violations": in_walls(self.truth, tasks, solutions) if known else None,
        }


def ant_maze_config(world: str, **settings: Any) -> dict[str, Any]:
    """The settings of "ant-maze" (the paper's map) or "ant-maze:FILE"."""
    _, _, file = world.partition(":")
    grid = map_config(file or "maze")
    name = "ant-maze" if not file else f"ant-maze-{grid['name']}"
    given = {k: v for k, v in settings.items() if v is not None}
    return {"kind": "ant-maze", "name": name, "map": grid["map"], **given}


# Walks against the walls -------------------------------------------------------------------------


def crossing(truth: MazeTruth, xy: Array) -> str:
    """Where a path is in a wall or outside, in words; "" if nowhere."""
    bad = truth.violates(xy)
    if not bad.any():
        return ""
    cells, steps = np.unique(truth.layout.cell(xy[bad]), axis=0, return_counts=True)
    where = ", ".join(f"({r},{c}) {n} steps" for (r, c), n in zip(cells, steps, strict=True))
    return f"{where}; {depth(truth, xy[bad]):.2f} m deep"


def depth(truth: MazeTruth, xy: Array) -> float:
    """The largest distance of points [n, 2] from the nearest free cell, m."""
    free = truth.layout.centre(np.argwhere(~truth.walls))
    beyond = np.maximum(np.abs(xy[:, None] - free) - CELL / 2, 0)
    return float(np.linalg.norm(beyond, axis=-1).min(axis=1).max())


def paths(solution: Solution) -> list[Array]:
    """The positions [T, 2] of each episode of a planner's solution."""
    xy = np.asarray(solution.policy["xy"], np.float64)
    return np.split(xy, np.cumsum(solution.policy["length"])[:-1])


def ends(solutions: Sequence[Solution]) -> dict[str, int]:
    """How many episodes ended how, and how many plans had to cross flagged cells."""
    found = np.concatenate([s.policy["outcome"] for s in solutions])
    count = np.bincount(found, minlength=len(OUTCOMES))
    crossed = int(np.count_nonzero(np.concatenate([s.policy["crossed"] for s in solutions])))
    return {name: int(n) for name, n in zip(OUTCOMES, count, strict=True)} | {"dead_ends": crossed}


def in_walls(
    truth: MazeTruth, tasks: Sequence[str], solutions: Sequence[Solution]
) -> list[dict[str, Any]]:
    """Every episode that was in a wall or outside: where, for how many steps, how deep."""
    found = []
    for task, solution in zip(tasks, solutions, strict=True):
        for n, xy in enumerate(paths(solution)):
            if where := crossing(truth, xy):
                steps = int(truth.violates(xy).sum())
                found.append({"task": task, "episode": n, "steps": steps, "where": where})
    return found
