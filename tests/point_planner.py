"""Exact policies of the point among obstacles, on the demonstrators' grid: nothing is trained.

`make_solver` is a kind of solver. Its policies are the best of the places that cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ringfence.objects import Array, Constraint, Problem, Solution, Trajectory, behaviour_of
from ringfence.reproduce.limit_worlds import STRIDE
from ringfence.reproduce.point_demonstrators import Plan, axis, index_of, places, planned
from ringfence.solvers.solver import Report, pictured, quiet


@dataclass(frozen=True)
class SolverConfig:
    kind: Literal["point_planner:make_solver"] = "point_planner:make_solver"


def make_solver(config: SolverConfig) -> Planner:
    return Planner()


class Planner:
    """The best ways through what costs nothing. (A limit above 0 makes no difference.)"""

    at_once, learns = 1, False

    def key(self, problem: Problem, usual: dict[str, Any]) -> dict[str, Any]:
        return usual

    def __call__(
        self, problem: Problem, checkpoint: Path | None = None, report: Report = quiet
    ) -> Solution:
        runs = self.play(problem, 128, problem.seed)
        return Solution({}, 0.0, behaviour_of(runs), 0, pictured=pictured(runs))

    def play(self, problem: Problem, count: int, seed: tuple[int, ...]) -> list[Trajectory]:
        task: Any = problem.task
        free = free_of(problem.constraint)
        plan = plan_of(tuple(task.kwargs["goal"]), free.tobytes(), len(free), task.horizon)
        rng, starts = np.random.default_rng(seed), task.kwargs["starts"]
        noise = task.kwargs.get("noise", 0.0)
        chosen = rng.integers(len(starts), size=count)
        return [walk(plan, task.kwargs["goal"], starts[n], noise, rng) for n in chosen]

    def free(self) -> Planner:
        return self

    def watch(self) -> Planner:
        raise AssertionError("nothing to watch")

    def episodes(
        self, problem: Problem, solution: Solution, count: int, seed: tuple[int, ...]
    ) -> list[Trajectory]:
        return self.play(problem, count, seed)


def free_of(c: Constraint) -> Any:
    """Which places [n, n] of the grid cost nothing."""
    n = len(axis())
    return np.asarray(c.cost(places().reshape(-1, 2)) == 0).reshape(n, n)


@cache
def plan_of(goal: tuple[float, ...], free: bytes, n: int, steps: int) -> Plan:
    return planned(goal, np.frombuffer(free, np.bool_).reshape(n, n), steps)


def walk(plan: Plan, goal: Any, start: Any, noise: float, rng: np.random.Generator) -> Trajectory:
    """An episode from a start, as the environment would play it."""
    at = np.array(index_of(np.array(start)))
    path: list[Array] = [axis()[at]]
    for moves in plan.moves:
        at = at + moves[tuple(at)]
        path.append(axis()[at])
    xy = np.array(path)
    rewards = -np.linalg.norm(xy[1:] - goal, axis=1) + noise * rng.standard_normal(len(plan.moves))
    seen = np.hstack([xy, np.broadcast_to(goal, xy.shape)])
    return Trajectory(seen, np.diff(xy, axis=0) / STRIDE, rewards, xy[1:], terminated=False)
