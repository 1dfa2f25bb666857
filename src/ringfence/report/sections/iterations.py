"""How a game went: charts per iteration, the same for every world, and the numbers behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ringfence.objects import NotHere
from ringfence.report.draw.svg_chart import Series, Values, line_chart
from ringfence.report.markup import Child, Markup, folded, muted, number, table, tag, titled
from ringfence.report.read import Run, true_parameters, violation_gap
from ringfence.report.sections.headline import epsilon
from ringfence.report.text import figure_text, parameter_words

TITLE = "Iteration by iteration"
MOST_PARAMETERS = 3  # are drawn, one chart each
SHORT = 40  # letters: longer descriptions have a table of their own


def section(run: Run) -> Markup | NotHere:
    if not run.rows:
        return NotHere(run.reason("iterations"))
    note = (
        "Thick lines are means over tasks, thin lines single tasks. A click on a chart leads the "
        "drawing above to that iteration."
    )
    drawn = charts([run], run.selected)
    return titled(
        TITLE,
        muted(note),
        tag("div", drawn, class_="charts"),
        _table(run),
        folded("Each iteration's constraint in words", _descriptions(run)),
        folded(f"Tasks in the selected iteration ({run.selected})", _task_table(run)),
        name="iterations",
    )


# Charts ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """A line of a chart: `of` a run, one value per iteration; `tasks`: the column by task."""

    name: str
    kind: str
    of: Callable[[Run], Values]
    tasks: str = ""
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """floor: of a logarithmic axis; whole: it spans [0, 1]; zero: it holds 0."""

    title: str
    caption: str
    lines: Sequence[Line]
    floor: float | None = None
    whole: bool = False
    zero: bool = True


def charts(runs: Sequence[Run], now: int) -> list[Markup]:
    """Of one run with its tasks, or of several with their mean and standard error."""
    drawn = []
    for c in _charts(runs):
        series = [_series(line, runs) for line in c.lines]
        series = [s for s in series if any(v is not None for v in s.values)]
        if series:
            drawn.append(line_chart(c.title, c.caption, series, now, c.floor, c.whole, c.zero))
    return drawn


def _charts(runs: Sequence[Run]) -> list[Chart]:
    first = runs[0]
    steps = "Steps per episode in truly forbidden cells. " if first.walls is not None else ""
    keep = "Learners keep to the learned constraint, experts to the true one."
    only = "For reporting only: no learning step reads it."
    overlap = "Intersection over union of forbidden cells; 1 is the truth, cell for cell."
    return [
        *_parameter_charts(first),
        Chart("Reward per episode", keep, _pair("reward"), zero=False),
        Chart("True cost per episode", steps + only, _pair("true_cost")),
        Chart("True raw value per episode", only, [] if _raw_is_cost(first) else _pair("true_raw")),
        Chart("Overlap with the true walls", overlap,
              [Line("IoU", "plain", _column("constraint.iou"))], whole=True),
        Chart("Cost under the learned constraint", "Of the same iteration.", _pair("cost")),
        *_bound_chart(first),
        *_payoff_chart(runs),
    ]  # fmt: skip


def _column(name: str) -> Callable[[Run], Values]:
    return lambda run: run.column(name)


def _pair(column: str) -> list[Line]:
    return [
        Line(f"{who}s", who, _column(f"{who}_{column}_mean"), f"{who}_{column}", who == "expert")
        for who in ("learner", "expert")
    ]


def _parameter_charts(run: Run) -> list[Chart]:
    names, true = list(run.rows[0]["constraint"]["parameters"]), true_parameters(run.summary)
    found = []
    for name in names if len(names) <= MOST_PARAMETERS else []:
        lines = [Line("learned", "bound", _parameter(name))]
        if name in true:
            lines.append(Line("truth", "plain", _constant(true[name]), dashed=True))
        caption = "What the constraint player chose before each iteration."
        found.append(Chart(f"Learned {parameter_words(name)}", caption, lines, zero=False))
    return found


def _parameter(name: str) -> Callable[[Run], Values]:
    return lambda run: [row["constraint"]["parameters"].get(name) for row in run.rows]


def _constant(value: float) -> Callable[[Run], Values]:
    return lambda run: [value] * len(run.rows)


def _bound_chart(run: Run) -> list[Chart]:
    if not known(run, "bound"):
        return []
    lines = [
        Line("bound", "bound", _column("bound"), dashed=True),
        Line("measured", "learner", lambda run: violation_gap(run.rows)),
    ]
    caption = (
        "Mean violation of iterations 1..i, less the experts'. The theorem bounds it by the "
        "time-averaged regret times the episode's length."
    )
    return [Chart("Regret bound on the violation gap", caption, lines)]


def _payoff_chart(runs: Sequence[Run]) -> list[Chart]:
    found = [v for run in runs for v in run.column("best_payoff") if v is not None and v > 0]
    if not found:
        return []
    stop = epsilon(runs[0])
    lines = [Line("payoff", "learner", _column("best_payoff"))]
    caption = "Per step, logarithmic. A hollow mark stands for 0 or less than the axis shows."
    if stop > 0:
        lines.append(Line("stop", "bound", _constant(stop), dashed=True))
        caption += f" The game ends at or below {figure_text(stop)}."
    floor = stop / 10 if stop > 0 else 10.0 ** (math.floor(math.log10(min(found))) - 1)
    return [Chart("Best payoff left to the constraint player", caption, lines, floor=floor)]


def _series(line: Line, runs: Sequence[Run]) -> Series:
    """Of one run, with its tasks as thin lines; of several, their mean, with themselves."""
    values, error = over_runs(runs, line.of)
    if len(runs) > 1:
        each = [line.of(run) for run in runs]
        return Series(line.name, line.kind, values, line.dashed, each, error)
    by_task = [row[line.tasks] for row in runs[0].rows] if line.tasks else [None]
    alone = len(runs[0].tasks) == 1 or None in by_task
    thin = [] if alone else list(zip(*by_task, strict=True))
    return Series(line.name, line.kind, values, line.dashed, thin)


def over_runs(runs: Sequence[Run], of: Callable[[Run], Values]) -> tuple[Values, Values]:
    """Mean and standard error per iteration; a run that ended early keeps its last value."""
    lines = [list(of(run)) for run in runs]
    longest = max(map(len, lines))
    padded = [[*line, *[line[-1]] * (longest - len(line))] for line in lines]
    pairs = [mean_se(values) for values in zip(*padded, strict=True)]
    return [mean for mean, _ in pairs], [se for _, se in pairs]


def mean_se(values: Values) -> tuple[float | None, float | None]:
    """Mean and standard error; the latter needs two values, and all must be known."""
    found = [v for v in values if v is not None]
    if not found or len(found) != len(values):
        return None, None
    se = float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else None
    return float(np.mean(found)), se


def known(run: Run, column: str) -> bool:
    """Is anything known in a column?"""
    return any(value is not None for value in values_of(run, column))


def _raw_is_cost(run: Run) -> bool:
    """Where the raw value is 1 in a wall and 0 elsewhere, one of the two says it all."""
    return all(
        run.column(f"{who}_true_raw_mean") == run.column(f"{who}_true_cost_mean")
        for who in ("learner", "expert")
    )


# Tables ------------------------------------------------------------------------------------------

#: Title of a column, and where a row of the summary has it.
COLUMNS = (
    ("forbidden", "forbidden"),
    ("IoU", "constraint.iou"),
    ("error", "constraint_error"),
    ("learner reward", "learner_reward_mean"),
    ("expert reward", "expert_reward_mean"),
    ("learner cost", "learner_cost_mean"),
    ("expert cost", "expert_cost_mean"),
    ("limit", "delta_mean"),
    ("multiplier", "lam_mean"),
    ("learner true cost", "learner_true_cost_mean"),
    ("expert true cost", "expert_true_cost_mean"),
    ("learner true raw", "learner_true_raw_mean"),
    ("expert true raw", "expert_true_raw_mean"),
    ("mean gap", "gap"),
    ("bound", "bound"),
    ("best payoff", "best_payoff"),
    ("length", "learner_length_mean"),
    ("failed", "learner_failed_mean"),
    *((name, f"episodes.{name}") for name in ("arrived", "fell", "late")),
    ("env steps", "env_steps"),
)


def values_of(run: Run, column: str) -> list[float | None]:
    """A column of the table."""
    if column == "gap":
        return violation_gap(run.rows)
    if column == "forbidden":
        if run.maps:
            return [int(m.forbidden.sum()) for m in run.maps]
        return [None] * len(run.rows)
    if column.startswith("episodes."):
        found = [row.get("episodes") or {} for row in run.rows]
        return [counts.get(column.removeprefix("episodes.")) for counts in found]
    return run.column(column)


def columns(run: Run) -> list[tuple[str, str]]:
    """Those in which something is known that no other column says."""
    said = {"constraint_error"} if known(run, "constraint.iou") else set()
    if _raw_is_cost(run):
        said |= {"learner_true_raw_mean", "expert_true_raw_mean"}
    if not known(run, "bound"):
        said.add("gap")
    return [(title, name) for title, name in COLUMNS if name not in said and known(run, name)]


def _table(run: Run) -> Markup:
    shown = columns(run)
    words = [str(row["constraint"]["description"]) for row in run.rows]
    with_words = max(map(len, words)) <= SHORT
    by_column = [values_of(run, name) for _, name in shown]
    rows: list[list[Child]] = []
    attributes = []
    for n, row in enumerate(run.rows):
        chosen = row["i"] == run.selected
        name: list[Child] = [row["i"], tag("span", "selected", class_="pick") if chosen else None]
        text = [words[n]] if with_words else []
        rows.append([name, *text, *(number(values[n], 4) for values in by_column)])
        attributes.append({"data_row": row["i"], "class_": "current" if chosen else None})
    head = ["iteration", *(["constraint"] if with_words else []), *(title for title, _ in shown)]
    return table(head, rows, attributes, text=(1,) if with_words else ())


def _descriptions(run: Run) -> Markup:
    rows: list[list[Child]] = [[row["i"], row["constraint"]["description"]] for row in run.rows]
    return table(["iteration", "constraint"], rows, text=(1,))


def _task_table(run: Run) -> Markup:
    """The selected iteration, task by task."""
    per_task = {t: n.removesuffix("_mean") for t, n in columns(run) if n.endswith("_mean")}
    per_task = {t: name for t, name in per_task.items() if run.best[name] is not None}
    rows: list[list[Child]] = [
        [task, *(number(run.best[name][k], 4) for name in per_task.values()), len(run.experts[k])]
        for k, task in enumerate(run.tasks)
    ]
    return table(["task", *per_task, "demonstrations"], rows)
