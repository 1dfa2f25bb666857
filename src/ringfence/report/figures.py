"""Pictures for papers and READMEs (PNG or SVG by the file's ending); the same data, the same bytes.

matplotlib is imported when the first picture is drawn, so that commands without one start fast.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import Array
from ringfence.report.draw import FORBIDDEN, INK, LINE, MUTED, Curve, draw_curves, draw_map, outline
from ringfence.report.labels import read_labels
from ringfence.report.read import Bools, RunData, read_run
from ringfence.report.svg import special
from ringfence.report.words import headline
from ringfence.runs.files import write_file
from ringfence.worlds.grid import Cell

SALT = "ringfence"  # names inside an SVG are hashes: a fixed salt makes them the same each time
STYLE = {
    "font.size": 9.0,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.0,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "hatch.linewidth": 0.7,
    "svg.hashsalt": SALT,
    "text.color": INK,
    "text.parse_math": False,  # a "$" in a task's name is a dollar
}


@contextmanager
def canvas(width: float, height: float) -> Iterator[Any]:
    """A figure of that many inches, in this module's style whatever the user's settings are."""
    import matplotlib.style
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.style.context(["default", STYLE]):
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        yield figure


def picture_bytes(figure: Any, suffix: str) -> bytes:
    """The picture without date or program name in it."""
    metadata: dict[str, dict[str, None]] = {
        ".png": {"Software": None},
        ".svg": {"Date": None, "Creator": None},
    }
    if suffix not in metadata:
        raise InvalidInput(f"a picture's name must end in .png or .svg, not {suffix!r}")
    stream = io.BytesIO()
    figure.savefig(stream, format=suffix[1:], metadata=metadata[suffix], dpi=160)
    return stream.getvalue()


def path_picture(
    walls: Bools | None,
    cost: Array,
    paths: Sequence[NDArray[np.generic]],
    title: str,
    places: Mapping[Cell, str] | None = None,
) -> bytes:
    """A PNG of some paths on a map with a constraint, and with the truth where it is known."""
    rows, cols = cost.shape
    width = 4.4
    with canvas(width, min(12.0, width * rows / cols + 0.5)) as figure:
        ax = figure.add_subplot()
        draw_map(ax, cost.shape, truth=walls, paths=paths, cost=cost, places=places)
        ax.set_title(_wrapped(title, 62), fontsize=8)
        return picture_bytes(figure, ".png")


def _wrapped(text: str, width: int) -> str:
    import textwrap

    lines = textwrap.wrap(text, width)
    return "\n".join(lines[:3]) + (" .." if len(lines) > 3 else "")


# ------------------------------------------------------------------------------------ a maze


@dataclass(frozen=True, eq=False)
class Panel:
    """One panel of the maze figure: paths, or a constraint's values [rows, cols], or only walls."""

    title: str
    cost: Array | None = None
    paths: Sequence[NDArray[np.generic]] = ()
    walls: Bools | None = None
    note: str = ""


def maze_figure(
    panels: Sequence[Panel],
    path: Path,
    shape: tuple[int, int] = (10, 10),
    places: Mapping[Cell, str] | None = None,
    columns: int = 4,
) -> Path:
    """The paper's maze figure in exact form: panels (a), (b), .. with a constraint's 0/1 values."""
    if not panels:
        raise InvalidInput("a maze figure needs at least one panel")
    rows = -(-len(panels) // columns)
    side = 2.5
    with canvas(side * columns, (side * shape[0] / shape[1] + 0.55) * rows) as figure:
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        for n, (ax, panel) in enumerate(zip(axes, panels, strict=False)):
            bare = panel.cost is None and not len(panel.paths)
            cost = (
                panel.walls.astype(np.float64) if bare and panel.walls is not None else panel.cost
            )
            draw_map(
                ax,
                shape,
                truth=panel.walls,
                paths=panel.paths,
                cost=cost,
                places=places if bare or len(panel.paths) else None,
                numbers=panel.cost is not None,
            )
            ax.set_title(f"({chr(ord('a') + n)}) {panel.title}", fontsize=9)
            ax.set_xlabel(panel.note, fontsize=8)
        write_file(path, picture_bytes(figure, path.suffix))
    return path


# ------------------------------------------------------------------------------------ curves


def curve_figure(
    curves: Sequence[Curve], path: Path, xlabel: str, ylabel: str, title: str = ""
) -> Path:
    """Curves with their standard errors in one picture."""
    if not curves:
        raise InvalidInput("a figure of curves needs at least one curve")
    with canvas(5.2, 3.4) as figure:
        ax = figure.add_subplot()
        draw_curves(ax, curves, xlabel, ylabel)
        ax.set_title(title)
        write_file(path, picture_bytes(figure, path.suffix))
    return path


# --------------------------------------------------------------------------------- a run


def run_figure(run: Path, path: Path) -> Path:
    """The picture of a run's result: map, evidence and curves side by side."""
    data = read_run(run)
    labels = read_labels(data)
    with canvas(12.4 if labels is not None else 8.2, 4.9) as figure:
        figure.suptitle(headline(data), x=0.01, ha="left", fontsize=13, fontweight="bold")
        shares = (1.2, 1.2, 0.95) if labels is not None else (1.2, 0.95)
        grid = figure.add_gridspec(2, len(shares), width_ratios=shares)
        _map_panel(figure.add_subplot(grid[:, 0]), data)
        if labels is not None:
            ax = figure.add_subplot(grid[:, 1])
            draw_map(ax, data.shape, labels=labels, places=special(data))
            outline(ax, data.selected.forbidden, FORBIDDEN, 1.8, "--")
            ax.set_title("What the demonstrations prove")
            ax.set_xlabel(
                "dot allowed, P proven, figure: size of the conflict, ? unknown", fontsize=8
            )
        _run_curves(figure, grid, data)
        write_file(path, picture_bytes(figure, path.suffix))
    return path


def _map_panel(ax: Any, data: RunData) -> None:
    draw_map(
        ax,
        data.shape,
        truth=data.walls,
        paths=[path for paths in data.paths for path in paths],
        cost=data.selected.cost * data.selected.forbidden,
        places=special(data),
    )
    ax.set_title("Experts' paths and the learned constraint")
    truth = "" if data.walls is None else ", thick line: true walls"
    ax.set_xlabel(f"hatched: forbidden by the constraint{truth}", fontsize=8)


def _run_curves(figure: Any, grid: Any, data: RunData) -> None:
    """Reward, and violation or (without a truth) the bound, per iteration."""
    x = [row["i"] for row in data.rows]

    def curve(name: str, column: str) -> Curve:
        values = [row[column] for row in data.rows]
        return Curve(name, x, [np.nan if v is None else v for v in values])

    def panel(place: Any, title: str, curves: Sequence[Curve]) -> None:
        ax = figure.add_subplot(place)
        draw_curves(ax, curves, "iteration", "")
        ax.set_title(title)
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))

    pairs = ("learners", "learner"), ("experts", "expert")
    panel(grid[0, -1], "Reward per episode", [curve(a, f"{b}_reward_mean") for a, b in pairs])
    if data.walls is not None:
        columns = [curve(a, f"{b}_true_cost_mean") for a, b in pairs]
        panel(grid[1, -1], "Steps in forbidden cells", columns)
    else:
        panel(grid[1, -1], "Regret bound", [curve("bound", "bound")])
