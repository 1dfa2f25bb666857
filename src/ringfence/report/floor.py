"""The maze from above in metres: walls, flagged cells, a network's contour, evidence and paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.constraints import files as constraint_files
from ringfence.demos.dataset import load
from ringfence.objects import Array, Constraint
from ringfence.report.draw import EXPERT, FORBIDDEN, INK, LINE, MUTED, TINTS, Curve, draw_curves
from ringfence.report.figures import canvas, picture_bytes
from ringfence.report.labels import Labels, read_labels
from ringfence.report.read import Bools, read_run
from ringfence.runs.files import write_file
from ringfence.worlds.sim.floor import CELL, Layout

#: Points per side of a cell's contour, and levels of the activated cost that are drawn.
FINE = 12
LEVELS = (0.1, 0.3, 0.5)


@dataclass(frozen=True, eq=False)
class FloorPanel:
    """One panel; flagged and walls [rows, cols], paths in (x, y)."""

    title: str
    walls: Bools
    flagged: Bools | None = None
    paths: Sequence[Array] = ()
    points: Array | None = None
    note: str = ""


def draw_floor(ax: Any, layout: Layout, walls: Bools | None) -> None:
    """Axes in metres with the cells' mesh and the walls' outline."""
    from matplotlib.collections import LineCollection

    rows, cols = layout.shape
    x, y = cols * CELL / 2, rows * CELL / 2
    ax.set(xlim=(-x, x), ylim=(-y, y), aspect="equal", xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set(visible=True, color=LINE)
    for n in range(1, cols):
        ax.axvline(n * CELL - x, color=LINE, linewidth=0.4, zorder=1)
    for n in range(1, rows):
        ax.axhline(n * CELL - y, color=LINE, linewidth=0.4, zorder=1)
    if walls is not None:
        ax.add_collection(
            LineCollection(_edges(layout, walls), colors=INK, linewidths=1.6, zorder=5)
        )


def _edges(layout: Layout, region: Bools) -> list[list[tuple[float, float]]]:
    """The border of a region of cells, as lines in metres."""
    rows, cols = layout.shape
    padded, edges = np.pad(region, 1), []
    for r, c in np.ndindex(rows + 1, cols + 1):
        x, y = (c - cols / 2) * CELL, (rows / 2 - r) * CELL
        if padded[r, c + 1] != padded[r + 1, c + 1]:
            edges.append([(x, y), (x + CELL, y)])
        if padded[r + 1, c] != padded[r + 1, c + 1]:
            edges.append([(x, y), (x, y - CELL)])
    return edges


def shade(ax: Any, layout: Layout, cells: Bools, colour: str, alpha: float, order: float) -> None:
    from matplotlib.patches import Rectangle

    for cell in np.argwhere(cells):
        corner = layout.centre(cell) - CELL / 2
        style: dict[str, Any] = {
            "facecolor": colour,
            "alpha": alpha,
            "linewidth": 0,
            "zorder": order,
        }
        ax.add_patch(Rectangle(tuple(corner), CELL, CELL, **style))


def draw_paths(ax: Any, paths: Sequence[Array]) -> None:
    from matplotlib.collections import LineCollection

    alpha = max(0.12, min(0.9, 12 / max(1, len(paths))))
    lines = LineCollection([p[::5] for p in paths], colors=EXPERT, linewidths=0.7, alpha=alpha)
    lines.set_zorder(3)
    ax.add_collection(lines)


def contour(ax: Any, layout: Layout, c: Constraint) -> None:
    """Lines of equal cost of a constraint on (x, y)."""
    rows, cols = layout.shape
    x = np.linspace(-cols * CELL / 2, cols * CELL / 2, FINE * cols)
    y = np.linspace(-rows * CELL / 2, rows * CELL / 2, FINE * rows)
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    cost = c.cost(points).reshape(len(y), len(x))
    if cost.max() <= LEVELS[0]:
        return
    widths = [0.7, 1.0, 1.6]
    ax.contour(x, y, cost, levels=LEVELS, colors=FORBIDDEN, linewidths=widths, zorder=4)


def maze_figure(panels: Sequence[FloorPanel], path: Path, layout: Layout) -> None:
    """The paper's maze figure with the Ant: panels (a), (b), .."""
    write_file(path, maze_picture(panels, layout, path.suffix))


def maze_picture(
    panels: Sequence[FloorPanel], layout: Layout, suffix: str, columns: int = 4
) -> bytes:
    rows = -(-len(panels) // columns)
    with canvas(2.5 * columns, 3.0 * rows) as figure:
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for n, (ax, panel) in enumerate(zip(axes, panels, strict=False)):
            draw_floor(ax, layout, panel.walls)
            if panel.flagged is not None:
                shade(ax, layout, panel.flagged, FORBIDDEN, 0.35, 2)
            draw_paths(ax, panel.paths)
            if panel.points is not None:
                ax.plot(*panel.points.T, ".", color=EXPERT, markersize=0.6, zorder=3)
            letter = f"({chr(ord('a') + n)}) " if len(panels) > 1 else ""
            ax.set_title(letter + panel.title, fontsize=9)
            ax.set_xlabel(panel.note, fontsize=8)
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        return picture_bytes(figure, suffix)


def evidence_figure(run: Path, path: Path) -> None:
    """What the demonstrations prove per cell, the network's contour and the paths."""
    write_file(path, evidence_picture(run, path.suffix))


def evidence_picture(run: Path, suffix: str) -> bytes:
    data = read_run(run)
    labels, layout = read_labels(data), Layout(data.shape)
    paths = [t.observations[:, :2] for d in load(run / "demos").tasks for t in d.train]
    with canvas(6.2, 6.8) as figure:
        ax = figure.add_subplot()
        draw_floor(ax, layout, data.walls)
        if labels is not None:
            _labels(ax, layout, labels)
        draw_paths(ax, paths)
        contour(ax, layout, constraint_files.load(run / "constraint"))
        ax.set_title("Evidence, the learned network and the demonstrations")
        walls = "" if data.walls is None else "; black: true walls"
        levels = ", ".join(f"{level:g}" for level in LEVELS)
        ax.set_xlabel(
            f"violet: cost {levels}{walls}\n"
            "P proven, figure: size of the conflict, ? unknown, white: allowed",
            fontsize=8,
        )
        return picture_bytes(figure, suffix)


def _labels(ax: Any, layout: Layout, labels: Labels) -> None:
    for cell, label in labels.cells.items():
        region = np.zeros(layout.shape, np.bool_)
        region[cell] = True
        shade(ax, layout, region, TINTS[label.kind], 1.0, 0.5)
        if label.kind != "allowed":
            x, y = layout.centre(cell)
            ax.text(x, y, label.letter, ha="center", va="center", fontsize=8, color=MUTED, zorder=6)


def curves_figure(panels: Sequence[tuple[str, Sequence[Curve]]], path: Path) -> None:
    """Curves over iterations side by side."""
    with canvas(3.6 * len(panels), 3.2) as figure:
        for n, (title, curves) in enumerate(panels):
            ax = figure.add_subplot(1, len(panels), n + 1)
            draw_curves(ax, curves, "iteration", "")
            ax.set_title(title)
        write_file(path, picture_bytes(figure, path.suffix))
