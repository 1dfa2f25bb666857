"""`ringfence bench exact`: how the exact game and the LP scale with the grid.

The maze is drawn on more and more cells; each of its ten tasks keeps its own LP, which is built
once and gets a new cost row in every iteration.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from ringfence.constraints.classes import TableClass
from ringfence.experts.optimal import expert_behaviours
from ringfence.game import Rules, play
from ringfence.objects import Problem, Solution
from ringfence.players.regression import Regression
from ringfence.solvers.lp import LPSolver, OccupancyLP
from ringfence.solvers.soft import SoftSolver
from ringfence.worlds.grid import GridWorld, scaled_maze

STEP = 2  # cells by which the grid's side grows

Solver = Callable[[Problem], Solution]


@dataclass(frozen=True)
class Row:
    """One grid size: seconds of a whole game with either solver, LP solves per second."""

    side: int
    horizon: int
    lp_variables: int
    soft_game_s: float
    lp_build_s: float
    lp_game_s: float
    lp_solves: int
    lp_per_s: float

    def line(self) -> str:
        return (
            f"| {self.side} x {self.side} | {self.horizon} | {self.lp_variables} "
            f"| {self.soft_game_s:.2f} | {self.lp_game_s:.2f} | {self.lp_build_s:.2f} "
            f"| {self.lp_solves} | {self.lp_per_s:.2f} |"
        )

    def numbers(self) -> dict[str, float]:
        size = f"{self.side}x{self.side}"
        return {
            f"game_s_{size}": self.soft_game_s,
            f"lp_game_s_{size}": self.lp_game_s,
            f"lp_build_s_{size}": self.lp_build_s,
            f"lp_per_s_{size}": self.lp_per_s,
        }


HEADER = (
    "| grid | T | LP variables | game, soft (s) | game, LP (s) | of it building (s) | LP solves "
    "| LP solves per second |\n|---|---|---|---|---|---|---|---|"
)


def bench_exact(budget_s: float = 60.0, report: Callable[[str], None] = print) -> dict[str, float]:
    """Flat name -> number, of every grid."""
    report(HEADER)
    numbers: dict[str, float] = {}
    for row in exact(budget_s):
        report(row.line())
        numbers |= row.numbers()
    return numbers


def exact(budget_s: float) -> Iterator[Row]:
    """Rows for growing grids until a game with the LP takes `budget_s` seconds."""
    side = 10
    while True:
        row = measure(scaled_maze(side))
        yield row
        if row.lp_game_s >= budget_s:
            return
        side += STEP


def measure(world: GridWorld) -> Row:
    experts = expert_behaviours(world)
    F_c = TableClass(world.features, world.shape).restricted(experts)

    def game_s(solve_all: Callable[[Sequence[Problem]], list[Solution]]) -> float:
        player = Regression(F_c, float(world.horizon))
        began = time.perf_counter()
        for _ in play(world.tasks, experts, solve_all, player, Rules()):
            pass
        return time.perf_counter() - began

    soft = SoftSolver()
    soft_game_s = game_s(lambda problems: [soft(p) for p in problems])
    began = time.perf_counter()
    lp = LPSolver({task: OccupancyLP(task.mdp) for task in world.tasks})
    build_s = time.perf_counter() - began
    seconds: list[float] = []
    lp_game_s = build_s + game_s(lambda problems: [_timed(lp, p, seconds) for p in problems])
    return Row(
        side=world.shape[0],
        horizon=world.horizon,
        lp_variables=int(np.prod(world.shape)) * 5 * world.horizon,
        soft_game_s=soft_game_s,
        lp_build_s=build_s,
        lp_game_s=lp_game_s,
        lp_solves=len(seconds),
        lp_per_s=1 / median(seconds),
    )


def _timed(solve: Solver, problem: Problem, seconds: list[float]) -> Solution:
    began = time.perf_counter()
    solution = solve(problem)
    seconds.append(time.perf_counter() - began)
    return solution
