"""`ringfence reproduce selection`: which iterate to take, over all single-task games of results/.

Nothing is trained: the games' summaries are read. A choice is judged by its learner's reward as
a share of the experts', its true cost less the experts', and whether it is good (icl_tables).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.errors import InvalidInput
from ringfence.runs.files import write_file, write_json
from ringfence.studies.icl_tables import is_good
from ringfence.studies.tables import markdown
from ringfence.studies.trainings import mean_and_error

#: A choice's name in a summary, and in words.
CHOICES = {
    "selected": "on held-out demonstrations",
    "last": "the last",
    "random": "a random one",
    "truth": "by the truth",
}


@dataclass(frozen=True)
class Judged:
    """A choice in one game; for a random one these are means over the iterations."""

    reward: float  # share of the experts'
    cost: float  # true cost of an episode less the experts'
    good: float  # 1 or 0


def reproduce(out: Path, command: str) -> None:
    """table.md and summary.json, from the folders beside `out`."""
    found = games(out.parent) if out.parent.is_dir() else {}
    if not found:
        raise InvalidInput(
            f"{out.parent}: no folder in it has a finished single-task game (seed-0.json); "
            "run 'ringfence reproduce velocity' first"
        )
    judged = {name: [judge(s) for s in summaries] for name, summaries in found.items()}
    out.mkdir(parents=True, exist_ok=True)
    write_file(out / "table.md", table(judged, command).encode())
    write_json(out / "summary.json", {"command": command, "choices": means(judged)})


def games(results: Path) -> dict[str, list[dict[str, Any]]]:
    """Folder -> summaries of its seeds that learned a constraint where the truth is known."""
    found = {}
    for folder in sorted(p for p in results.iterdir() if p.is_dir()):
        summaries = [json.loads(p.read_text()) for p in sorted(folder.glob("seed-*.json"))]
        usable = [s for s in summaries if _is_single_task(s) and s["choices"]["truth"] is not None]
        if usable:
            found[folder.name] = usable
    return found


def _is_single_task(summary: dict[str, Any]) -> bool:
    return summary.get("method") == "icl" and bool(summary["iterations"]) and "choices" in summary


def judge(summary: dict[str, Any]) -> dict[str, Judged]:
    """Every choice of one game."""
    each = [_judged(row) for row in summary["iterations"]]
    picked = {name: summary["choices"][name]["i"] for name in CHOICES}
    columns = np.array([(j.reward, j.cost, j.good) for j in each])
    random = Judged(*map(float, columns.mean(axis=0)))
    return {name: random if i is None else each[i - 1] for name, i in picked.items()}


def _judged(row: dict[str, Any]) -> Judged:
    return Judged(
        row["learner_reward_mean"] / row["expert_reward_mean"],
        row["learner_true_cost_mean"] - row["expert_true_cost_mean"],
        float(is_good(row)),
    )


def means(judged: dict[str, list[dict[str, Judged]]]) -> dict[str, dict[str, float]]:
    """Each choice over all games, every seed with the same weight."""
    seeds = [s for summaries in judged.values() for s in summaries]
    return {
        name: {
            "reward": float(np.mean([s[name].reward for s in seeds])),
            "cost": float(np.mean([s[name].cost for s in seeds])),
            "good": float(np.mean([s[name].good for s in seeds])),
        }
        for name in CHOICES
    }


def table(judged: dict[str, list[dict[str, Judged]]], command: str) -> str:
    seeds = [s for summaries in judged.values() for s in summaries]
    overall = [[words, *_line(seeds, name)] for name, words in CHOICES.items()]
    each = [
        [name, str(len(summaries)), *(_cell(summaries, choice) for choice in CHOICES)]
        for name, summaries in judged.items()
    ]
    total = means(judged)
    lost = total["truth"]["reward"] - total["selected"]["reward"]
    more = total["selected"]["cost"] - total["truth"]["cost"]
    parts = [
        "# Which iterate to take",
        f"Made by `{command}` from {len(seeds)} games in {len(judged)} folders of `results/`. "
        "Reward: the learner's as a share of the experts'. Cost: its true cost of an episode less "
        "the experts'. Good: it earns at least the experts' reward less 2 standard errors at a "
        "true value per step at most theirs + 0.02. Means over seeds with standard errors.",
        markdown(["chosen", "reward", "cost", "good seeds"], overall),
        f"Against the choice that knows the truth, selection on held-out demonstrations loses "
        f"{lost:.4f} of the experts' reward and costs {more:.1f} more.",
        "## Folder by folder: reward, cost, good seeds",
        markdown(["folder", "seeds", *CHOICES.values()], each),
    ]
    return "\n\n".join(parts) + "\n"


def _line(seeds: Sequence[dict[str, Judged]], name: str) -> list[str]:
    good = sum(s[name].good for s in seeds)
    return [
        mean_and_error([s[name].reward for s in seeds], ".3f"),
        mean_and_error([s[name].cost for s in seeds], ".1f"),
        f"{good:.3g} of {len(seeds)}",
    ]


def _cell(summaries: Sequence[dict[str, Judged]], name: str) -> str:
    reward, cost, good = np.mean(
        [(s[name].reward, s[name].cost, s[name].good) for s in summaries], axis=0
    )
    return f"{reward:.3f}, {cost:.1f}, {good * len(summaries):.2g}"
