"""One page over several seeds of the same experiment: mean and standard error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.errors import InvalidInput
from ringfence.report.charts import mean_se
from ringfence.report.draw.svg_cells import share_map
from ringfence.report.facts import rule
from ringfence.report.markup import (
    Child,
    Markup,
    document,
    muted,
    number,
    table,
    tag,
    tiles,
    titled,
)
from ringfence.report.read import Run, read_config, read_document, require_finished
from ringfence.report.sections.iterations import charts, columns, values_of
from ringfence.report.text import plural, plus_minus, versions_line

#: What may differ: the seed, the words of the command, and demonstrations that a seed made.
APART = ("seed", "command", "[demos] content_hash")


# One experiment? Means over anything else would mean nothing. -------------------------------------


def require_one_experiment(runs: Sequence[Path]) -> None:
    """Refuse runs that differ in more than their seeds, and a seed that is there twice."""
    if not runs:
        raise InvalidInput("a report over several runs needs at least one run")
    for run in runs:
        require_finished(run)
    first, experiment, outcome = runs[0], _experiment(runs[0]), _outcome(runs[0])
    for run in runs[1:]:
        other = _experiment(run)
        for name in {**experiment, **other}:
            if experiment.get(name) != other.get(name):
                raise InvalidInput(
                    f"{first} and {run} are not of one experiment: {name} differs; "
                    "report them apart"
                )
        if _outcome(run) != outcome:
            raise InvalidInput(
                f"{first} ended with {outcome!r}, {run} with {_outcome(run)!r}; report them apart"
            )
    seen: dict[object, Path] = {}
    for run in runs:
        seed = read_config(run).get("seed", 0)
        if seed in seen:
            raise InvalidInput(
                f"{seen[seed]} and {run} have the same seed, {seed}; give each seed once"
            )
        seen[seed] = run


def _experiment(run: Path) -> dict[str, Any]:
    """All that determines the result but the seed, entry by entry, and the tasks."""
    found: dict[str, Any] = {}
    for name, value in read_config(run).items():
        if isinstance(value, dict):
            found |= {f"[{name}] {key}": entry for key, entry in value.items()}
        else:
            found[name] = value
    found["tasks"] = read_document(run / "summary.json").get("tasks")
    return {name: value for name, value in found.items() if name not in APART}


def _outcome(run: Path) -> str:
    return str(read_document(run / "summary.json").get("outcome", "constraint"))


# The page ----------------------------------------------------------------------------------------


def render(runs: Sequence[Run]) -> str:
    """The page of several runs that differ in nothing but seed and demonstrations."""
    if not runs[0].rows:
        raise InvalidInput("none of these runs learned a constraint: there is nothing to compare")
    s, over = runs[0].summary, plural(len(runs), "seed")
    names = [s["world"], s["method"], s["player"], over]
    head = tag(
        "header",
        tag("p", "Ringfence \u00b7 " + " \u00b7 ".join(names), class_="eyebrow"),
        tag("h1", _headline(runs)),
        tag("p", _lede(runs), class_="lede"),
        tiles(_figures(runs)),
    )
    drawn = charts(runs, max(len(run.rows) for run in runs))
    even = "charts" if len(drawn) % 3 == 0 else "charts even"
    body = [
        head,
        titled("Iteration by iteration", _note(runs), tag("div", drawn, class_=even),
                name="iterations"),
        titled("Seed by seed", _seed_table(runs), name="seeds"),
        _map(runs),
        tag("footer", f"Written with {versions_line(s['versions'])}."),
    ]  # fmt: skip
    return document(f"{s['world']}: {s['method']} over {over}", body)


def _best(runs: Sequence[Run], column: str) -> str:
    """A column of the selected iterations: mean and standard error."""
    return plus_minus(*mean_se([values_of(run, column)[run.selected - 1] for run in runs]))


def _knows(runs: Sequence[Run], column: str) -> bool:
    return all(values_of(run, column)[run.selected - 1] is not None for run in runs)


def _headline(runs: Sequence[Run]) -> str:
    over = f"Over {plural(len(runs), 'seed')}"
    if _knows(runs, "constraint.iou"):
        iou = _best(runs, "constraint.iou")
        return f"{over} the learned constraint overlaps the truth with IoU {iou}"
    if len(runs[0].best["constraint"]["parameters"]) == 1:
        found = [next(iter(run.best["constraint"]["parameters"].values())) for run in runs]
        return f"{over} {runs[0].summary['class']} is learned as {plus_minus(*mean_se(found))}"
    reward = _best(runs, "learner_reward_mean")
    return f"{over} the learners earn {reward} an episode under the learned constraint"


def _lede(runs: Sequence[Run]) -> str:
    reward, expert = (_best(runs, f"{who}_reward_mean") for who in ("learner", "expert"))
    said = f"Under the selected constraints learners earn {reward} an episode, experts {expert}."
    if not _knows(runs, "learner_true_cost_mean"):
        return (
            f"{said} Nobody told these runs the true constraint: nothing can be compared with it."
        )
    cost, theirs = (_best(runs, f"{who}_true_cost_mean") for who in ("learner", "expert"))
    if runs[0].walls is None:
        return f"{said} Their true cost is {cost}, the experts' {theirs}."
    return f"{said} They spend {cost} steps in truly forbidden cells, experts {theirs}."


def _figures(runs: Sequence[Run]) -> list[tuple[str, str]]:
    raw = "true raw value" if runs[0].walls is None else "steps in walls"
    wanted = {
        "learner_reward_mean": f"reward, experts {_best(runs, 'expert_reward_mean')}",
        "learner_true_raw_mean": f"{raw}, experts {_best(runs, 'expert_true_raw_mean')}",
        "constraint.iou": "overlap with the true walls (IoU)",
        "constraint_error": "error against the truth",
    }
    if _knows(runs, "constraint.iou"):
        del wanted["constraint_error"]
    items = [(_best(runs, name), words) for name, words in wanted.items() if _knows(runs, name)]
    lengths = [len(run.rows) for run in runs]
    low, high = min(lengths), max(lengths)
    spread = f"{low}" if low == high else f"{low}\u2013{high}"
    return [*items, (spread, "iterations until the game ended")]


def _note(runs: Sequence[Run]) -> Markup:
    text = "Lines are means over seeds, bands one standard error, thin lines single seeds."
    if len({len(run.rows) for run in runs}) > 1:
        text += " A run that ended early keeps its last value."
    return muted(text)


def _seed_table(runs: Sequence[Run]) -> Markup:
    shown = columns(runs[0])
    rows: list[list[Child]] = [
        [run.summary["seed"], rule(run), len(run.rows), run.selected,
         *(number(values_of(run, name)[run.selected - 1], 4) for _, name in shown)]
        for run in runs
    ]  # fmt: skip
    rows.append(["mean \u00b1 se", "", "", "", *(_best(runs, name) for _, name in shown)])
    head = ["seed", "constraint", "iterations", "selected", *(title for title, _ in shown)]
    return table(head, rows, text=(1,))


def _map(runs: Sequence[Run]) -> Markup | None:
    cells = runs[0].cells
    if cells is None:
        return None
    share = np.mean([run.chosen.forbidden for run in runs], axis=0)
    always, never = int((share == 1).sum()), int((share == 0).sum())
    words = (
        f"All {plural(len(runs), 'seed')} forbid {plural(always, 'cell')} and allow {never}; "
        f"they differ on {share.size - always - never}, where the map has the percentage of seeds "
        "that forbid the cell."
    )
    if cells.walls is not None:
        words += " The thick line is the truth."
    drawing = share_map(cells.shape, share, cells.walls)
    card = tag("div", drawing, class_="card", style="max-width:640px")
    return titled("Where the seeds agree", tag("p", words), card, name="agreement")
