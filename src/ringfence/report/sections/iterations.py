"""How a game went: charts per iteration, the same for every world, and the numbers behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ringfence.objects import NotHere
from ringfence.report.charts import (
    Chart,
    Line,
    Summary,
    charts_of,
    column,
    constant,
    known,
    over_runs,
    raw_is_cost,
    violation_gap,
)
from ringfence.report.draw.svg_chart import Series, Values, line_chart
from ringfence.report.markup import Child, Markup, folded, muted, number, table, tag, titled
from ringfence.report.read import Run
from ringfence.report.sections.headline import epsilon
from ringfence.report.text import figure_text

TITLE = "Iteration by iteration"
SHORT = 40  # letters: longer descriptions have a table of their own


def section(run: Run) -> Markup | NotHere:
    if not run.rows:
        return NotHere(run.reason("iterations"))
    note = (
        "Thick lines are means over tasks, thin lines single tasks. A click on a chart leads the "
        "drawing above to that iteration."
    )
    return titled(
        TITLE,
        muted(note),
        tag("div", charts([run], run.selected), class_="charts"),
        _table(run),
        folded("Each iteration's constraint in words", _descriptions(run)),
        folded(f"Tasks in the selected iteration ({run.selected})", _task_table(run)),
        name="iterations",
    )


# Charts ------------------------------------------------------------------------------------------


def charts(runs: Sequence[Run], now: int) -> list[Markup]:
    """Of one run with its tasks, or of several with their mean and standard error."""
    summaries = [run.summary for run in runs]
    drawn = []
    for c in (*charts_of(summaries[0]), *_payoff_chart(runs)):
        series = [_series(line, summaries) for line in c.lines]
        series = [s for s in series if known(s.values)]
        drawn.append(line_chart(c.title, c.caption, series, now, c.floor, c.whole, c.zero))
    return drawn


def _payoff_chart(runs: Sequence[Run]) -> list[Chart]:
    of = column("best_payoff")
    found = [v for run in runs for v in of(run.summary) if v is not None and v > 0]
    if not found:
        return []
    stop, lines = epsilon(runs[0]), [Line("payoff", "learner", of)]
    caption = "Per step, logarithmic. A hollow mark stands for 0 or less than the axis shows."
    if stop > 0:
        lines.append(Line("stop", "bound", constant(stop), dashed=True))
        caption += f" The game ends at or below {figure_text(stop)}."
    floor = stop / 10 if stop > 0 else 10.0 ** (math.floor(math.log10(min(found))) - 1)
    return [Chart("Best payoff left to the constraint player", caption, lines, floor=floor)]


def _series(line: Line, summaries: Sequence[Summary]) -> Series:
    """Of one run, with its tasks as thin lines; of several, their mean, with themselves."""
    values, error = over_runs(summaries, line.of)
    if len(summaries) > 1:
        each = [line.of(summary) for summary in summaries]
        return Series(line.name, line.kind, values, line.dashed, each, error)
    rows = summaries[0]["iterations"]
    by_task = [row[line.tasks] for row in rows] if line.tasks else [None]
    alone = len(summaries[0]["tasks"]) == 1 or None in by_task
    thin = [] if alone else list(zip(*by_task, strict=True))
    return Series(line.name, line.kind, values, line.dashed, thin)


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


def values_of(run: Run, name: str) -> Values:
    """A column of the table."""
    if name == "gap":
        return violation_gap(run.rows)
    if name == "forbidden":
        return [int(m.forbidden.sum()) for m in run.maps]
    if name.startswith("episodes."):
        found = [row["episodes"] or {} for row in run.rows]
        return [counts.get(name.removeprefix("episodes.")) for counts in found]
    return column(name)(run.summary)


def columns(run: Run) -> list[tuple[str, str]]:
    """Those in which something is known that no other column says."""
    said = {"constraint_error"} if known(values_of(run, "constraint.iou")) else set()
    if raw_is_cost(run.summary):
        said |= {"learner_true_raw_mean", "expert_true_raw_mean"}
    if not known(values_of(run, "bound")):
        said.add("gap")
    return [(t, name) for t, name in COLUMNS if name not in said and known(values_of(run, name))]


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
