"""Games and plans on finite worlds, in memory and exact: what the maze's tables are made from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence import Evidence, Group
from ringfence.constraints.classes import TableClass
from ringfence.constraints.table import TableConstraint
from ringfence.experts.optimal import ExpertConfig, make_demonstrations
from ringfence.game import Record, Rules, play
from ringfence.objects import Behaviour, Constraint, Demonstrations, Problem, Solution
from ringfence.players.ftrl import ftrl
from ringfence.players.player import ConstraintPlayer
from ringfence.players.regression import Regression
from ringfence.solvers import soft
from ringfence.solvers.soft import SoftSolver
from ringfence.worlds.finite import FiniteTask, behaviour, occupancy
from ringfence.worlds.grid import Cell, GridWorld, safe_distances

Mask = NDArray[np.bool_]
Pair = tuple[Cell, Cell]  # goal, start

#: A plan reaches its goal if it ends there with at least this probability.
CERTAIN = 0.999
ITERATIONS = 5


def learn(
    world: GridWorld,
    tasks: Sequence[FiniteTask],
    experts: Sequence[Behaviour],
    restricted: bool = True,
    player: str = "regression",
    temperature: float = SoftSolver.temperature,
    iterations: int = ITERATIONS,
) -> list[Record]:
    """MT-ICL (Algorithm 3) on the given tasks."""
    F_c = TableClass(world.features, world.shape)
    if restricted:
        F_c = F_c.restricted(experts)
    T = float(world.horizon)
    chosen: ConstraintPlayer = (
        Regression(F_c, T) if player == "regression" else ftrl(F_c, T, iterations)
    )
    solver = SoftSolver(temperature)

    def solve_all(problems: Sequence[Problem]) -> list[Solution]:
        return [solver(problem) for problem in problems]

    return list(play(tasks, experts, solve_all, chosen, Rules(iterations)))


def forbidden(c: Constraint) -> Mask:
    assert isinstance(c, TableConstraint)
    return c.forbidden


def last_map(records: Sequence[Record]) -> Mask:
    """The cells that a game's last update forbids."""
    return forbidden(records[-1].c_next)


def overlap(found: Mask, walls: Mask) -> float:
    """Intersection over union of forbidden cells with the true ones."""
    return float((found & walls).sum() / max(1, (found | walls).sum()))


def put_together(single: Sequence[Mask], multi: Sequence[Mask]) -> dict[str, Mask]:
    """Maps by what they were learned from. single: of each task alone; multi: of all together,
    after each iteration."""
    return {
        **{f"task {k}": c for k, c in enumerate(single)},
        "average": np.mean(single, axis=0) > 0.5,
        "maximum": np.any(single, axis=0),
        "multi-task, 1 iteration": multi[0],
        "multi-task, last": multi[-1],
    }


def map_text(found: Mask) -> str:
    """A map in a row of a table: "." free, "#" forbidden, "/" between its lines."""
    return "/".join("".join(".#"[int(cell)] for cell in line) for line in found)


def read_map_text(text: str) -> Mask:
    return np.array([[cell == "#" for cell in line] for line in text.split("/")])


def sampled(world: GridWorld, paths: int, seed: int) -> tuple[Demonstrations, Evidence]:
    demos = make_demonstrations(world, ExpertConfig(paths=paths, heldout=0, seed=seed))
    return demos, evidences.label(groups(world.tasks, demos))


def groups(tasks: Sequence[FiniteTask], demos: Demonstrations) -> list[Group]:
    by_name = {d.task: d for d in demos.tasks}
    return [g for task in tasks for g in evidences.groups_of(task, by_name[task.name].train)]


@dataclass(frozen=True)
class Attempt:
    """A plan that reaches its goal: expected steps in true walls, and moves above the fewest."""

    true_cost: float
    more_moves: float


class Attempts:
    """Plans tasks of one world with limit 0. A goal under the same map is planned once.

    With limit 0 and a cost that is a map of cells, the solver's answer from a start that is not
    forbidden is the soft-optimal policy that never enters a forbidden cell. It doesn't depend on
    the start, so that one backward pass serves them all. A test compares it with the solver.
    """

    def __init__(self, world: GridWorld, starts: Sequence[Cell]) -> None:
        self.world, self.starts = world, starts
        self.fewest = {start: safe_distances(world.truth.walls, start) for start in starts}
        self.tasks: dict[Pair, FiniteTask] = {}
        self.known: dict[tuple[Cell, bytes], dict[Cell, Attempt]] = {}

    def __call__(self, pair: Pair, forbidden: Mask) -> Attempt | None:
        """What comes of the task under this map; None: no way to the goal, so it is declined."""
        goal, start = pair
        key = (goal, forbidden.tobytes())
        if key not in self.known:
            self.known[key] = dict(self._plan(goal, forbidden))
        return self.known[key].get(start)

    def impossible(self, forbidden: Mask) -> int:
        """The world's tasks that the map shuts out from one of their starts."""
        world = self.world
        return sum(any(self((g, s), forbidden) is None for s in world.starts) for g in world.goals)

    def covered(self, evidence: Evidence, pair: Pair) -> bool:
        task = self._task(pair)
        return evidences.covered(evidence, task, int(task.mdp.start.argmax()))

    def _task(self, pair: Pair) -> FiniteTask:
        if pair not in self.tasks:
            goal, start = pair
            self.tasks[pair] = self.world.task(goal, (start,))
        return self.tasks[pair]

    def _plan(self, goal: Cell, forbidden: Mask) -> Iterator[tuple[Cell, Attempt]]:
        """The starts from which a plan reaches the goal, with what comes of it."""
        world = self.world
        free = tuple(start for start in self.starts if not forbidden[start])
        if not free:
            return
        mdp = self._task((goal, free[0])).mdp
        inside = np.repeat(~forbidden.reshape(-1, 1), mdp.num_actions, axis=1)
        pi, _ = soft.plan(mdp, mdp.reward, soft.SoftSolver.temperature, inside)
        for start in free:
            task = self._task((goal, start))
            rho = occupancy(task.mdp, pi)
            if rho[-1, goal[0] * world.shape[1] + goal[1]].sum() < CERTAIN:
                continue
            did = behaviour(task, rho)
            # The goal pays 1 per step, so a return is the horizon less the moves to it.
            moves = round(world.horizon - did.reward, 6)
            cost = round(world.truth.true_cost(did), 9)
            yield start, Attempt(cost, moves - int(self.fewest[start][goal]))
