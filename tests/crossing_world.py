"""A continuous world whose best policies are known in closed form.

A point crosses a field from left to right, a column a step, and chooses its height anew in each
column. What a step earns depends on where it is (smooth, above 0); discs are forbidden. The best
policy under any constraint is the best height of each column that costs nothing. Features are
(x, y). `make` and `make_solver` are its kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis.evidence.sampled import cells_of
from ringfence.constraints.cell_grid import Grid
from ringfence.objects import (
    Array,
    Demonstrations,
    Feature,
    Problem,
    Solution,
    TaskDemos,
    Trajectory,
    behaviour_of,
)
from ringfence.runs import driver
from ringfence.runs.config import configure
from ringfence.solvers.solver import Report, pictured, quiet
from ringfence.worlds.continuous import ContinuousWorld
from ringfence.worlds.world import Tables

FEATURES = (Feature("x", "m"), Feature("y", "m"))
STEPS, HEIGHTS = 24, 241
WIDTH, HIGH = 6.0, 3.0
STRIDE = WIDTH / STEPS
BUMPS, DISCS = 6, 3
#: Is a place not to be entered? [n, 2] -> [n]
Barred = Callable[[Array], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class Crossing:
    """bumps [n, 4]: x, y, width and size of what is earned; discs [m, 3]: x, y, radius; noise: of a
    step's reward."""

    bumps: Array
    discs: Array
    noise: float = 0.0
    name: str = "cross"
    features: ClassVar[tuple[Feature, ...]] = FEATURES
    horizon: ClassVar[int] = STEPS
    observation_dim: ClassVar[int] = 2
    action_low: ClassVar[Array] = np.array([-HIGH])
    action_high: ClassVar[Array] = np.array([HIGH])

    def collector(self, spec: Any) -> Any:
        raise AssertionError("nothing is trained here")

    def reward(self, at: Array) -> Array:
        x, y, wide, size = self.bumps.T
        away = (at[:, :1] - x) ** 2 + (at[:, 1:] - y) ** 2
        return np.asarray(1.0 + (size * np.exp(-away / wide**2)).sum(axis=1))

    def forbidden(self, at: Array) -> NDArray[np.bool_]:
        x, y, radius = self.discs.T
        return np.asarray(((at[:, :1] - x) ** 2 + (at[:, 1:] - y) ** 2 < radius**2).any(axis=1))

    def episode(self, barred: Barred, rng: np.random.Generator, lost: float = 0.0) -> Trajectory:
        """The best heights that aren't barred; lost: the share of what these earn that is given up,
        by worse heights that aren't barred either."""
        x, y = STRIDE * (np.arange(STEPS) + rng.random()), np.linspace(-HIGH, HIGH, HEIGHTS)
        places = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)
        flat = places.reshape(-1, 2)
        earned = np.where(barred(flat), -np.inf, self.reward(flat)).reshape(STEPS, HEIGHTS)
        best, steps = earned.argmax(axis=1), np.arange(STEPS)
        if lost:
            best = _worse(earned, best, (1 - lost) * earned[steps, best].sum(), rng)
        chosen = places[steps, best]
        rewards = self.reward(chosen) + self.noise * rng.standard_normal(STEPS)
        seen = np.vstack([[x[0], 0.0], chosen])
        return Trajectory(seen, chosen[:, 1:], rewards, chosen, terminated=False)

    def episodes(
        self, barred: Barred, count: int, seed: Any, lost: float = 0.0
    ) -> list[Trajectory]:
        rng = np.random.default_rng(seed)
        return [self.episode(barred, rng, lost) for _ in range(count)]


def _worse(earned: Array, best: Any, enough: float, rng: np.random.Generator) -> Any:
    """Heights drawn at random in some columns, as long as they still earn enough."""
    for t in rng.permutation(STEPS):
        tried = best.copy()
        tried[t] = rng.choice(np.flatnonzero(np.isfinite(earned[t])))
        if earned[np.arange(STEPS), tried].sum() >= enough:
            best = tried
    return best


def nowhere(at: Array) -> NDArray[np.bool_]:
    return np.zeros(len(at), np.bool_)


def random_crossing(seed: int, noise: float = 0.0, name: str = "cross") -> Crossing:
    """Several bumps, and discs on and around some of them."""
    rng = np.random.default_rng(seed)
    places = np.column_stack([rng.uniform(0, WIDTH, BUMPS), rng.uniform(-2, 2, BUMPS)])
    shapes = np.column_stack([rng.uniform(0.4, 1.2, BUMPS), rng.uniform(1, 4, BUMPS)])
    on = rng.choice(BUMPS, DISCS, replace=False)
    middles = places[on] + rng.normal(0, 0.3, (DISCS, 2))
    discs = np.column_stack([middles, rng.uniform(0.3, 0.9, DISCS)])
    return Crossing(np.hstack([places, shapes]), discs, noise, name)


def truly_forbidden(grid: Grid, world: Crossing) -> NDArray[np.bool_]:
    """The cells that hold a forbidden point."""
    x, y = np.linspace(-1, 7, 401), np.linspace(-4, 4, 401)
    fine: Array = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    found = np.zeros(int(np.prod(grid.shape)), np.bool_)
    found[cells_of(grid, fine[world.forbidden(fine)])] = True
    return found


def kept_off(grid: Grid, off: NDArray[np.bool_]) -> Barred:
    return lambda at: np.asarray(off[cells_of(grid, at)])


# As a world and a solver of a run ----------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    """seed: of what is earned where; tasks: share the forbidden discs."""

    kind: Literal["crossing_world:make"] = "crossing_world:make"
    seed: int = 0
    tasks: int = 2


class CrossingWorld(ContinuousWorld):
    def defaults(self, given: Tables) -> Tables:
        return {
            "game": {"constraint": "table(x by 0.5, y by 0.5)", "iterations": 3},
            "solver": {"kind": "crossing_world:make_solver"},
        }


def tasks_of(config: Config) -> tuple[Crossing, ...]:
    first = random_crossing(config.seed)
    others = [random_crossing(config.seed + 1000 * k) for k in range(1, config.tasks)]
    return tuple(
        replace(one, discs=first.discs, name=f"task {k}") for k, one in enumerate([first, *others])
    )


def make(config: Config) -> CrossingWorld:
    tasks: Any = tasks_of(config)

    def make_task(spec: Mapping[str, Any]) -> Any:
        return replace(random_crossing(spec["seed"]), discs=tasks[0].discs, name="new")

    return CrossingWorld("crossing", tasks, (), make_task)


def demonstrations(config: Config, count: int = 20) -> Demonstrations:
    made = []
    for k, task in enumerate(tasks_of(config)):
        runs = task.episodes(task.forbidden, count, (config.seed, k))
        half = count // 2
        made.append(TaskDemos(task.name, tuple(runs[:half]), tuple(runs[half:])))
    return Demonstrations(tuple(made), FEATURES, {})


def play(run: Path, workers: int = 1, seed: int = 3, **tables: Any) -> dict[str, Any]:
    """A game on it, played to its end."""
    asked = {"command": "ringfence learn", "seed": 0, **tables}
    asked["world"] = {"kind": "crossing_world:make", "seed": seed}
    driver.create(run, configure(asked), demonstrations(Config(seed=seed)))
    return driver.drive(run, workers)


@dataclass(frozen=True)
class SolverConfig:
    kind: Literal["crossing_world:make_solver"] = "crossing_world:make_solver"


def make_solver(config: SolverConfig) -> ClosedForm:
    return ClosedForm()


class ClosedForm:
    """The best heights that cost nothing. (A limit above 0 makes no difference.)"""

    at_once, learns = 1, False

    def key(self, problem: Problem, usual: dict[str, Any]) -> dict[str, Any]:
        return usual

    def __call__(
        self, problem: Problem, checkpoint: Path | None = None, report: Report = quiet
    ) -> Solution:
        runs = self.play(problem, 16, problem.seed)
        return Solution({}, 0.0, behaviour_of(runs), 0, pictured=pictured(runs))

    def play(self, problem: Problem, count: int, seed: tuple[int, ...]) -> list[Trajectory]:
        task: Any = problem.task
        found: list[Trajectory] = task.episodes(
            lambda at: problem.constraint.cost(at) > 0, count, seed
        )
        return found

    def free(self) -> ClosedForm:
        return self

    def watch(self) -> ClosedForm:
        raise AssertionError("nothing to watch")

    def episodes(
        self, problem: Problem, solution: Solution, count: int, seed: tuple[int, ...]
    ) -> list[Trajectory]:
        return self.play(problem, count, seed)
