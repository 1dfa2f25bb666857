"""Pictures of finished runs: evidence, iterations over seeds, paths from above."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.constraints import constraint_files
from ringfence.disk import read_toml
from ringfence.errors import InvalidInput
from ringfence.objects import NotHere
from ringfence.report.cells import Cell, Cells, make_cells
from ringfence.report.charts import Chart, Summary, charts_of, known, over_runs
from ringfence.report.draw.axes import contours, draw_map, draw_plane, outline
from ringfence.report.draw.canvas import FORBIDDEN, Curve, canvas, save
from ringfence.report.draw.figures import curves_figure, path_picture, top_view
from ringfence.report.draw.geometry import lane, levels, thinned
from ringfence.report.draw.svg_plane import EXPERTS, bounds
from ringfence.report.read import Run, read_document, read_episodes, read_run
from ringfence.report.text import cell_name
from ringfence.report.validate import CELL_VIEWS

LEVELS = (0.1, 0.3, 0.5)  # of a network's cost, drawn thicker and thicker
WIDTHS = (0.7, 1.0, 1.6)
POINTS = 250  # of a path on a floor


# Evidence --------------------------------------------------------------------------------------


def evidence_figure(run: Path, path: Path) -> Path:
    """What the demonstrations prove per cell, the constraint's lines and the paths."""
    data = read_run(run)
    cells = data.cells
    if cells is None or data.labels is None:
        raise InvalidInput(f"{run}: it has no map with evidence to draw")
    with canvas(6.2, 6.8) as figure:
        ax = figure.add_subplot()
        draw_run_map(ax, data, cells, labels=data.labels)
        note = "dashed: the constraint"
        if cells.layout is None:
            outline(ax, data.labels.forbidden, FORBIDDEN, 1.8, "--")
        else:
            note = f"violet: cost {', '.join(f'{level:g}' for level in LEVELS)}"
            for level, width in zip(LEVELS, WIDTHS, strict=True):
                contours(ax, levels(data.learned[data.selected - 1], cells.layout, level), width)
        walls = "" if cells.walls is None else "; black: true walls"
        ax.set_title("Evidence, the learned constraint and the demonstrations")
        ax.set_xlabel(
            f"{note}{walls}\nP proven, figure: size of the conflict, ? unknown, dot: allowed",
            fontsize=8,
        )
        return save(figure, path)


def draw_run_map(ax: Any, run: Run, cells: Cells, **parts: Any) -> None:
    """The experts' paths and the places on a map or floor, with other parts."""
    every = [phi for group in run.experts for phi in group]
    if cells.layout is None:
        paths = [lane(cells.path(phi), k) for k, phi in enumerate(every, start=1)]
    else:
        paths = [thinned(cells.places(phi), POINTS) for phi in every]
    draw_map(ax, cells.shape, truth=cells.walls, paths=paths, places=cells.letters, **parts)


# Over seeds --------------------------------------------------------------------------------------


def iterations_figure(summaries: Sequence[Summary], path: Path) -> Path:
    """Parameters, reward and true raw value per iteration: mean and standard error over seeds."""
    wanted = ("Learned", "Reward", "True raw")
    charts = [c for c in charts_of(summaries[0]) if c.title.startswith(wanted)]
    return curves_figure([(c.title, chart_curves(c, summaries)) for c in charts], path)


def chart_curves(chart: Chart, summaries: Sequence[Summary]) -> list[Curve]:
    """Means over runs with their errors; what is not known leaves a gap."""
    found = []
    for line in chart.lines:
        mean, se = over_runs(summaries, line.of)
        if known(mean):
            x, gaps = range(1, len(mean) + 1), np.array(mean, float).tolist()
            error = np.array(se, float).tolist() if known(se) else None
            found.append(Curve(line.name, list(x), gaps, error))
    return found


# A single problem --------------------------------------------------------------------------------


def solve_picture(folder: Path) -> bytes | NotHere:
    """path.png of `solve` and `transfer`: the kept episodes on a map or floor, or from above."""
    summary = read_document(folder / "summary.json")
    c, task = constraint_files.load(folder / "constraint"), read_toml(folder / "solve.toml")
    episodes = read_episodes(folder, summary)
    if not episodes:
        return NotHere("no episodes were kept")
    title = f"{summary['task']}: {c.describe()}"
    for view in summary["views"]:
        if view["kind"] in CELL_VIEWS and len(view["columns"]) == len(c.features):
            cells = make_cells(view, task["world"].get("map", ()))
            learned, on_floor = cells.over(c), cells.layout is not None
            paths = episodes if on_floor else [cells.path(phi) for phi in episodes]
            cost, places = learned.cost * learned.forbidden, _places(cells, summary)
            return path_picture(cells.walls, cost, paths, title, places, cells.layout)
        if view["kind"] == "plane":
            return top_view(episodes, c, tuple(view["columns"]), title)
    return NotHere("this world has no map or plane to draw it on")


def _places(cells: Cells, summary: Summary) -> dict[Cell, str]:
    """The starts, unless the problem has one of its own, and the task's goal."""
    starts = {cell: "S" for cell in cells.starts if summary.get("start") is None}
    goals = {
        cell: cells.letters[cell] for cell in cells.goals if cell_name(cell) in summary["task"]
    }
    return starts | goals


# From above --------------------------------------------------------------------------------------


def is_planar(summary: Summary) -> bool:
    """Is the constraint on x and y?"""
    return set(summary["used"]) == {"x", "y"}


def paths_figure(run: Path, path: Path) -> Path:
    """First, middle and last iteration from above: paths, learned and true edge."""
    data = read_run(run)
    plane = next((view for view in data.views if view.kind == "plane"), None)
    if plane is None or not data.rows:
        raise InvalidInput(f"{run}: it has no plane to draw paths on")
    count, xy = len(data.rows), (plane.columns[0], plane.columns[1])
    chosen = sorted({0, (count - 1) // 2, count - 1})
    with canvas(3.4 * len(chosen), 3.4) as figure:
        axes = figure.subplots(1, len(chosen), squeeze=False, sharex=True, sharey=True)[0]
        for ax, n in zip(axes, chosen, strict=True):
            _plane(ax, data, xy, n)
            ax.set_title(f"iteration {n + 1}: {data.learned[n].describe()}", fontsize=8)
        axes[0].legend(frameon=False, fontsize=7, loc="upper left")
        return save(figure, path)


def _plane(ax: Any, run: Run, xy: tuple[int, int], n: int) -> None:
    experts = [t for group in run.experts for t in group[:EXPERTS]]
    learners = [t for one in run.learners[n] if one is not None for t in one.episodes]
    draw_plane(ax, xy, bounds(run, xy), experts, learners, run.learned[n], run.truth)
    across, up = (run.features[column] for column in xy)
    ax.set(xlabel=f"{across.name}, {across.unit}", ylabel=f"{up.name}, {up.unit}")
