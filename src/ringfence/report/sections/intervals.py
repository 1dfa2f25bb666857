"""How far the demonstrations fix the parameters: their intervals, and the curve of budgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ringfence.objects import NotHere
from ringfence.report.draw.svg_plane import budgets
from ringfence.report.markup import Child, Markup, muted, number, table, tag, titled
from ringfence.report.read import Run, true_parameters
from ringfence.report.text import parameter_words

TITLE = "What the demonstrations leave open"


def section(run: Run) -> Markup | NotHere:
    if not run.rows:
        return NotHere(run.reason("interval"))
    interval, curve = run.summary["constraint"]["interval"], _curve(run)
    if interval is None and isinstance(curve, NotHere):
        reasons = {run.reason("interval"), curve.reason}
        return NotHere("; ".join(sorted(reasons)))
    return titled(
        TITLE,
        muted(f"No intervals: {run.reason('interval')}.") if interval is None else
        _intervals(run, interval),
        muted(f"No curve of budgets: {curve.reason}.") if isinstance(curve, NotHere) else curve,
        name="open",
    )  # fmt: skip


def _intervals(run: Run, interval: Mapping[str, Any]) -> list[Markup]:
    covered = interval.get("words") or "covers other demonstrations by the same demonstrators only"
    words = f"At {interval['level']:.0%}, by {interval['resamples']} resamplings: {covered}."
    if interval.get("unanswered"):
        words += f" {interval['unanswered']} of them had no answer."
    true = true_parameters(run.summary)
    rows: list[list[Child]] = [
        [
            parameter_words(name),
            *(number(v, 4) for v in (value, *interval["parameters"].get(name, (None, None)))),
            *([number(true.get(name), 4)] if true else []),
        ]
        for name, value in run.best["constraint"]["parameters"].items()
    ]
    head = ["parameter", "learned", "from", "to", *(["truth"] if true else [])]
    return [tag("p", words), table(head, rows)]


def _curve(run: Run) -> Markup | NotHere:
    if not run.summary["budget_curve"] or len(run.best["constraint"]["parameters"]) != 1:
        return NotHere(run.reason("budget_curve"))
    words = (
        "Demonstrators who were allowed some cost per episode, and used it up, look the same "
        "under a stricter constraint with a larger budget and under a looser one with a smaller. "
        "Every pair on this curve agrees with the demonstrations; only a known budget picks one. "
        "The violet line is what was learned"
    )
    words += "." if run.truth is None else ", the dotted one the truth."
    drawing = tag("figure", budgets(run), class_="card", style="max-width:660px")
    return tag("div", tag("p", words), drawing)
