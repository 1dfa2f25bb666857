"""How a game went: charts per iteration, and the tables with their numbers."""

from __future__ import annotations

from ringfence.report.charts import Series, line_chart
from ringfence.report.markup import Child, Markup, figure_text, number, tag
from ringfence.report.read import RunData, violation_gap
from ringfence.report.shell import folded, section, table


def iterations(run: RunData) -> Markup:
    return section(
        "Iteration by iteration",
        tag(
            "p",
            "Thick lines are means over tasks, thin lines single tasks. A click on a chart leads "
            "the map above to that iteration.",
            class_="muted",
        ),
        tag("div", charts(run), class_="charts"),
        _table(run),
        folded("Each iteration's constraint in words", _descriptions(run)),
        folded(f"Tasks in the selected iteration ({run.summary['selected']})", _task_table(run)),
        name="iterations",
    )


def charts(run: RunData) -> list[Markup]:
    now = run.summary["selected"]
    drawn = [
        line_chart(
            "Reward per episode",
            "Learners keep to the learned constraint, experts to the true one.",
            [_pair(run, "learner", "reward"), _pair(run, "expert", "reward")],
            now,
        )
    ]
    if run.walls is not None:
        drawn.append(
            line_chart(
                "Violation of the truth",
                "Steps per episode in truly forbidden cells. For reporting only: no learning "
                "step reads it.",
                [_pair(run, "learner", "true_cost"), _pair(run, "expert", "true_cost")],
                now,
            )
        )
    ious = [row["constraint"].get("iou") for row in run.rows]
    if any(iou is not None for iou in ious):
        drawn.append(
            line_chart(
                "Overlap with the true walls",
                "Intersection over union of forbidden cells; 1 is the truth, cell for cell.",
                [Series("IoU", "plain", ious)],
                now,
                whole=True,
            )
        )
    return [*drawn, _bound_chart(run, now), _payoff_chart(run, now)]


def _pair(run: RunData, who: str, column: str) -> Series:
    """Mean and single tasks of the learners (circles) or the experts (dashed, squares)."""
    name = f"{who}_{column}"
    lines = list(zip(*(row[name] for row in run.rows), strict=True)) if len(run.tasks) > 1 else []
    expert = who == "expert"
    return Series(
        "experts" if expert else "learners",
        who,
        [row[f"{name}_mean"] for row in run.rows],
        marker="square" if expert else "circle",
        dashed=expert,
        thin=lines,
    )


def _bound_chart(run: RunData, now: int) -> Markup:
    bound = Series("bound", "bound", [r["bound"] for r in run.rows], marker="diamond", dashed=True)
    series, caption = [bound], "Time-averaged regret times the episode's length."
    if run.walls is not None:
        series.append(Series("measured", "learner", violation_gap(run.rows)))
        caption = (
            "Mean violation of iterations 1..i, less the experts'. The theorem bounds it by the "
            "time-averaged regret times the episode's length."
        )
    return line_chart("Regret bound on the violation gap", caption, series, now)


def _payoff_chart(run: RunData, now: int) -> Markup:
    epsilon = run.config.game.epsilon
    payoff = Series("payoff", "learner", [r["best_payoff"] for r in run.rows])
    stop = Series("stop", "bound", [epsilon] * len(run.rows), marker="diamond", dashed=True)
    return line_chart(
        "Best payoff left to the constraint player",
        f"Per step, logarithmic; the game ends at or below {figure_text(epsilon)}. "
        "A hollow mark stands for 0 or less than the axis shows.",
        [payoff, stop] if epsilon > 0 else [payoff],
        now,
        floor=epsilon / 10 if epsilon > 0 else 1e-9,
    )


#: Title of a column, where a row of the summary has it, and whether it needs the truth.
COLUMNS: tuple[tuple[str, str, bool], ...] = (
    ("learner reward", "learner_reward_mean", False),
    ("expert reward", "expert_reward_mean", False),
    ("learner violation", "learner_true_cost_mean", True),
    ("expert violation", "expert_true_cost_mean", True),
    ("mean gap", "gap", True),
    ("bound", "bound", False),
    ("best payoff", "best_payoff", False),
    ("limit", "delta_mean", False),
    ("multiplier", "lam_mean", False),
    ("env steps", "env_steps", False),
)


def _table(run: RunData) -> Markup:
    """The numbers behind the charts; columns about the truth only where it is known."""
    known = run.walls is not None
    columns = [(title, name) for title, name, truth in COLUMNS if known or not truth]
    rows: list[list[Child]] = []
    attributes = []
    for row, learned, gap in zip(run.rows, run.learned, violation_gap(run.rows), strict=True):
        chosen = row["i"] == run.summary["selected"]
        name: list[Child] = [row["i"], tag("span", "selected", class_="pick") if chosen else None]
        iou = [number(row["constraint"].get("iou"))] if known else []
        figures = [number({**row, "gap": gap}.get(column)) for _, column in columns]
        rows.append([name, number(int(learned.forbidden.sum())), *iou, *figures])
        attributes.append({"data_row": row["i"], "class_": "current" if chosen else None})
    titles = ["iteration", "forbidden", *(["IoU"] if known else []), *(t for t, _ in columns)]
    return table(titles, rows, attributes)


def _descriptions(run: RunData) -> Markup:
    rows: list[list[Child]] = [[n, c.words] for n, c in enumerate(run.learned, start=1)]
    return table(["iteration", "constraint"], rows, text=(1,))


def _task_table(run: RunData) -> Markup:
    """The selected iteration, task by task."""
    per_task = {
        title: name.removesuffix("_mean")
        for title, name, truth in COLUMNS
        if name.endswith("_mean") and (run.walls is not None or not truth)
    }
    rows: list[list[Child]] = [
        [task, *(number(run.best[name][k]) for name in per_task.values()), len(run.paths[k])]
        for k, task in enumerate(run.tasks)
    ]
    return table(["task", *per_task, "paths"], rows)
