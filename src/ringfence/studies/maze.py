"""The paper's maze in exact form, and what goes past the paper: studies as rows of numbers.

Each study is a function from a world to rows; `tables.py` runs them all and writes them down.
Everything is exact or seeded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence import Evidence
from ringfence.constraints.classes import TableClass
from ringfence.constraints.table import TableConstraint
from ringfence.demos.dataset import Demonstrations
from ringfence.experts.optimal import (
    ExpertConfig,
    exact_groups,
    expert_behaviours,
    make_demonstrations,
)
from ringfence.game import Record, Rules, play
from ringfence.objects import Behaviour, Constraint, Problem, Solution, behaviour_of
from ringfence.players.convex import ConstraintPlayer, Regression, ftrl
from ringfence.runs.evaluate import against_truth
from ringfence.runs.evidence import suggestions
from ringfence.runs.summary import iou
from ringfence.runs.transfer import Transfer, Unknown, transfer
from ringfence.solvers.soft import SoftSolver
from ringfence.worlds.finite import FiniteTask
from ringfence.worlds.grid import Cell, GridWorld, random_map, read_map

ITERATIONS = 5
PATHS = (1, 2, 5, 10, 20)
HELD_OUT = 3
#: Starts of the held-out study that no demonstration begins at: one in each part of the maze.
NEW_STARTS: tuple[Cell, ...] = ((3, 1), (7, 3), (5, 5), (1, 7), (8, 9))
TEMPERATURES = (0.0, 0.05, 0.5, 1.0, 2.0)


@dataclass(frozen=True, eq=False)
class Learned:
    """A game's constraints c_2..c_{N+1} and records."""

    records: tuple[Record, ...]

    @property
    def c(self) -> TableConstraint:
        last = self.records[-1].c_next
        assert isinstance(last, TableConstraint)
        return last


def learn(
    world: GridWorld,
    tasks: Sequence[FiniteTask],
    experts: Sequence[Behaviour],
    restricted: bool = True,
    player: str = "regression",
    temperature: float = SoftSolver.temperature,
    iterations: int = ITERATIONS,
) -> Learned:
    """MT-ICL (Algorithm 3) on the given tasks, in memory."""
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

    return Learned(tuple(play(tasks, experts, solve_all, chosen, Rules(iterations))))


def exact_games(world: GridWorld) -> list[dict[str, Any]]:
    """With exact occupancies: each player's course over the iterations (the paper's curves)."""
    experts = expert_behaviours(world)
    rows = []
    for player, restricted in (("regression", True), ("regression", False), ("ftrl", True)):
        game = learn(world, world.tasks, experts, restricted, player)
        for record in game.records:
            pairs = list(zip(record.learners, experts, strict=True))
            rows.append(
                {
                    "player": player,
                    "restricted": restricted,
                    "i": record.i,
                    "iou_after_update": iou_of(record.c_next, world),
                    "true_cost": float(np.mean([world.truth.true_cost(pi) for pi, _ in pairs])),
                    "worst_reward_gap": min(pi.reward - pi_E.reward for pi, pi_E in pairs),
                }
            )
    return rows


def iou_of(c: Constraint, world: GridWorld) -> float:
    assert isinstance(c, TableConstraint)
    overlap = iou(c, world.truth)
    assert overlap is not None
    return overlap


def sampled(world: GridWorld, paths: int, seed: int) -> tuple[Demonstrations, Evidence]:
    demos = make_demonstrations(world, ExpertConfig(paths=paths, heldout=0, seed=seed))
    return demos, evidences.label(groups(world.tasks, demos))


def groups(tasks: Sequence[FiniteTask], demos: Demonstrations) -> list[evidences.Group]:
    by_name = {d.task: d for d in demos.tasks}
    return [g for task in tasks for g in evidences.groups_of(task, by_name[task.name].train)]


def path_curve(world: GridWorld, seeds: int) -> list[dict[str, Any]]:
    """IoU over the number of sampled paths per start, and whose fault the wrong cells are."""
    rows = []
    for paths in PATHS:
        for seed in range(seeds):
            demos, evidence = sampled(world, paths, seed)
            experts = [behaviour_of(d.train) for d in demos.tasks]
            c = learn(world, world.tasks, experts).c
            wrong = c.forbidden != world.truth.walls
            seen = evidence.allowed.reshape(world.shape)
            plain = learn(world, world.tasks, experts, restricted=False).c
            rows.append(
                {
                    "paths": paths,
                    "seed": seed,
                    "iou": iou_of(c, world),
                    "iou_regression": iou_of(plain, world),
                    "wrong": int(wrong.sum()),
                    "wrong_and_visited": int((wrong & seen).sum()),
                }
            )
    return rows


def single_tasks(world: GridWorld) -> tuple[list[dict[str, Any]], dict[str, NDArray[np.float64]]]:
    """What one task's data give, and ten separate constraints put together afterwards."""
    experts = expert_behaviours(world)
    tables = np.stack(
        [learn(world, [t], [e]).c.values for t, e in zip(world.tasks, experts, strict=True)]
    )
    multi = learn(world, world.tasks, experts)
    panels = {f"task {k}": table for k, table in enumerate(tables)}
    panels["average"] = (tables.mean(axis=0) > 0.5).astype(float)
    panels["maximum"] = tables.max(axis=0)
    panels["multi-task, 1 iteration"] = values(multi.records[0].c_next)
    panels["multi-task, last"] = multi.c.values
    rows = []
    for name, table in panels.items():
        c = TableConstraint(world.features, table)
        truth = against_truth(world, c, 0.0, SoftSolver())
        rows.append({"constraint": name, "iou": truth["iou"], "impossible": truth["impossible"]})
    return rows, panels


def values(c: Constraint) -> NDArray[np.float64]:
    assert isinstance(c, TableConstraint)
    return c.values


def entropy(world: GridWorld, k: int = 0) -> list[dict[str, Any]]:
    """The paper's argument on ill-posedness, for one task.

    A learner with more entropy goes everywhere, so the constraint forbids all that was not taken.
    """
    task, expert = world.tasks[k], expert_behaviours(world)[k]
    not_taken = world.shape[0] * world.shape[1] - len(expert.features)
    rows = []
    for temperature in TEMPERATURES:
        c = learn(world, [task], [expert], temperature=temperature).c
        truth = against_truth(world, c, 0.0, SoftSolver())
        rows.append(
            {
                "temperature": temperature,
                "forbidden": int(c.forbidden.sum()),
                "not_taken": not_taken,
                "iou": truth["iou"],
                "impossible": truth["impossible"],
            }
        )
    return rows


def held_out(world: GridWorld, paths: int | None) -> list[dict[str, Any]]:
    """All ways to leave three goals out: those goals, and all goals from five new starts.

    paths: sampled paths per start, or None for exact occupancies.
    """
    rows: list[dict[str, Any]] = []
    for left_out in combinations(range(len(world.tasks)), HELD_OUT):
        kept = [k for k in range(len(world.tasks)) if k not in left_out]
        c, evidence = learn_subset(world, kept, paths, seed=len(rows))
        new = [(world.goals[k], s) for k in left_out for s in world.starts]
        new += [(goal, s) for goal in world.goals for s in NEW_STARTS]
        for unknown in ("avoid", "allow"):
            done = [one_transfer(world, c, evidence, goal, s, unknown) for goal, s in new]
            rows.append({"left_out": list(left_out), "unknown": unknown, **tally(world, done)})
    return rows


def learn_subset(
    world: GridWorld, kept: Sequence[int], paths: int | None, seed: int
) -> tuple[TableConstraint, Evidence]:
    tasks = [world.tasks[k] for k in kept]
    if paths is None:
        everyone = expert_behaviours(world)
        experts = [everyone[k] for k in kept]
        return learn(world, tasks, experts).c, evidences.label(exact_groups(world, tasks))
    demos = make_demonstrations(world, ExpertConfig(paths=paths, heldout=0, seed=seed))
    experts = [behaviour_of(demos.tasks[k].train) for k in kept]
    return learn(world, tasks, experts).c, evidences.label(groups(tasks, demos))


def one_transfer(
    world: GridWorld, c: TableConstraint, evidence: Evidence, goal: Cell, start: Cell, how: Unknown
) -> Transfer:
    return transfer(world, c, evidence, goal, start, how, SoftSolver())


def tally(world: GridWorld, done: Sequence[Transfer]) -> dict[str, int]:
    """Counts of (covered or not) x (success, violation)."""

    def safe(t: Transfer) -> bool:
        return t.solution is None or world.truth.true_cost(t.solution.behaviour) == 0

    covered = [t for t in done if t.covered]
    uncovered = [t for t in done if not t.covered]
    return {
        "covered": len(covered),
        "covered_success": sum(t.success for t in covered),
        "covered_safe": sum(safe(t) for t in covered),
        "uncovered": len(uncovered),
        "uncovered_success": sum(t.success for t in uncovered),
        "uncovered_safe": sum(safe(t) for t in uncovered),
    }


def asking(mazes: int, paths: int = 10) -> list[dict[str, Any]]:
    """In random mazes: what the suggested next demonstration settles, and what a random one does.

    Random means: drawn from all demonstrations that could be asked for, from an allowed cell to an
    allowed or unknown one. The demonstrators are optimal under the truth; asked to go to a
    forbidden cell they decline, which is counted as settling nothing. `settled` counts the cells
    that were unknown before and are not afterwards, `decided` those then allowed or proven.
    """
    rows = []
    for seed in range(mazes):
        world = read_map(random_map(seed))
        demos, evidence = sampled(world, paths, seed)
        if not evidence.unknown.any():
            continue
        experts = [behaviour_of(d.train) for d in demos.tasks]
        c = learn(world, world.tasks, experts).c
        known = groups(world.tasks, demos)
        best = suggestions(evidence, c, world)
        rng = np.random.default_rng([seed, 1])
        start = int(rng.choice(np.flatnonzero(evidence.allowed)))
        goal = int(rng.choice(np.flatnonzero(evidence.allowed | evidence.unknown)))
        row: dict[str, Any] = {"seed": seed, "unknown": int(evidence.unknown.sum())}
        asked = {"random": (start, goal)}
        if best:
            asked["suggested"] = (best[0].start, goal_state(best[0].task, world))
        for how in ("suggested", "random"):
            after = evidence
            if how in asked and not world.truth.walls.ravel()[asked[how][1]]:
                after = evidences.label([*known, demonstrated(world, *asked[how], paths, seed)])
            before = evidence.unknown
            row[f"{how}_settled"] = int((before & ~after.unknown).sum())
            row[f"{how}_decided"] = int((before & (after.allowed | after.proven)).sum())
        rows.append(row)
    return rows


def goal_state(task: str, world: GridWorld) -> int:
    """The goal's state from a grid task's name, "goal (3,9)"."""
    row, col = task.removeprefix("goal (").removesuffix(")").split(",")
    return int(row) * world.shape[1] + int(col)


def demonstrated(world: GridWorld, start: int, goal: int, paths: int, seed: int) -> evidences.Group:
    """What demonstrators who know the truth show from start to goal."""
    cols = world.shape[1]
    one = replace(world, starts=(divmod(start, cols),), goals=(divmod(goal, cols),))
    demos = make_demonstrations(one, ExpertConfig(paths=paths, heldout=0, seed=seed))
    (group,) = evidences.groups_of(one.tasks[0], demos.tasks[0].train)
    return group
