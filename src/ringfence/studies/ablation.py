"""`ringfence reproduce ablation`: what each part of the method is worth.

The velocity game as it is, and again with one part taken away or exchanged: the same experts,
demonstrations, seeds and steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ringfence.runs.files import write_file, write_json
from ringfence.studies import icl
from ringfence.studies.icl_tables import NOT_RUN, RAW_PER_STEP, REWARD_ERRORS, is_good
from ringfence.studies.tables import markdown
from ringfence.studies.trainings import SIMULATOR, mean_and_error

#: What is other than in the game as it is, in words, and as fields of its study.
PARTS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "the policy does not see the constraint's value": {"own": {"augment": False}},
    "gradient ascent in place of the PID": {"own": {"multiplier": "gradient"}},
    "no buffer on the limit": {"buffer": 0.0},
    "no clone: the first solve begins at nothing, c_1 answers to a free learner": {"cloned": False},
    "every solve begins at the clone, with the last critics": {"carry": "critics"},
    "learners weighted by their multipliers": {"player": "weighted"},
    "payoff in place of the regression": {"player": "payoff"},
}
COLUMNS = (
    ("\\|c* - c\\|", ".4f"),
    ("reward above the experts'", ".1f"),
    ("true cost above the experts'", ".1f"),
)

#: A game by what its table shows: iterate -> figure -> value.
Game = dict[str, dict[str, float]]
#: What was played: part -> seed -> game.
Played = dict[str, dict[int, Game]]


def reproduce(study: icl.Study, out: Path, command: str, say: Callable[[str], None]) -> None:
    """Play every seed with and without each part; what is done is written after each game."""
    out.mkdir(parents=True, exist_ok=True)
    played: Played = {part: {} for part in PARTS}
    games = [(seed, part) for seed in range(study.seeds) for part in PARTS]
    # Finished ones first, so that the table of an interrupted study has all that was played.
    games.sort(key=lambda game: not _finished(replace(study, **PARTS[game[1]]), game[0]))
    for seed, part in games:
        say(f"other than usual: {part}; seed {seed}")
        summary, _ = icl.one(replace(study, **PARTS[part]), seed, say)
        played[part][seed] = figures(summary)
        write_json(out / "results.json", {"command": command, "games": played})
        write_file(out / "table.md", page(study, played, command).encode())


def _finished(study: icl.Study, seed: int) -> bool:
    return (study.run(seed) / "summary.json").is_file()


def figures(summary: Mapping[str, Any]) -> Game:
    """What a game came to by its selected iterate, by its last, and on the mean of all."""
    each = [row_figures(row) for row in summary["iterations"]]
    mean = {name: sum(row[name] for row in each) / len(each) for name in each[0]}
    return {"selected": each[summary["selected"] - 1], "last": each[-1], "mean": mean}


def row_figures(row: Mapping[str, Any]) -> dict[str, float]:
    values = (
        row["constraint_error"],
        row["learner_reward_mean"] - row["expert_reward_mean"],
        row["learner_true_cost_mean"] - row["expert_true_cost_mean"],
    )
    named = {name: value for (name, _), value in zip(COLUMNS, values, strict=True)}
    return {**named, "good": float(is_good(dict(row)))}


def page(study: icl.Study, played: Played, command: str) -> str:
    e = study.experiment
    parts = [
        f"# What each part is worth: {e.name} on the Ant ({SIMULATOR[study.world]})",
        f"Made by `{command}`. Class `{e.constraint}`, truth `{study.expert.constraint}`; "
        f"{e.iterations} iterations of {e.steps:,} steps, {study.seeds} seeds; experts, "
        "demonstrations and seeds are the same in every line. Means over seeds with standard "
        f"errors. Good: at least the experts' reward less {REWARD_ERRORS:g} standard errors, at a "
        f"true value per step at most theirs + {RAW_PER_STEP:g}.",
    ]
    for iterate, words in (
        ("selected", "The iterate selected on held-out demonstrations"),
        ("last", "The last iterate"),
        ("mean", "The mean over iterations, as a measure of the way there"),
    ):
        lines = [
            [part, *cells([game[iterate] for game in seeds.values()], study.seeds)]
            for part, seeds in played.items()
        ]
        head = ["what is other", *(name for name, _ in COLUMNS), "good"]
        parts += [f"## {words}", markdown(head, lines)]
    return "\n\n".join(parts) + "\n"


def cells(games: Sequence[Mapping[str, float]], seeds: int) -> list[str]:
    if not games:
        return [NOT_RUN] * (len(COLUMNS) + 1)
    means = [mean_and_error([g[name] for g in games], form) for name, form in COLUMNS]
    good = f"{sum(g['good'] for g in games):.3g} of {len(games)}"
    return [*means, good if len(games) == seeds else f"{good} ({seeds - len(games)} {NOT_RUN})"]
