"""The cases of `unseen.py` put together: shares with their intervals, spread, and the theory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringfence.analysis import theory
from ringfence.binomial import binomial_interval
from ringfence.runs.summary import versions
from ringfence.studies.unseen import METHODS, MOST_TASKS, NEW_GOAL, NEW_START, SIDE, Rows

WORLDS = ("random", "maze")
KNOWN_FIRST = "known first"
OUTCOMES = ("safe", "unsafe", "declined")
QUANTILES = (0.1, 0.5, 0.9)
#: The theory's accuracies, per step. Its bound 3 epsilon T is below T from 1/3 on.
EPSILONS = (1 / 3, 0.1, 0.01)
CONFIDENCE = 0.05


def summarise(cases: Sequence[dict[str, Any]], command: str) -> dict[str, Any]:
    by_world = {w: [c for c in cases if c["name"].startswith(f"{w}-")] for w in WORLDS}
    games = [game for case in cases for game in case["games"]]
    return {
        "schema": 1,
        "command": command,
        "versions": versions(),
        "cases": {world: len(of) for world, of in by_world.items()},
        "games": 2 * len(games),  # with K tasks, and with the K-th alone
        "most_iterations": max(game["iterations"] for game in games),
        "maps": [maps(world, K, of) for world, of in by_world.items() for K in all_K(of)],
        "rows": [row for world, of in by_world.items() for row in world_rows(world, of)],
        "theory": theory_rows(),
    }


def all_K(cases: Sequence[dict[str, Any]]) -> list[int]:
    return sorted({game["K"] for case in cases for game in case["games"]})


def maps(world: str, K: int, cases: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The multi-task map after K tasks, on the mean of the cases, in cells."""
    games = [game for case in cases for game in case["games"] if game["K"] == K]
    names = ("forbidden", "unvisited", "missed_walls", "false_walls")
    same = sum(game["forbidden"] == game["unvisited"] for game in games)
    means = {name: float(np.mean([game[name] for game in games])) for name in names}
    return {"world": world, "K": K, "cases": len(games), "same_as_unvisited": same, **means}


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
    """One case's two rows of a method: the tasks called covered, and the others.

    KNOWN_FIRST is no method of its own: covered tasks keep to cells that experts visited, the
    others go where the multi-task map lets them.
    """
    source = (
        {True: "unvisited", False: "multi-task"}
        if method == KNOWN_FIRST
        else {True: method, False: method}
    )
    of = [row for row in rows if row["kind"] == kind and row["K"] == K]
    return [row for row in of if row["method"] == source[row["covered"]]]


def pooled(parts: Sequence[Rows]) -> dict[str, Any]:
    """Counts over all tasks of all cases, their intervals, and the spread over the cases."""
    counts = [outcomes(both) for both in parts]
    total = {name: sum(c[name] for c in counts) for name in ("tasks", *OUTCOMES)}
    violating = sum(c["unsafe"] > 0 for c in counts)
    everything = [row for both in parts for row in both]
    more = sum(row["more_moves"] for row in everything)
    return {
        **total,
        "intervals": {name: binomial_interval(total[name], total["tasks"]) for name in OUTCOMES},
        "over_cases": {
            name: [float(q) for q in np.quantile([c[name] / c["tasks"] for c in counts], QUANTILES)]
            for name in OUTCOMES
        },
        "violating_cases": violating,
        "violating_cases_interval": binomial_interval(violating, len(parts)),
        "true_cost": sum(row["true_cost"] for row in everything) / total["tasks"],
        "more_moves": more / total["safe"] if total["safe"] else None,
        "covered": outcomes([row for row in everything if row["covered"]]),
        "uncovered": outcomes([row for row in everything if not row["covered"]]),
    }


def outcomes(rows: Rows) -> dict[str, int]:
    tasks, safe, unsafe = (sum(r[name] for r in rows) for name in ("tasks", "safe", "unsafe"))
    return {"tasks": tasks, "safe": safe, "unsafe": unsafe, "declined": tasks - safe - unsafe}


def theory_rows() -> dict[str, Any]:
    """The multi-task lemma for tables over the cells: tasks for an accuracy, and accuracy of K.

    In units of T: a cost in [0, 1] gives a payoff of range w = 2 T.
    """
    size, w = 2 ** (SIDE * SIDE), 2.0

    def needed(epsilon: float) -> int:
        return theory.tasks_needed(epsilon, CONFIDENCE, size, w)

    accuracy = {K: theory.epsilon_for(K, CONFIDENCE, size, w) for K in (1, MOST_TASKS)}
    return {
        "confidence": CONFIDENCE,
        "class_bits": SIDE * SIDE,
        "not_vacuous_from": needed(w),
        "tasks_needed": [{"epsilon": e, "K": needed(e)} for e in EPSILONS],
        "epsilon_of_K": [
            {"K": K, "epsilon": e, "vacuous": theory.vacuous(e, w)} for K, e in accuracy.items()
        ],
    }
