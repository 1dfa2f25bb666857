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
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.analysis import evidence as evidences
from ringfence.analysis import theory
from ringfence.analysis.evidence import Evidence
from ringfence.binomial import binomial_interval
from ringfence.disk import remove_partials, write_json
from ringfence.errors import SolverFailed
from ringfence.experts.optimal import expert_behaviours
from ringfence.objects import Behaviour
from ringfence.reproduce.exact_tasks import Attempt, Attempts, Mask, Pair, last_map, learn
from ringfence.reproduce.rows import Found, Row, Rows
from ringfence.reproduce.study import RUNS, Say, Study
from ringfence.runs.demonstrated import exact_groups
from ringfence.runs.summary import versions
from ringfence.worlds.finite import FiniteTask
from ringfence.worlds.grid import Cell, GridWorld, maze, random_map, read_map

MOST_TASKS = 10
MAZE_ORDERS = 20
#: Random mazes: 10 x 10 cells, 30% forbidden and what they shut in; two starts and ten goals to
#: learn from, two starts and ten goals that nobody demonstrates.
SIDE, WALLS, STARTS, GOALS = 10, 0.3, 2, MOST_TASKS
#: Of the built-in maze, that no demonstration begins at: one in each part.
NEW_STARTS: tuple[Cell, ...] = ((3, 1), (7, 3), (5, 5), (1, 7), (8, 9))
#: Games end by themselves; the longest of 2,400 took 7 iterations.
MOST_ITERATIONS = 50
METHODS = ("multi-task", "single-task", "average", "maximum", "unvisited")
#: Not a method of its own: covered tasks keep to visited cells, the others to the multi-task map.
KNOWN_FIRST = "known first"
NEW_GOAL, NEW_START = "new goal", "new start"
WORLDS = ("random", "maze")
OUTCOMES = ("safe", "unsafe", "declined")
QUANTILES = (0.1, 0.5, 0.9)
#: The theory's accuracies, per step. Its bound 3 epsilon T is below T from 1/3 on.
EPSILONS = (1 / 3, 0.1, 0.01)
CONFIDENCE = 0.05

SETTINGS = {
    "schema": 1,
    "most_tasks": MOST_TASKS,
    "side": SIDE,
    "walls": WALLS,
    "starts": STARTS,
    "goals": GOALS,
    "most_iterations": MOST_ITERATIONS,
    "versions": versions(maze()),
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


def result_of(case: Case) -> dict[str, Any]:
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
    single = np.stack([to_its_end(world, [t], [e])[0] for t, e in pairs])
    for K in range(1, len(pairs) + 1):
        # What is allowed is all that is asked here. Experts of any quality prove nothing else,
        # and the search for it, eight times as long as the rest, has nothing to find.
        evidence = evidences.label(groups[: K * starts], suboptimality=float("inf"))
        c, iterations = to_its_end(world, world.tasks[:K], experts[:K])
        forbidden = {
            "multi-task": c,
            "single-task": single[0],
            "average": single[:K].mean(axis=0) > 0.5,
            "maximum": single[:K].any(axis=0),
            "unvisited": ~evidence.allowed.reshape(world.shape),
        }
        walls = world.truth.walls
        counts = {
            "K": K,
            "iterations": iterations,
            "forbidden": int(c.sum()),
            "unvisited": int(forbidden["unvisited"].sum()),
            "missed_walls": int((walls & ~c).sum()),
            "false_walls": int((c & ~walls).sum()),
        }
        yield K, evidence, forbidden, counts


def to_its_end(
    world: GridWorld, tasks: Sequence[FiniteTask], experts: Sequence[Behaviour]
) -> tuple[Mask, int]:
    """The restricted game's last map, and its iterations."""
    game = learn(world, tasks, experts, iterations=MOST_ITERATIONS)
    if len(game) == MOST_ITERATIONS:
        raise SolverFailed(f"a game has not ended after {MOST_ITERATIONS} iterations")
    return last_map(game), len(game)


def tally(names: Row, done: Sequence[Attempt | None], covered: Sequence[bool]) -> Iterator[Row]:
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


# Files and workers -----------------------------------------------------------------------------


def results(names: Sequence[str], folder: Path, workers: int, say: Say) -> list[dict[str, Any]]:
    """Every case's result, in order, from its file or by playing it."""
    folder.mkdir(parents=True, exist_ok=True)
    remove_partials(folder)
    missing = [name for name in names if stored(folder, name) is None]
    say(f"{len(names)} cases, {len(names) - len(missing)} of them done before")
    work = partial(play_case, folder)
    if workers == 1 or len(missing) < 2:
        for n, name in enumerate(missing, start=1):
            work(name)
            if n % 10 == 0 or n == len(missing):
                say(f"{n} of {len(missing)}: {name}")
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            list(pool.map(work, missing))
    found = [stored(folder, name) for name in names]
    return [result for result in found if result is not None]


def play_case(folder: Path, name: str) -> None:
    write_json(folder / f"{name}.json", result_of(make_case(name)))


def stored(folder: Path, name: str) -> dict[str, Any] | None:
    """A finished case's result, if it was made with these settings and versions."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return None
    result: dict[str, Any] = json.loads(path.read_text())
    return result if result["settings"] == SETTINGS else None


# Rows ------------------------------------------------------------------------------------------


def cases_of(study: Study) -> list[dict[str, Any]]:
    mazes = study.seeds or study.experiment.file.seeds
    workers = study.workers if isinstance(study.workers, int) else 1
    return results(case_names(mazes), RUNS / "unseen", workers, study.say)


def outcome_rows(study: Study) -> Found:
    cases = cases_of(study)
    games = [game for case in cases for game in case["games"]]
    rows = [row for world in WORLDS for row in world_rows(world, of_world(cases, world))]
    return Found(
        rows,
        {
            **{world: len(of_world(cases, world)) for world in WORLDS},
            "games": 2 * len(games),  # with K tasks, and with the K-th alone
            "most_iterations": max(game["iterations"] for game in games),
        },
    )


def map_rows(study: Study) -> Found:
    return Found(maps(cases_of(study)))


def of_world(cases: Sequence[dict[str, Any]], world: str) -> list[dict[str, Any]]:
    return [case for case in cases if case["name"].startswith(f"{world}-")]


def all_K(cases: Sequence[dict[str, Any]]) -> list[int]:
    return sorted({game["K"] for case in cases for game in case["games"]})


def maps(cases: Sequence[dict[str, Any]]) -> Rows:
    """The multi-task map after K tasks, on the mean of the cases, in cells."""
    names, rows = ("forbidden", "unvisited", "missed_walls", "false_walls"), []
    for world in WORLDS:
        for K in all_K(of_world(cases, world)):
            games = [g for c in of_world(cases, world) for g in c["games"] if g["K"] == K]
            same = sum(game["forbidden"] == game["unvisited"] for game in games)
            means = {name: float(np.mean([game[name] for game in games])) for name in names}
            row = {"world": world, "K": K, "cases": len(games), "same_as_unvisited": same}
            rows.append({**row, **means})
    return rows


def world_rows(world: str, cases: Sequence[dict[str, Any]]) -> Rows:
    rows = []
    for kind in (NEW_GOAL, NEW_START):
        for K in all_K(cases):
            for method in (*METHODS, KNOWN_FIRST):
                parts = [chosen(case["rows"], kind, K, method) for case in cases]
                if any(part["tasks"] for both in parts for part in both):
                    names = {"world": world, "kind": kind, "K": K, "method": method}
                    rows.append({**names, **pooled(parts)})
    return rows


def chosen(rows: Rows, kind: str, K: int, method: str) -> Rows:
    """One case's two rows of a method: the tasks called covered, and the others."""
    source = {True: method, False: method}
    if method == KNOWN_FIRST:
        source = {True: "unvisited", False: "multi-task"}
    of = [row for row in rows if row["kind"] == kind and row["K"] == K]
    return [row for row in of if row["method"] == source[row["covered"]]]


def pooled(parts: Sequence[Rows]) -> Row:
    """Counts over all tasks of all cases, their intervals, and the spread over the cases."""
    counts = [outcomes(both) for both in parts]
    total = {name: sum(c[name] for c in counts) for name in ("tasks", *OUTCOMES)}
    violating = sum(c["unsafe"] > 0 for c in counts)
    everything = [row for both in parts for row in both]
    row: Row = dict(total)
    for name in OUTCOMES:
        row[f"{name}_share"] = total[name] / total["tasks"]
        row[f"{name}_low"], row[f"{name}_high"] = binomial_interval(total[name], total["tasks"])
        spread = np.quantile([c[name] / c["tasks"] for c in counts], QUANTILES)
        row |= {f"{name}_q{100 * q:.0f}": float(v) for q, v in zip(QUANTILES, spread, strict=True)}
    row["violating_cases"] = violating
    row["violating_low"], row["violating_high"] = binomial_interval(violating, len(parts))
    row["true_cost"] = sum(r["true_cost"] for r in everything) / total["tasks"]
    more = sum(r["more_moves"] for r in everything)
    row["more_moves"] = more / total["safe"] if total["safe"] else None
    for name, called in (("covered", True), ("uncovered", False)):
        part = outcomes([r for r in everything if r["covered"] == called])
        row |= {f"{name}_{key}": value for key, value in part.items()}
    return row


def outcomes(rows: Rows) -> dict[str, int]:
    tasks, safe, unsafe = (sum(r[name] for r in rows) for name in ("tasks", "safe", "unsafe"))
    return {"tasks": tasks, "safe": safe, "unsafe": unsafe, "declined": tasks - safe - unsafe}


def theory_rows(study: Study) -> Found:
    """The multi-task lemma for tables over the cells: tasks for an accuracy, and accuracy of K.

    In units of T: a cost in [0, 1] gives a payoff of range w = 2 T.
    """
    size, w = 2 ** (SIDE * SIDE), 2.0
    rows: Rows = [
        {"asked": "tasks", "epsilon": e, "K": theory.tasks_needed(e, CONFIDENCE, size, w)}
        for e in EPSILONS
    ]
    for K in (1, MOST_TASKS):
        epsilon = theory.epsilon_for(K, CONFIDENCE, size, w)
        vacuous = theory.vacuous(epsilon, w)
        rows.append({"asked": "epsilon", "epsilon": epsilon, "K": K, "vacuous": vacuous})
    facts = {
        "confidence": CONFIDENCE,
        "class_bits": SIDE * SIDE,
        "most_tasks": MOST_TASKS,
        "epsilon": rows[-1]["epsilon"],
        "not_vacuous_from": theory.tasks_needed(w, CONFIDENCE, size, w),
    }
    return Found(rows, facts)
