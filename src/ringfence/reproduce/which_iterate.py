"""Which iterate to take, over all single-task games of results/: nothing is played.

A choice is judged by its learner's reward as a share of the experts', its true cost less the
experts', and whether it is good (`iterates.py`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ringfence.errors import InvalidInput
from ringfence.reproduce.iterates import CHOICES, as_safe_by_cost, as_safe_by_raw, good
from ringfence.reproduce.rows import Found, Row, Rows, mean_of
from ringfence.reproduce.study import Study, Summary, read_summaries

ALL = "all"
KEYS = ("reward", "cost", "good_raw", "good_cost")


def chosen_iterates(study: Study) -> Found:
    """Every choice over all games, and folder by folder of the results beside this experiment's."""
    results = study.out.parent
    games = single_task_games(results) if results.is_dir() else {}
    if not games:
        raise InvalidInput(
            f"{results}: no folder in it has a finished single-task game (seed-0.json); run "
            "'ringfence reproduce velocity' first"
        )
    judged = {folder: [judge(s) for s in summaries] for folder, summaries in games.items()}
    everything = [game for of in judged.values() for game in of]
    rows: Rows = [
        {
            "of": "everything" if folder == ALL else "folder",
            "folder": folder,
            "games": len(of),
            "chosen": CHOICES[choice],
            **totals(of, choice),
        }
        for folder, of in {ALL: everything, **judged}.items()
        for choice in CHOICES
    ]
    by_choice = dict(zip(CHOICES, rows, strict=False))
    facts = {
        "games": len(everything),
        "folders": len(judged),
        "lost": by_choice["truth"]["reward"] - by_choice["selected"]["reward"],
        "more": by_choice["selected"]["cost"] - by_choice["truth"]["cost"],
    }
    return Found(rows, facts)


def single_task_games(results: Path) -> dict[str, list[Summary]]:
    """experiment/variant -> the seeds that learned a constraint where the truth is known."""
    found = {}
    for folder in sorted({p.parent for p in results.glob("*/*/seed-*.json")}):
        games = [s for s in read_summaries(folder).values() if is_judged(s)]
        if games:
            found[f"{folder.parent.name}/{folder.name}"] = games
    return found


def is_judged(summary: Summary) -> bool:
    return (
        summary.get("method") == "icl"
        and bool(summary["iterations"])
        and bool(summary["choices"])
        and summary["choices"]["truth"] is not None
    )


def judge(summary: Summary) -> dict[str, Row]:
    """Every choice of one game; for a random one, means over the iterations."""
    each = [judged_row(row) for row in summary["iterations"]]
    mean = {key: float(np.mean([row[key] for row in each])) for key in KEYS}
    picked = {name: summary["choices"][name]["i"] for name in CHOICES}
    return {name: mean if i is None else each[i - 1] for name, i in picked.items()}


def judged_row(row: Row) -> Row:
    return {
        "reward": row["learner_reward_mean"] / row["expert_reward_mean"],
        "cost": row["learner_true_cost_mean"] - row["expert_true_cost_mean"],
        "good_raw": float(bool(good(row, as_safe_by_raw))),
        "good_cost": float(bool(good(row, as_safe_by_cost))),
    }


def totals(games: list[dict[str, Row]], choice: str) -> Row:
    """Means over these games, all with the same weight, and how many are good."""
    rows = [game[choice] for game in games]
    sums = {key: float(sum(row[key] for row in rows)) for key in KEYS if key.startswith("good")}
    return {**mean_of(rows), **sums}
