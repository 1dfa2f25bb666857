"""One page over several seeds of the same experiment: mean and standard error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ringfence.report import svg
from ringfence.report.charts import Series, Values, line_chart
from ringfence.report.markup import Markup, number, tag
from ringfence.report.read import RunData, violation_gap
from ringfence.report.shell import document, plus_minus, section, table, tiles, versions_line
from ringfence.report.words import plural

Row = Mapping[str, Any]


def render(runs: Sequence[RunData]) -> str:
    """The page of several runs that differ in nothing but seed and demonstrations."""
    first, count = runs[0], len(runs)
    s = first.summary
    title = f"{s['world']}: {s['method']} over {plural(count, 'seed')}"
    eyebrow = f"Ringfence \u00b7 {s['world']} \u00b7 {s['method']} \u00b7 {plural(count, 'seed')}"
    body = [
        tag(
            "header",
            tag("p", eyebrow, class_="eyebrow"),
            tag("h1", _headline(runs)),
            tag("p", _lede(runs), class_="lede"),
            tiles(_figures(runs)),
        ),
        section("Iteration by iteration", _note(runs), _charts(runs), name="iterations"),
        section("Seed by seed", _seed_table(runs), name="seeds"),
        _map(runs),
        tag("footer", f"Written with {versions_line(s['versions'])}."),
    ]
    return document(title, body)


def mean_se(values: Values) -> tuple[float | None, float | None]:
    """Mean and standard error; the latter needs two values, and all must be known."""
    known = [v for v in values if v is not None]
    if not known or len(known) != len(values):
        return None, None
    se = float(np.std(known, ddof=1) / np.sqrt(len(known))) if len(known) > 1 else None
    return float(np.mean(known)), se


def over_seeds(runs: Sequence[RunData], column: Callable[[RunData], Values]) -> list[Values]:
    """A column per iteration: the runs' values; a run that ended early keeps its last one."""
    lines = [list(column(run)) for run in runs]
    longest = max(map(len, lines))
    padded = [line + [line[-1]] * (longest - len(line)) for line in lines]
    return [list(values) for values in zip(*padded, strict=True)]


def _column(name: str) -> Callable[[RunData], Values]:
    return lambda run: [row[name] for row in run.rows]


def _iou(run: RunData) -> Values:
    return [row["constraint"].get("iou") for row in run.rows]


def _best(runs: Sequence[RunData], name: str) -> tuple[float | None, float | None]:
    """A column of the selected iterations."""
    return mean_se([run.best[name] for run in runs])


def _best_iou(runs: Sequence[RunData]) -> tuple[float | None, float | None]:
    return mean_se([run.best["constraint"].get("iou") for run in runs])


# ----------------------------------------------------------------------------------- in words


def _headline(runs: Sequence[RunData]) -> str:
    over, iou = plural(len(runs), "seed"), _best_iou(runs)
    if iou[0] is not None:
        return f"Over {over} the learned constraint overlaps the truth with IoU {plus_minus(*iou)}"
    reward = plus_minus(*_best(runs, "learner_reward_mean"))
    return f"Over {over} the learners earn {reward} an episode under the learned constraint"


def _lede(runs: Sequence[RunData]) -> str:
    reward = plus_minus(*_best(runs, "learner_reward_mean"))
    expert = plus_minus(*_best(runs, "expert_reward_mean"))
    said = f"Under the selected constraints learners earn {reward} an episode, experts {expert}."
    if runs[0].walls is None:
        return f"{said} The map names no forbidden cell, so there is no truth to compare with."
    violation = plus_minus(*_best(runs, "learner_true_cost_mean"))
    theirs = plus_minus(*_best(runs, "expert_true_cost_mean"))
    return f"{said} They spend {violation} steps in truly forbidden cells, experts {theirs}."


def _figures(runs: Sequence[RunData]) -> list[tuple[str, str]]:
    items = [(plus_minus(*_best(runs, "learner_reward_mean")), "reward of the learners")]
    if runs[0].walls is not None:
        items.append((plus_minus(*_best(runs, "learner_true_cost_mean")), "steps in walls"))
    if _best_iou(runs)[0] is not None:
        items.append((plus_minus(*_best_iou(runs)), "overlap with the true walls (IoU)"))
    lengths = [len(run.rows) for run in runs]
    low, high = min(lengths), max(lengths)
    spread = f"{low}" if low == high else f"{low}\u2013{high}"
    return [*items, (spread, "iterations until the game ended")]


def _note(runs: Sequence[RunData]) -> Markup:
    text = "Lines are means over seeds, bands one standard error, thin lines single seeds."
    if len({len(run.rows) for run in runs}) > 1:
        text += " A run that ended early keeps its last value."
    return tag("p", text, class_="muted")


# ------------------------------------------------------------------------- charts and tables


def _charts(runs: Sequence[RunData]) -> Markup:
    drawn = [
        _chart(runs, "Reward per episode", "Mean over tasks.", [
            ("learners", "learner", _column("learner_reward_mean")),
            ("experts", "expert", _column("expert_reward_mean")),
        ])
    ]  # fmt: skip
    if runs[0].walls is not None:
        drawn.append(_chart(runs, "Violation of the truth", "Steps in truly forbidden cells.", [
            ("learners", "learner", _column("learner_true_cost_mean")),
            ("experts", "expert", _column("expert_true_cost_mean")),
        ]))  # fmt: skip
    if _best_iou(runs)[0] is not None:
        drawn.append(_chart(runs, "Overlap with the true walls", "Intersection over union.",
                            [("IoU", "plain", _iou)], whole=True))  # fmt: skip
    lines: list[tuple[str, str, Callable[[RunData], Values]]] = [
        ("bound", "bound", _column("bound"))
    ]
    if runs[0].walls is not None:
        lines.append(("measured", "learner", lambda run: violation_gap(run.rows)))
    caption = "Mean violation of iterations 1..i, less the experts', and its bound."
    drawn.append(_chart(runs, "Regret bound on the violation gap", caption, lines))
    return tag("div", drawn, class_="charts" if len(drawn) % 3 == 0 else "charts even")


def _chart(
    runs: Sequence[RunData],
    name: str,
    caption: str,
    lines: Sequence[tuple[str, str, Callable[[RunData], Values]]],
    whole: bool = False,
) -> Markup:
    series = []
    for title, kind, column in lines:
        per_iteration = over_seeds(runs, column)
        stats = [mean_se(values) for values in per_iteration]
        series.append(
            Series(
                title,
                kind,
                [mean for mean, _ in stats],
                marker="square" if kind == "expert" else "circle",
                dashed=kind in ("expert", "bound"),
                thin=list(zip(*per_iteration, strict=True)) if len(runs) > 1 else [],
                error=[se for _, se in stats],
            )
        )
    return line_chart(name, caption, series, max(len(run.rows) for run in runs), whole=whole)


def _seed_table(runs: Sequence[RunData]) -> Markup:
    columns = ["seed", "iterations", "selected", "forbidden", "IoU", "learner reward",
               "expert reward", "learner violation", "expert violation", "env steps"]  # fmt: skip
    names = ("learner_reward_mean", "expert_reward_mean", "learner_true_cost_mean",
             "expert_true_cost_mean")  # fmt: skip
    rows: list[list[Any]] = [
        [
            run.summary["seed"],
            len(run.rows),
            run.summary["selected"],
            int(run.selected.forbidden.sum()),
            number(run.best["constraint"].get("iou")),
            *(number(run.best[name]) for name in names),
            number(run.summary["env_steps"]),
        ]
        for run in runs
    ]
    means = [_best_iou(runs), *(_best(runs, name) for name in names)]
    last = ["mean \u00b1 se", "", "", "", *(plus_minus(*pair) for pair in means), ""]
    return table(columns, [*rows, last])


def _map(runs: Sequence[RunData]) -> Markup:
    share = np.mean([run.selected.forbidden for run in runs], axis=0)
    always, never = int((share == 1).sum()), int((share == 0).sum())
    words = (
        f"All {plural(len(runs), 'seed')} forbid {plural(always, 'cell')} and allow {never}; "
        f"they differ on {share.size - always - never}, where the map has the percentage of seeds "
        "that forbid the cell."
    )
    if runs[0].walls is not None:
        words += " The thick line is the truth."
    drawing = tag(
        "div",
        svg.share_map(runs[0].shape, share, runs[0].walls),
        class_="card",
        style="max-width:640px",
    )
    return section("Where the seeds agree", tag("p", words), drawing, name="agreement")
