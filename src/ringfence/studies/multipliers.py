"""`ringfence reproduce multipliers`: the PID multiplier against classical gradient ascent.

The velocity expert under both, same seeds, same budget. The PID's trainings are those of
`reproduce experts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from ringfence.objects import Array
from ringfence.report.training import Course, Panel, comparison_figure
from ringfence.runs.files import write_file, write_json
from ringfence.studies.experts import Study
from ringfence.studies.tables import markdown
from ringfence.studies.trainings import (
    SIMULATOR,
    SMOOTH,
    Expert,
    Say,
    Training,
    mean_and_error,
    runs_folder,
    settings,
    smooth,
    trained,
)

METHODS: dict[str, Literal["pid", "gradient"]] = {"PID": "pid", "classical": "gradient"}
COLUMNS = (
    ("highest", ".0f"),
    ("excess", ".1f"),
    ("reached", ".0%"),
    ("overshoot", ".1f"),
    ("oscillation", ".2f"),
    ("share above", ".0%"),
    ("cost", ".1f"),
    ("reward", ".0f"),
    ("speed", ".3f"),
)


def reproduce(study: Study, out: Path, command: str, say: Say) -> None:
    """Train the first expert under both multipliers; write figure, table and numbers."""
    expert = study.experts[0]
    done: dict[str, list[Training]] = {
        name: [one(study, expert, name, seed, say) for seed in range(study.seeds)]
        for name in METHODS
    }
    out.mkdir(parents=True, exist_ok=True)
    rows = {
        name: [behaviour(t, expert.delta) for t in trainings] for name, trainings in done.items()
    }
    write_json(out / "results.json", {"command": command, "rows": rows})
    write_file(out / "table.md", page(study, expert, rows, command).encode())
    courses = {name: [course(t) for t in trainings] for name, trainings in done.items()}
    panels = [
        Panel("cost", "cost of an episode", limit=expert.delta),
        Panel("lam", "multiplier"),
    ]
    comparison_figure(courses, panels, out / "multipliers.png")


def one(study: Study, expert: Expert, method: str, seed: int, say: Say) -> Training:
    kind = METHODS[method]
    say(f"{expert.name}, {method} multiplier, seed {seed}")
    if kind == study.ppo.multiplier:  # as `reproduce experts` trains it
        run, note = study.run(expert, seed), ""
    else:
        run = runs_folder(study.world) / f"{expert.name}-{kind}-seed-{seed}"
        note = f" --multiplier {kind}"
    ppo = replace(expert.ppo(study.world, study.ppo), multiplier=kind)
    return trained(run, settings(study.world, expert, seed, ppo, note), say)


def course(training: Training) -> Course:
    columns = {"cost": smooth(training.curves["cost"]), "lam": training.curves["lam"]}
    return Course(training.curves["env_steps"], columns)


def behaviour(training: Training, limit: float) -> dict[str, float | None]:
    """How the cost went, and what the last policy does."""
    stochastic = training.summary["stochastic"]
    return {
        **course_figures(training.curves["cost"], limit),
        "cost": stochastic["true_cost"],
        "reward": stochastic["reward"],
        "speed": stochastic["speed"],
    }


def course_figures(cost: Array, limit: float) -> dict[str, float | None]:
    """Of an episode's cost [updates], smoothed, against its limit.

    highest: its highest value; excess: what it was above the limit on the mean of all updates,
    unsmoothed; reached: the share of the training after which it first crosses the limit, from
    whichever side it began on; overshoot: its highest excess from then on; both None if it never
    does.
    oscillation: its standard deviation in the last half; share above: of all updates, unsmoothed.
    """
    level = smooth(cost)
    above = level > limit
    crossed = np.flatnonzero(above != above[0])
    first = int(crossed[0]) if len(crossed) else None
    return {
        "highest": float(level.max()),
        "excess": float(np.maximum(cost - limit, 0.0).mean()),
        "reached": None if first is None else (first + 1) / len(level),
        "overshoot": None if first is None else max(0.0, float((level[first:] - limit).max())),
        "oscillation": float(level[len(level) // 2 :].std()),
        "share above": float((cost > limit).mean()),
    }


def cell(values: Sequence[float | None], form: str) -> str:
    """Mean and error over the seeds that have the figure."""
    known = [value for value in values if value is not None]
    if not known:
        return "never"
    return mean_and_error(known, form) + ("" if len(known) == len(values) else " (not in all)")


def page(
    study: Study, expert: Expert, rows: Mapping[str, list[dict[str, float | None]]], command: str
) -> str:
    lines = []
    for name, of in rows.items():
        for seed, row in enumerate(of):
            lines.append([name, str(seed), *[cell([row[c]], form) for c, form in COLUMNS]])
        means = [cell([row[c] for row in of], form) for c, form in COLUMNS]
        lines.append([f"**{name}**", "mean", *means])
    ppo = study.ppo
    return (
        "\n\n".join(
            [
                f"# PID against the classical multiplier ({SIMULATOR[study.world]})",
                f"Made by `{command}`: `{expert.constraint}` with limit {expert.delta:g}, "
                f"{expert.env_steps:,} steps. PID gains {ppo.gain_p:g}, {ppo.gain_i:g}, "
                f"{ppo.gain_d:g}; the classical one climbs {ppo.gradient_rate:g} per unit of cost "
                f"and update. Both aim at {(1 - ppo.margin) * expert.delta:g}.",
                f"The cost is that of the training's rollouts, smoothed over {SMOOTH} updates. "
                "Highest: its highest value. Excess: what it was above the limit, mean of all "
                "updates, unsmoothed. Reached: the share of the training after which it first "
                "crosses the limit, from whichever side it began on. Overshoot: its highest excess "
                "over the limit from then on. Oscillation: its standard deviation in the last "
                "half. Share above: of all updates, unsmoothed. Cost, reward and speed are the "
                "last stochastic policy's.",
                markdown(["multiplier", "seed", *[name for name, _ in COLUMNS]], lines),
                "![cost and multiplier over steps](multipliers.png)",
            ]
        )
        + "\n"
    )
