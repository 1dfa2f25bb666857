"""The picture of tasks never seen: violation, failure and coverage over K."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ringfence.binomial import binomial_interval
from ringfence.report.draw import CURVE_STYLES, LINE
from ringfence.report.figures import canvas, picture_bytes
from ringfence.runs.files import write_file
from ringfence.studies.unseen import METHODS, MOST_TASKS, NEW_GOAL, Rows
from ringfence.studies.unseen_summary import KNOWN_FIRST, WORLDS

WORLD_NAMES = {"random": "random mazes", "maze": "the paper's maze"}
METHOD_NAMES = {
    "multi-task": "multi-task",
    "single-task": "single-task",
    "average": "average of single-task",
    "maximum": "maximum of single-task",
    "unvisited": "forbid all unvisited",
    KNOWN_FIRST: "known cells first",
}


def figure(summary: dict[str, Any], path: Path) -> None:
    """Over K, new goals: the three outcomes, and what the evidence said. A row per world."""
    with canvas(14.5, 7.0) as picture:
        axes = picture.subplots(len(WORLDS), 4)
        for line, world in zip(axes, WORLDS, strict=True):
            of = [r for r in summary["rows"] if (r["world"], r["kind"]) == (world, NEW_GOAL)]
            title = f"{WORLD_NAMES[world]} ({summary['cases'][world]}): "
            outcome_panel(line[0], of, "unsafe", title + "reached through a wall")
            outcome_panel(line[1], of, "declined", title + "not reached")
            outcome_panel(line[2], of, "safe", title + "reached safely")
            coverage_panel(line[3], of, title + "multi-task, by evidence")
        # Where the paper's maze leaves room.
        axes[-1][0].legend(frameon=False, fontsize=8, loc="center right")
        axes[-1][3].legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 0.05))
        picture.supxlabel(
            "K demonstrated tasks. Bars: exact binomial 95% over tasks; band: the middle 80% of "
            "mazes (multi-task)",
            fontsize=8,
        )
        write_file(path, picture_bytes(picture, path.suffix))


def outcome_panel(ax: Any, rows: Rows, outcome: str, title: str) -> None:
    """The share of unseen tasks with this outcome, a curve per method."""
    for n, method in enumerate(METHODS):
        of = [r for r in rows if r["method"] == method]
        K = np.array([r["K"] for r in of], dtype=float)
        value = np.array([r[outcome] / r["tasks"] for r in of])
        low, high = np.array([r["intervals"][outcome] for r in of]).T
        if method == "multi-task":
            bands = np.array([r["over_cases"][outcome] for r in of])
            colour = CURVE_STYLES[n][0]
            ax.fill_between(K, bands[:, 0], bands[:, -1], color=colour, alpha=0.12, linewidth=0)
        # Beside each other, so that bars and equal curves can be told apart.
        bars(ax, K + 0.08 * (n - 2), value, low, high, METHOD_NAMES[method], n)
    finish(ax, title)


def coverage_panel(ax: Any, rows: Rows, title: str) -> None:
    """How many tasks were called covered, and what came of both sorts under the learned map."""
    of = [r for r in rows if r["method"] == "multi-task"]
    parts = (
        ("called covered (share of tasks)", "covered", "tasks", None),
        ("covered: reached safely", "covered", "safe", "covered"),
        ("uncovered: reached safely", "uncovered", "safe", "uncovered"),
        ("uncovered: through a wall", "uncovered", "unsafe", "uncovered"),
    )
    for n, (name, part, outcome, base) in enumerate(parts):
        counted = [(r["K"], r[part][outcome], r[base]["tasks"] if base else r["tasks"]) for r in of]
        known = [(K, count, total) for K, count, total in counted if total]
        ends = [binomial_interval(count, total) for _, count, total in known]
        if not known:
            continue
        K = np.array([k for k, _, _ in known], dtype=float) + 0.08 * (n - 1.5)
        value = np.array([count / total for _, count, total in known])
        low, high = np.array(ends).T
        bars(ax, K, value, low, high, name, n)
    finish(ax, title)


def bars(ax: Any, x: Any, value: Any, low: Any, high: Any, name: str, n: int) -> None:
    colour, marker, dash = CURVE_STYLES[n]
    errors = np.clip([value - low, high - value], 0, None)
    style = {"color": colour, "marker": marker, "linestyle": dash, "label": name}
    ax.errorbar(x, value, yerr=errors, markersize=3.5, linewidth=1.3, elinewidth=0.8, **style)


def finish(ax: Any, title: str) -> None:
    ax.grid(axis="y", color=LINE, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    ax.set(ylim=(-0.03, 1.03), xticks=list(range(1, MOST_TASKS + 1)))
    ax.set_title(title, fontsize=8.5)
