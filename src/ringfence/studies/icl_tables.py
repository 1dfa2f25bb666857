"""Table and figures over the seeds of a single-task study, from its results folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringfence.report import control_figures
from ringfence.report.control_read import true_parameters
from ringfence.runs.files import write_file, write_json
from ringfence.studies.tables import markdown
from ringfence.studies.trainings import mean_and_error

NOT_RUN = "not run"
#: A seed is good that ends with at least the experts' reward less this many standard errors ..
REWARD_ERRORS = 2.0
#: .. and a true raw value per step at most this much above the experts'.
RAW_PER_STEP = 0.02
TIMES = "timing.json"

Summary = dict[str, Any]


@dataclass(frozen=True)
class Heading:
    """What a table says about itself."""

    title: str
    command: str
    truth: str
    constraint: str
    player: str
    demonstrations: str


def note_time(out: Path, seed: int, seconds: float) -> None:
    """Wall-clock seconds of a seed's game, beside the summaries."""
    path = out / TIMES
    known = json.loads(path.read_text()) if path.is_file() else {}
    write_json(path, {**known, f"seed-{seed}": seconds})


def read(out: Path, seeds: int) -> dict[int, Summary]:
    """The summaries that are there."""
    paths = {seed: out / f"seed-{seed}.json" for seed in range(seeds)}
    return {seed: json.loads(p.read_text()) for seed, p in paths.items() if p.is_file()}


def write(out: Path, seeds: int, heading: Heading, run: Callable[[int], Path]) -> None:
    """table.md and the figures, from what is there."""
    done = read(out, seeds)
    times = json.loads((out / TIMES).read_text()) if (out / TIMES).is_file() else {}
    write_file(out / "table.md", table(done, times, seeds, heading).encode())
    played = [s for s in done.values() if s["iterations"]]
    if played:
        control_figures.courses(played, out / "curves.png")
    seed = next((n for n, s in done.items() if s["iterations"] and run(n).is_dir()), None)
    if seed is not None and control_figures.is_planar(done[seed]):
        control_figures.paths(run(seed), out / "paths.png")


# The table -------------------------------------------------------------------------------------

COLUMNS = (
    ("\\|c* - c\\|", ".4f"),
    ("J(pi_E, r) - J(pi, r)", ".1f"),
    ("J(pi_E, c*) - J(pi, c*), raw", ".1f"),
    ("the same, activated", ".1f"),
    ("from experts' mean", ".4f"),
    ("from their 95th percentile", ".4f"),
)
#: Which row of a summary's iterations a line shows.
ITERATES: dict[str, Callable[[Summary], dict[str, Any]]] = {
    "first iteration": lambda s: s["iterations"][0],
    "last iteration": lambda s: s["iterations"][-1],
    "selected": lambda s: s["iterations"][s["selected"] - 1],
}


def figures(row: dict[str, Any]) -> list[float | None]:
    """A row of a summary as the table's columns."""
    return [
        row["constraint_error"],
        row["expert_reward_mean"] - row["learner_reward_mean"],
        _gap(row, "true_raw"),
        _gap(row, "true_cost"),
        row["constraint"].get("error_expert_mean"),
        row["constraint"].get("error_expert_p95"),
    ]


def _gap(row: dict[str, Any], name: str) -> float | None:
    expert, learner = row[f"expert_{name}_mean"], row[f"learner_{name}_mean"]
    return None if expert is None or learner is None else expert - learner


def table(done: dict[int, Summary], times: dict[str, float], seeds: int, h: Heading) -> str:
    lines = []
    for name, row in ITERATES.items():
        for seed in range(seeds):
            lines.append([name, str(seed), *_cells(done.get(seed), row)])
        lines.append([f"**{name}**", "mean", *_means(list(done.values()), row)])
    head = ["iterate", "seed", *(name for name, _ in COLUMNS)]
    parts = [
        f"# {h.title}",
        f"Made by `{h.command}`. Class `{h.constraint}`, player {h.player}; truth `{h.truth}`. "
        f"Demonstrations: {h.demonstrations}. Every seed counts; means are over the seeds that "
        f"were run ({len(done)} of {seeds}), with standard errors. Learners' figures are those "
        "of the stochastic policy. Positive reward gaps: the experts earn more; positive cost "
        "gaps: the experts violate more.",
        markdown(head, lines),
        *parameters(done),
        "## Which iterate to take",
        choices(done),
        "## Seeds",
        runs(done, times, seeds),
        good(done),
    ]
    return "\n\n".join(parts) + "\n"


def _cells(summary: Summary | None, row: Callable[[Summary], dict[str, Any]]) -> list[str]:
    if summary is None:
        return [NOT_RUN] * len(COLUMNS)
    if not summary["iterations"]:
        return [summary["outcome"]] * len(COLUMNS)
    values = figures(row(summary))
    return [text_of(v, form) for v, (_, form) in zip(values, COLUMNS, strict=True)]


def _means(summaries: Sequence[Summary], row: Callable[[Summary], dict[str, Any]]) -> list[str]:
    rows = [figures(row(s)) for s in summaries if s["iterations"]]
    return [
        mean_of([r[n] for r in rows], form) if rows else NOT_RUN
        for n, (_, form) in enumerate(COLUMNS)
    ]


def text_of(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def mean_of(values: Sequence[float | None], form: str) -> str:
    known = [v for v in values if v is not None]
    return mean_and_error(known, form) if len(known) == len(values) else "-"


def parameters(done: dict[int, Summary]) -> list[str]:
    """The learned parameters and the error of their mean: what the paper's table calls error.

    Errors of opposite sign cancel in it, so it may be far below the mean of the seeds' errors.
    Nothing where the class leaves the scale free: such parameters have no mean to compare.
    """
    played = [s for s in done.values() if s["iterations"]]
    truth = true_parameters(played[0]) if played else {}
    if not truth:
        return []
    lines = []
    for iterate, row in ITERATES.items():
        for name, true in truth.items():
            found = [row(s)["constraint"]["parameters"][name] for s in played]
            error = abs(sum(found) / len(found) - true)
            mean = mean_and_error(found, ".4f")
            lines.append([iterate, name, f"{true:g}", mean, f"{error:.4f}"])
    head = ["iterate", "parameter", "true", "mean over seeds", "error of the mean"]
    return ["## As the paper counts: the error of the mean over seeds", markdown(head, lines)]


#: A choice of an iterate: its name in a summary, and in words.
CHOICES = {
    "selected": "on held-out demonstrations",
    "last": "the last",
    "random": "a random one (mean over iterations)",
    "truth": "by the truth",
}


def choices(done: dict[int, Summary]) -> str:
    """Selection on held-out demonstrations beside the last, a random and the best iterate."""
    played = [s["choices"] for s in done.values() if s["iterations"]]
    if not played:
        return NOT_RUN
    lines = []
    for key, words in CHOICES.items():
        rows = [c[key] for c in played if c[key] is not None]
        if rows:
            lines.append(
                [
                    words,
                    mean_of([r["constraint_error"] for r in rows], ".4f"),
                    mean_of([r["learner_reward_mean"] for r in rows], ".1f"),
                    mean_of([r["learner_true_raw_mean"] for r in rows], ".1f"),
                    mean_of([r["learner_true_cost_mean"] for r in rows], ".1f"),
                ]
            )
    return markdown(["chosen", "\\|c* - c\\|", "reward", "true raw", "true cost"], lines)


def runs(done: dict[int, Summary], times: dict[str, float], seeds: int) -> str:
    lines = []
    for seed in range(seeds):
        s = done.get(seed)
        seconds = times.get(f"seed-{seed}")
        minutes = "-" if seconds is None else f"{seconds / 60:.1f}"
        if s is None or not s["iterations"]:
            lines.append([str(seed), NOT_RUN if s is None else s["outcome"], *["-"] * 5, minutes])
            continue
        last = s["iterations"][-1]
        lines.append(
            [
                str(seed),
                s["constraint"]["description"],
                _interval(s),
                f"{last['expert_reward_mean']:.0f} ± {last['expert_reward_se_mean']:.0f}",
                text_of(last["expert_true_raw_mean"], ".1f"),
                text_of(last["expert_true_cost_mean"], ".1f"),
                f"{s['env_steps']:,}",
                minutes,
            ]
        )
    head = ["seed", "selected constraint", "95% interval", "experts' reward", "their true raw"]
    return markdown([*head, "their true cost", "environment steps", "minutes"], lines)


def _interval(s: Summary) -> str:
    found = s["constraint"]["interval"]
    if found is None:
        return "-"
    return "; ".join(f"{k} {a:.4g} to {b:.4g}" for k, (a, b) in found["parameters"].items())


def is_good(row: dict[str, Any]) -> bool:
    """At least the experts' reward less two standard errors, and as safe as they per step."""
    enough = row["expert_reward_mean"] - REWARD_ERRORS * row["expert_reward_se_mean"]
    if row["learner_true_raw_mean"] is None or row["learner_reward_mean"] < enough:
        return False
    learner, expert = (
        row[f"{who}_true_raw_mean"] / row[f"{who}_length_mean"] for who in ("learner", "expert")
    )
    return bool(learner <= expert + RAW_PER_STEP)


def good(done: dict[int, Summary]) -> str:
    played = [s for s in done.values() if s["iterations"]]
    if not played:
        return NOT_RUN
    selected = sum(is_good(s["iterations"][s["selected"] - 1]) for s in played)
    last = sum(is_good(s["iterations"][-1]) for s in played)
    return (
        f"Seeds with reward at least the experts' less {REWARD_ERRORS:g} standard errors and a "
        f"true raw value per step at most theirs + {RAW_PER_STEP:g}: {selected} of {len(done)} by "
        f"the selected iterate, {last} of {len(done)} by the last."
    )
