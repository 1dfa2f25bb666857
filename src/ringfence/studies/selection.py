"""`ringfence reproduce selection`: which iterate to take, over all single-task games of results/.

Nothing is trained: the games' summaries are read. A choice is judged by its learner's reward as
a share of the experts', its true cost less the experts', and whether it is good (icl_tables).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.errors import InvalidInput
from ringfence.runs.files import write_file, write_json
from ringfence.studies import icl_tables
from ringfence.studies.tables import markdown
from ringfence.studies.trainings import mean_and_error

CHOICES = {**icl_tables.CHOICES, "random": "a random one"}


@dataclass(frozen=True)
class Judged:
    """A choice in one game; for a random one these are means over the iterations."""

    reward: float  # share of the experts'
    cost: float  # true cost of an episode less the experts'
    good: float  # 1 or 0


#: A game: every choice's name -> what it is worth.
Game = dict[str, Judged]


def reproduce(out: Path, command: str) -> None:
    """table.md and summary.json, from the folders beside `out`."""
    found = games(out.parent) if out.parent.is_dir() else {}
    if not found:
        raise InvalidInput(
            f"{out.parent}: no folder in it has a finished single-task game (seed-0.json); "
            "run 'ringfence reproduce velocity' first"
        )
    judged = {name: [judge(s) for s in summaries] for name, summaries in found.items()}
    total = {choice: asdict(m) for choice, m in means(_all(judged)).items()}
    out.mkdir(parents=True, exist_ok=True)
    write_file(out / "table.md", table(judged, command).encode())
    write_json(out / "summary.json", {"command": command, "choices": total})


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


def judge(summary: dict[str, Any]) -> Game:
    """Every choice of one game."""
    each = [_judged(row) for row in summary["iterations"]]
    picked = {name: summary["choices"][name]["i"] for name in CHOICES}
    return {name: mean(each) if i is None else each[i - 1] for name, i in picked.items()}


def _judged(row: dict[str, Any]) -> Judged:
    return Judged(
        row["learner_reward_mean"] / row["expert_reward_mean"],
        row["learner_true_cost_mean"] - row["expert_true_cost_mean"],
        float(icl_tables.is_good(row)),
    )


def mean(judged: Sequence[Judged]) -> Judged:
    return Judged(*map(float, np.mean([astuple(j) for j in judged], axis=0)))


def means(games: Sequence[Game]) -> Game:
    """Each choice over these games, all with the same weight."""
    return {name: mean([game[name] for game in games]) for name in CHOICES}


def _all(judged: dict[str, list[Game]]) -> list[Game]:
    return [game for games in judged.values() for game in games]


def table(judged: dict[str, list[Game]], command: str) -> str:
    everything = _all(judged)
    total = means(everything)
    lost = total["truth"].reward - total["selected"].reward
    more = total["selected"].cost - total["truth"].cost
    overall = [[words, *_line([g[name] for g in everything])] for name, words in CHOICES.items()]
    each = [
        [folder, str(len(games)), *(_cell(m, len(games)) for m in means(games).values())]
        for folder, games in judged.items()
    ]
    parts = [
        "# Which iterate to take",
        f"Made by `{command}` from {len(everything)} games in {len(judged)} folders of `results/`. "
        "Reward: the learner's as a share of the experts'. Cost: its true cost of an episode less "
        "the experts'. Good: it earns at least the experts' reward less "
        f"{icl_tables.REWARD_ERRORS:g} standard errors at a true value per step at most theirs + "
        f"{icl_tables.RAW_PER_STEP:g}. Means over seeds with standard errors.",
        markdown(["chosen", "reward", "cost", "good seeds"], overall),
        f"Against the choice that knows the truth, selection on held-out demonstrations loses "
        f"{lost:.4f} of the experts' reward and costs {more:.1f} more.",
        "## Folder by folder: reward, cost, good seeds",
        markdown(["folder", "seeds", *CHOICES.values()], each),
    ]
    return "\n\n".join(parts) + "\n"


def _line(judged: Sequence[Judged]) -> list[str]:
    return [
        mean_and_error([j.reward for j in judged], ".3f"),
        mean_and_error([j.cost for j in judged], ".1f"),
        f"{sum(j.good for j in judged):.3g} of {len(judged)}",
    ]


def _cell(m: Judged, games: int) -> str:
    return f"{m.reward:.3f}, {m.cost:.1f}, {m.good * games:.2g}"
