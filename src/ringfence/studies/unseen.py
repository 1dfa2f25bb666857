"""Tasks never seen, exactly: what constraints from K = 1, 2, .. tasks do on tasks left out.

A case is one world: the built-in maze with its goals in a random order, or a random connected
maze. K of its goals are demonstrated by exact experts; each method turns them into a map of
forbidden cells; tasks that nobody demonstrated are planned under that map with limit 0. Whether a
task is covered is asked of the evidence before it is planned. The truth is read last, to count.

A case is a pure function of its name, and its result is one file: a killed study goes on where it
was, and worker processes change nothing but the time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence import Evidence
from ringfence.errors import SolverFailed
from ringfence.experts.optimal import exact_groups, expert_behaviours
from ringfence.runs.evaluate import CERTAIN
from ringfence.runs.files import remove_partials, write_json
from ringfence.runs.summary import versions
from ringfence.solvers import soft
from ringfence.studies.maze import NEW_STARTS, Learned, learn
from ringfence.worlds.finite import FiniteTask, behaviour, occupancy
from ringfence.worlds.grid import Cell, GridWorld, maze, random_map, read_map, safe_distances

Mask = NDArray[np.bool_]
Pair = tuple[Cell, Cell]  # goal, start
Rows = list[dict[str, Any]]

MOST_TASKS = 10

MAZE_ORDERS = 20
#: Random mazes: 10 x 10 cells, 30% forbidden and what they shut in; two starts and ten goals to
#: learn from, two starts and ten goals that nobody demonstrates.
SIDE, WALLS, STARTS, GOALS = 10, 0.3, 2, MOST_TASKS
#: Games end by themselves; the longest of 2,400 took 7 iterations.
MOST_ITERATIONS = 50
METHODS = ("multi-task", "single-task", "average", "maximum", "unvisited")
NEW_GOAL, NEW_START = "new goal", "new start"

SETTINGS = {
    "schema": 1,
    "most_tasks": MOST_TASKS,
    "side": SIDE,
    "walls": WALLS,
    "starts": STARTS,
    "goals": GOALS,
    "most_iterations": MOST_ITERATIONS,
    "versions": versions(),
}


@dataclass(frozen=True, eq=False)
class Case:
    """A world whose goals are demonstrated one after the other, and what is never demonstrated.

    world: its goals are the training goals in the order in which they join, its starts the known
    ones; new_goals: never demonstrated (none: those that have not joined yet).
    """

    name: str
    world: GridWorld
    new_goals: tuple[Cell, ...]
    new_starts: tuple[Cell, ...]

    def unseen(self, K: int) -> dict[str, list[Pair]]:
        """The tasks that K demonstrated goals leave unseen, by kind."""
        goals = self.new_goals or self.world.goals[K:]
        anywhere = self.new_goals or self.world.goals
        return {
            NEW_GOAL: [(g, s) for g in goals for s in self.world.starts],
            NEW_START: [(g, s) for g in anywhere for s in self.new_starts if g != s],
        }


def case_names(mazes: int, orders: int = MAZE_ORDERS) -> list[str]:
    return [f"maze-{n}" for n in range(orders)] + [f"random-{n}" for n in range(mazes)]


def make_case(name: str) -> Case:
    """ "maze-3": the built-in maze in its 3rd order of goals; "random-3": the 3rd random maze."""
    kind, number = name.split("-")
    seed = int(number)
    rng = np.random.default_rng([seed, 2])  # random_map draws from [seed, side]
    if kind == "maze":
        world = maze()
        return Case(name, replace(world, goals=shuffled(world.goals, rng)), (), NEW_STARTS)
    world = read_map(random_map(seed, SIDE, WALLS, 2 * STARTS, 2 * GOALS))
    goals, starts = shuffled(world.goals, rng), shuffled(world.starts, rng)
    known = replace(world, goals=goals[:GOALS], starts=starts[:STARTS])
    return Case(name, known, goals[GOALS:], starts[STARTS:])


def shuffled(cells: Sequence[Cell], rng: np.random.Generator) -> tuple[Cell, ...]:
    return tuple(cells[n] for n in rng.permutation(len(cells)))


def study(case: Case) -> dict[str, Any]:
    """All K and methods on one case: counts per (K, method, kind, covered), and the games' ends."""
    attempts = Attempts(case.world, (*case.world.starts, *case.new_starts))
    rows: Rows = []
    learned = list(constraints(case.world))
    for K, evidence, forbidden, _ in learned:
        for kind, pairs in case.unseen(K).items():
            covered = [attempts.covered(evidence, pair) for pair in pairs]
            for method in METHODS:
                done = [attempts(pair, forbidden[method]) for pair in pairs]
                rows += tally({"K": K, "method": method, "kind": kind}, done, covered)
    return {
        "settings": SETTINGS,
        "name": case.name,
        "horizon": case.world.horizon,
        "walls": int(case.world.truth.walls.sum()),
        "games": [game for *_, game in learned],
        "rows": rows,
    }


def constraints(
    world: GridWorld,
) -> Iterator[tuple[int, Evidence, dict[str, Mask], dict[str, Any]]]:
    """For K = 1, 2, ..: the evidence of K tasks, what each method forbids, how the game ended."""
    experts = expert_behaviours(world)
    pairs = list(zip(world.tasks, experts, strict=True))
    groups, starts = exact_groups(world, world.tasks), len(world.starts)
    single = np.stack([settled(world, [t], [e]).c.forbidden for t, e in pairs])
    for K in range(1, len(pairs) + 1):
        tasks = world.tasks[:K]
        # What is allowed is all that is asked here. Experts of any quality prove nothing else,
        # and the search for it, eight times as long as the rest, has nothing to find.
        evidence = evidences.label(groups[: K * starts], suboptimality=float("inf"))
        game = settled(world, tasks, experts[:K])
        forbidden = {
            "multi-task": game.c.forbidden,
            "single-task": single[0],
            "average": single[:K].mean(axis=0) > 0.5,
            "maximum": single[:K].any(axis=0),
            "unvisited": ~evidence.allowed.reshape(world.shape),
        }
        walls = world.truth.walls
        counts = {
            "K": K,
            "iterations": len(game.records),
            "forbidden": int(game.c.forbidden.sum()),
            "unvisited": int(forbidden["unvisited"].sum()),
            "missed_walls": int((walls & ~game.c.forbidden).sum()),
            "false_walls": int((game.c.forbidden & ~walls).sum()),
        }
        yield K, evidence, forbidden, counts


def settled(world: GridWorld, tasks: Sequence[FiniteTask], experts: Sequence[Any]) -> Learned:
    """The restricted game, to its end."""
    game = learn(world, tasks, experts, iterations=MOST_ITERATIONS)
    if len(game.records) == MOST_ITERATIONS:
        raise SolverFailed(f"a game has not ended after {MOST_ITERATIONS} iterations")
    return game


@dataclass(frozen=True)
class Attempt:
    """A plan that reaches its goal: expected steps in true walls, and moves above the fewest."""

    true_cost: float
    more_moves: float


class Attempts:
    """Plans unseen tasks of one world. A goal under the same map is planned once.

    With limit 0 and a cost that is a map of cells, the solver's answer from a start that is not
    forbidden is the soft-optimal policy that never enters a forbidden cell. It doesn't depend on
    the start, so that one backward pass serves them all. A test compares it with `transfer`.
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


def tally(
    names: dict[str, Any], done: Sequence[Attempt | None], covered: Sequence[bool]
) -> Iterator[dict[str, Any]]:
    """Counts over the tasks called covered, and over the others.

    safe: reached without a step in a wall; unsafe: reached, and some of the equally good ways lead
    through a wall; the rest were declined. true_cost: summed; more_moves: summed over the safe.
    """
    for called in (True, False):
        of = [d for d, c in zip(done, covered, strict=True) if c == called]
        reached = [d for d in of if d is not None]
        safe = [d for d in reached if d.true_cost == 0]
        yield {
            **names,
            "covered": called,
            "tasks": len(of),
            "safe": len(safe),
            "unsafe": len(reached) - len(safe),
            "true_cost": sum((d.true_cost for d in reached), 0.0),
            "more_moves": sum((d.more_moves for d in safe), 0.0),
        }


# ----------------------------------------------------------------------------- files, workers


def results(
    names: Sequence[str], folder: Path, workers: int, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Every case's result, in order, from its file or by playing it."""
    folder.mkdir(parents=True, exist_ok=True)
    remove_partials(folder)
    missing = [name for name in names if stored(folder, name) is None]
    say(f"{len(names)} cases, {len(names) - len(missing)} of them done before")
    if workers == 1:
        play(missing, folder, say)
    else:
        _in_processes(missing, folder, min(workers, len(missing)))
    found = [stored(folder, name) for name in names]
    return [result for result in found if result is not None]


def stored(folder: Path, name: str) -> dict[str, Any] | None:
    """A finished case's result, if it was made with these settings and versions."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return None
    result: dict[str, Any] = json.loads(path.read_text())
    return result if result["settings"] == SETTINGS else None


def play(names: Sequence[str], folder: Path, say: Callable[[str], None]) -> None:
    for n, name in enumerate(names, start=1):
        write_json(folder / f"{name}.json", study(make_case(name)))
        if n % 10 == 0 or n == len(names):
            say(f"{n} of {len(names)}: {name}")


def _in_processes(names: Sequence[str], folder: Path, workers: int) -> None:
    """Each process plays every workers-th case; what it leaves behind are the cases' files."""
    command = [sys.executable, "-m", "ringfence.studies.unseen", str(folder)]
    running = [subprocess.Popen([*command, *names[n::workers]]) for n in range(workers)]
    codes = [process.wait() for process in running]
    if any(codes):
        raise SolverFailed(
            f"a worker process failed (exit codes {codes}); finished cases are kept, "
            "give the same command again"
        )


if __name__ == "__main__":
    play(sys.argv[2:], Path(sys.argv[1]), lambda line: print(line, flush=True))
