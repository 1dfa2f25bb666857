"""The figures that an experiment's file names, from its tables and from runs that are here.

A figure that nothing is known for is left as it is: committed ones stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.binomial import binomial_interval
from ringfence.demos import dataset
from ringfence.errors import InvalidInput
from ringfence.experts.optimal import make_demonstrations
from ringfence.report.draw import run_figures, training_curves
from ringfence.report.draw.canvas import CURVE_STYLES, LINE, Curve, canvas, save
from ringfence.report.draw.figures import Panel, curves_figure, maze_figure
from ringfence.report.draw.training_curves import Course
from ringfence.reproduce import games, solves
from ringfence.reproduce import unseen as cases
from ringfence.reproduce.exact_tasks import read_map_text
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.iterates import played
from ringfence.reproduce.rows import Rows
from ringfence.reproduce.study import Study
from ringfence.reproduce.trainings import limited, smooth
from ringfence.runs.counting import read_curves
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import maze
from ringfence.worlds.sim.floor import Layout


def table_of(study: Study, name: str) -> Rows:
    """The rows of a table of the experiment's page."""
    path = study.out / "table.json"
    rows = json.loads(path.read_text()) if path.is_file() else []
    return [row for row in rows if row["table"] == name and "facts" not in row]


# Games -----------------------------------------------------------------------------------------


def curves(study: Study, path: Path) -> None:
    """Learned parameters, reward and true value per iteration, over a variant's seeds."""
    (variant,) = study.variants
    shown = [{**s, "views": s["views"] or []} for s in played(study.summaries(variant))]
    if shown:
        run_figures.iterations_figure(shown, path)


def paths(study: Study, path: Path) -> None:
    """First, middle and last iteration from above, where the constraint is on x and y."""
    (variant,) = study.variants
    for seed, summary in study.summaries(variant).items():
        run = games.folder_of(study.experiment, variant, seed)
        if summary["iterations"] and run_figures.is_planar(summary) and run.is_dir():
            run_figures.paths_figure(run, path)
            return


def evidence(study: Study, path: Path) -> None:
    run = games.folder_of(study.experiment, study.experiment.variants["restricted"], 0)
    if run.is_dir():
        run_figures.evidence_figure(run, path)


# Trainings -------------------------------------------------------------------------------------


def courses(study: Study, variant: Variant) -> dict[int, Course]:
    """Those of finished trainings that are here: the cost and the reward smoothed."""
    found = {}
    for seed in study.summaries(variant):
        try:
            path = solves.folder_of(study.experiment, variant, seed) / "curves.csv"
        except InvalidInput:  # played by a version whose settings this one doesn't have
            continue
        if path.is_file():
            columns = read_curves(path)
            smoothed = {name: smooth(columns[name]) for name in ("cost", "reward_rate")}
            found[seed] = Course(columns["env_steps"], {**smoothed, "lam": columns["lam"]})
    return found


def trainings(study: Study, path: Path) -> None:
    """Cost and multiplier of each variant that has a limit."""
    shown = [v for v in study.variants if fnmatchcase(v.name, study.options["variants"])]
    groups = {v.name: courses(study, v) for v in shown if limited(v)}
    limits = {v.name: float(v.get("training")["delta"]) for v in shown if limited(v)}
    if any(groups.values()):
        training_curves.courses_figure(groups, limits, path)


def compared_trainings(study: Study, path: Path) -> None:
    """Variants over each other; panels: column, label, and "limit" where there is a line."""
    groups = {v.reason: list(courses(study, v).values()) for v in study.variants}
    delta = float(study.variants[0].get("training")["delta"])
    panels = [
        training_curves.Panel(column, label, delta if limit else None)
        for column, label, limit in study.options["panels"]
    ]
    if groups and all(groups.values()):
        training_curves.comparison_figure(groups, panels, path)


# Mazes -----------------------------------------------------------------------------------------


def panels_of(rows: Rows, walls: Any, one: Sequence[Any], everyone: Sequence[Any]) -> list[Panel]:
    """The paper's maze figure, panels (a) to (h)."""
    of = {row["constraint"]: row for row in rows}

    def learned(title: str, name: str) -> Panel:
        note = f"IoU {of[name]['iou']:.2f}, {of[name]['impossible']} of 10 tasks impossible"
        return Panel(title, walls, read_map_text(of[name]["map"]), note=note)

    return [
        Panel("truth", walls),
        Panel("one task's data", walls, paths=one),
        Panel("ten tasks' data", walls, paths=everyone),
        learned("single-task constraint", "task 0"),
        learned("average of ten single-task", "average"),
        learned("maximum of ten single-task", "maximum"),
        learned("multi-task, one iteration", "multi-task, 1 iteration"),
        learned("multi-task, last", "multi-task, last"),
    ]


def maze_panels(study: Study, path: Path) -> None:
    rows, world = table_of(study, "one_task_alone"), maze()
    demos = make_demonstrations(world)
    shown = [[t.features for t in d.train] for d in demos.tasks]
    places = {**dict.fromkeys(world.starts, "S"), **{g: str(k) for k, g in enumerate(world.goals)}}
    panels = panels_of(rows, world.truth.walls, shown[0], [t for d in shown for t in d])
    maze_figure(panels, path, world.shape, places)


def floor_panels(study: Study, path: Path) -> None:
    rows = table_of(study, "walks_of_one_task")
    run = games.folder_of(study.experiment, study.experiment.variants["restricted"], 0)
    if not run.is_dir() or not rows:
        return
    world = AntMaze(maze())
    demos = dataset.load(run / "demos")
    shown = [[t.observations[:, :2] for t in d.train] for d in demos.tasks]
    panels = panels_of(rows, world.truth.walls, shown[0], [t for d in shown for t in d])
    maze_figure(panels, path, world.layout)


def point_panels(study: Study, path: Path) -> None:
    """Where the learners of each iteration were, over the constraint they were under."""
    walls = maze().truth.walls
    for summary in (s for v in study.variants for s in study.summaries(v).values()):
        if "positions" not in summary:
            continue
        panels = [
            Panel(
                f"iteration {row['i']}", walls, read_map_text(row["map"]), points=np.array(points)
            )
            for row, points in zip(summary["rows"], summary["positions"], strict=True)
        ]
        maze_figure(panels, path, Layout(walls.shape))
        return


def over_rows(name: str, rows: Rows, x: str, key: str) -> Curve:
    """A column with its error, where there is one."""
    errors = [row.get(f"{key}_se") or 0.0 for row in rows]
    return Curve(name, [row[x] for row in rows], [row[key] for row in rows], errors)


def path_curve(study: Study, path: Path) -> None:
    rows = [row for row in table_of(study, "path_curve") if row["seed"] == "mean"]
    shown = [
        over_rows("restricted class", rows, "paths", "iou"),
        over_rows("the paper's regression", rows, "paths", "iou_regression"),
    ]
    curves_figure(
        [("", shown)], path, "paths per task and start", "IoU with the true cells", width=5.2
    )


def maze_curves(study: Study, path: Path) -> None:
    rows = table_of(study, "maze_course")
    names = {"restricted": "restricted class", "regression": "the paper's regression"}
    titles = {
        "iou": "IoU with the true walls",
        "violation": "Steps in walls per episode",
        "reward": "Reward per episode",
    }
    panels = []
    for key, title in titles.items():
        shown = []
        for variant, name in names.items():
            of = [row for row in rows if row["variant"] == variant]
            shown += [over_rows(name, of, "i", key)] if of else []
        ours = [row for row in rows if row["variant"] == "restricted"]
        theirs = [row for row in ours if f"paper_{key}" in row]  # a game may be longer than theirs
        other = over_rows("the paper's figures", theirs, "i", f"paper_{key}")
        if key == "reward":
            other = over_rows("experts", ours, "i", "expert_reward")
        panels.append((title, [*shown, other]))
    if rows:
        curves_figure(panels, path)


# Tasks never seen ------------------------------------------------------------------------------

WORLD_NAMES = {"random": "random mazes", "maze": "the paper's maze"}
#: Curves stand beside each other, so that bars and equal curves can be told apart.
APART = 0.08


def unseen(study: Study, path: Path) -> None:
    """Over K, new goals: the three outcomes, and what the evidence said. A row per world."""
    rows = [row for row in table_of(study, "unseen_outcomes") if row["kind"] == cases.NEW_GOAL]
    outcomes = {"unsafe": "reached through a wall", "declined": "not reached",
                "safe": "reached safely"}  # fmt: skip
    with canvas(14.5, 7.0) as figure:
        axes = figure.subplots(len(WORLD_NAMES), 4)
        for line, (world, name) in zip(axes, WORLD_NAMES.items(), strict=True):
            of = [row for row in rows if row["world"] == world]
            for ax, (outcome, title) in zip(line, outcomes.items(), strict=False):
                outcome_panel(ax, of, outcome, f"{name}: {title}")
            coverage_panel(line[3], of, f"{name}: multi-task, by evidence")
        # Where the paper's maze leaves room.
        axes[-1][0].legend(frameon=False, fontsize=8, loc="center right")
        axes[-1][3].legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 0.05))
        figure.supxlabel(
            "K demonstrated tasks. Bars: exact binomial 95% over tasks; band: the middle 80% of "
            "mazes (multi-task)",
            fontsize=8,
        )
        save(figure, path)


def outcome_panel(ax: Any, rows: Rows, outcome: str, title: str) -> None:
    """The share of unseen tasks with this outcome, a curve per method."""
    for n, method in enumerate(cases.METHODS):
        of = [row for row in rows if row["method"] == method]
        if method == "multi-task":
            low, high = ([row[f"{outcome}_{q}"] for row in of] for q in ("q10", "q90"))
            colour = CURVE_STYLES[n][0]
            ax.fill_between([r["K"] for r in of], low, high, color=colour, alpha=0.12, linewidth=0)
        counts = [(row["K"], row[outcome], row["tasks"]) for row in of]
        bars(ax, counts, method, n, n - 2)
    finish(ax, title)


def coverage_panel(ax: Any, rows: Rows, title: str) -> None:
    """How many tasks were called covered, and what came of both sorts under the learned map."""
    of = [row for row in rows if row["method"] == "multi-task"]
    parts = {
        "called covered (share of tasks)": ("covered_tasks", "tasks"),
        "covered: reached safely": ("covered_safe", "covered_tasks"),
        "uncovered: reached safely": ("uncovered_safe", "uncovered_tasks"),
        "uncovered: through a wall": ("uncovered_unsafe", "uncovered_tasks"),
    }
    for n, (name, (count, total)) in enumerate(parts.items()):
        counts = [(row["K"], row[count], row[total]) for row in of if row[total]]
        if counts:
            bars(ax, counts, name, n, n - 1.5)
    finish(ax, title)


def bars(ax: Any, counts: Sequence[tuple[int, int, int]], name: str, n: int, beside: float) -> None:
    """Shares over K with their exact intervals."""
    colour, marker, dash = CURVE_STYLES[n]
    K, value = np.array([(K, count / total) for K, count, total in counts]).T
    low, high = np.array([binomial_interval(count, total) for _, count, total in counts]).T
    errors = np.clip([value - low, high - value], 0, None)
    style: Mapping[str, Any] = {"color": colour, "marker": marker, "linestyle": dash, "label": name}
    look: Mapping[str, Any] = {"markersize": 3.5, "linewidth": 1.3, "elinewidth": 0.8}
    ax.errorbar(K + APART * beside, value, yerr=errors, **look, **style)


def finish(ax: Any, title: str) -> None:
    ax.grid(axis="y", color=LINE, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=0)
    ax.set(ylim=(-0.03, 1.03), xticks=list(range(1, cases.MOST_TASKS + 1)))
    ax.set_title(title, fontsize=8.5)
