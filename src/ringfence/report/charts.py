"""What is worth a chart per iteration, the same for every world: for the page and for pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringfence.report.draw.svg_chart import Values
from ringfence.report.read import Row, true_parameters
from ringfence.report.text import parameter_words

Summary = Mapping[str, Any]
MOST_PARAMETERS = 3  # have a chart each


@dataclass(frozen=True)
class Line:
    """`of`: a summary's values, one per iteration; `tasks`: the column that has them by task."""

    name: str
    kind: str
    of: Callable[[Summary], Values]
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


def charts_of(summary: Summary) -> list[Chart]:
    """Those in which something is known, of a game that was played."""
    walls = any(view.get("walls") for view in summary["views"])
    steps = "Steps per episode in truly forbidden cells. " if walls else ""
    keep = "Learners keep to the learned constraint, experts to the true one."
    only = "For reporting only: no learning step reads it."
    overlap = "Intersection over union of forbidden cells; 1 is the truth, cell for cell."
    bound = (
        "Mean violation of iterations 1..i, less the experts'. The theorem bounds it by the "
        "time-averaged regret times the episode's length."
    )
    regret = [
        Line("bound", "bound", column("bound"), dashed=True),
        Line("measured", "learner", lambda s: violation_gap(s["iterations"])),
    ]
    raw = [] if raw_is_cost(summary) else pair("true_raw")
    iou = [Line("IoU", "plain", column("constraint.iou"))]
    found = [
        *_parameter_charts(summary),
        Chart("Reward per episode", keep, pair("reward"), zero=False),
        Chart("True cost per episode", steps + only, pair("true_cost")),
        Chart("True raw value per episode", only, raw),
        Chart("Overlap with the true walls", overlap, iou, whole=True),
        Chart("Cost under the learned constraint", "Of the same iteration.", pair("cost")),
        Chart("Regret bound on the violation gap", bound, regret),
    ]
    return [chart for chart in found if chart.lines and known(chart.lines[0].of(summary))]


def column(name: str) -> Callable[[Summary], Values]:
    """A column of the iterations; `constraint.iou` is what a row's constraint has."""
    of, _, entry = name.partition(".")

    def values(summary: Summary) -> Values:
        return [row[of][entry] if entry else row[name] for row in summary["iterations"]]

    return values


def pair(name: str) -> list[Line]:
    return [
        Line(f"{who}s", who, column(f"{who}_{name}_mean"), f"{who}_{name}", who == "expert")
        for who in ("learner", "expert")
    ]


def _parameter_charts(summary: Summary) -> list[Chart]:
    names = list(summary["iterations"][0]["constraint"]["parameters"])
    true, found = true_parameters(summary), []
    for name in names if len(names) <= MOST_PARAMETERS else []:
        lines = [Line("learned", "bound", _parameter(name))]
        if name in true:
            lines.append(Line("truth", "plain", constant(true[name]), dashed=True))
        caption = "What the constraint player chose before each iteration."
        found.append(Chart(f"Learned {parameter_words(name)}", caption, lines, zero=False))
    return found


def _parameter(name: str) -> Callable[[Summary], Values]:
    return lambda s: [row["constraint"]["parameters"].get(name) for row in s["iterations"]]


def constant(value: float) -> Callable[[Summary], Values]:
    return lambda s: [value] * len(s["iterations"])


def known(values: Values) -> bool:
    return any(value is not None for value in values)


def raw_is_cost(summary: Summary) -> bool:
    """Where the raw value is 1 in a wall and 0 elsewhere, one of the two says it all."""
    raw, cost = pair("true_raw"), pair("true_cost")
    return all(a.of(summary) == b.of(summary) for a, b in zip(raw, cost, strict=True))


def violation_gap(rows: Sequence[Row]) -> list[float | None]:
    """Mean over iterations 1..i of the learners' true cost less the experts', for each i."""
    gaps: list[float] = []
    means: list[float | None] = []
    for row in rows:
        learner, expert = row["learner_true_cost_mean"], row["expert_true_cost_mean"]
        if learner is not None and expert is not None:
            gaps.append(learner - expert)
        means.append(float(np.mean(gaps)) if len(gaps) == row["i"] else None)
    return means


# Over several runs -------------------------------------------------------------------------------


def over_runs(
    summaries: Sequence[Summary], of: Callable[[Summary], Values]
) -> tuple[list[float | None], list[float | None]]:
    """Mean and standard error per iteration; a run that ended early keeps its last value."""
    lines = [list(of(summary)) for summary in summaries]
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
