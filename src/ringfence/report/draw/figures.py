"""Pictures for papers, READMEs and single problems."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint
from ringfence.report.cells import Bools, Cell, on_floor
from ringfence.report.draw.axes import draw_map, draw_plane, shade_forbidden
from ringfence.report.draw.canvas import (
    EXPERT,
    FORBIDDEN,
    Curve,
    canvas,
    draw_curves,
    picture_bytes,
    save,
)
from ringfence.report.draw.geometry import box, lane, thinned
from ringfence.worlds.sim.floor import Layout

#: What a picture of cells stands on: a map's shape, or a floor in metres.
Ground = Cell | Layout
MARGIN = 1.0  # around the paths from above
POINTS = 250  # of a path on a floor


def path_picture(
    walls: Bools | None,
    cost: Array,
    paths: Sequence[NDArray[np.generic]],
    title: str,
    places: Mapping[Cell, str] | None = None,
    ground: Ground | None = None,
) -> bytes:
    """A PNG of some paths on a map or floor with a constraint, and the truth where it is known."""
    rows, cols = cost.shape
    width = 4.4
    with canvas(width, min(12.0, width * rows / cols + 0.5)) as figure:
        ax = figure.add_subplot()
        lines = _lines(paths, ground or (rows, cols))
        draw_map(ax, (rows, cols), truth=walls, paths=lines, cost=cost, places=places)
        ax.set_title(_wrapped(title, 62), fontsize=8)
        return picture_bytes(figure, ".png")


def _lines(paths: Sequence[NDArray[np.generic]], ground: Ground) -> list[Array]:
    """Paths of cells, or in metres, as lines of places (row, col)."""
    if isinstance(ground, Layout):
        metres = [np.asarray(path, np.float64)[:, :2] for path in paths]
        return [on_floor(ground, thinned(path, POINTS)) for path in metres]
    return [lane(path, n) for n, path in enumerate(paths, start=1)]


def _wrapped(text: str, width: int) -> str:
    lines = textwrap.wrap(text, width)
    return "\n".join(lines[:3]) + (" .." if len(lines) > 3 else "")


# A maze ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Panel:
    """One panel of a maze figure. Arrays over cells are [rows, cols].

    walls: the truth; flagged: cells to hatch; paths, points: cells on a map, (x, y) in metres on a
    floor.
    """

    title: str
    walls: Bools | None = None
    flagged: Bools | None = None
    paths: Sequence[NDArray[np.generic]] = ()
    points: Array | None = None
    note: str = ""


def maze_figure(
    panels: Sequence[Panel],
    path: Path,
    ground: Ground = (10, 10),
    places: Mapping[Cell, str] | None = None,
    columns: int = 4,
) -> Path:
    """The paper's maze figure: panels (a), (b), .., on a map or on the Ant's floor."""
    if not panels:
        raise InvalidInput("a maze figure needs at least one panel")
    shape = ground.shape if isinstance(ground, Layout) else ground
    rows, side = -(-len(panels) // columns), 2.5
    with canvas(side * columns, (side * shape[0] / shape[1] + 0.55) * rows) as figure:
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
        for n, (ax, panel) in enumerate(zip(axes, panels, strict=False)):
            _draw_panel(ax, panel, ground, shape, places)
            letter = f"({chr(ord('a') + n)}) " if len(panels) > 1 else ""
            ax.set_title(f"{letter}{panel.title}", fontsize=9)
            ax.set_xlabel(panel.note, fontsize=8)
        return save(figure, path)


def _draw_panel(
    ax: Any, panel: Panel, ground: Ground, shape: Cell, places: Mapping[Cell, str] | None
) -> None:
    bare = panel.flagged is None and not len(panel.paths)
    hatched = panel.walls if bare and panel.points is None else panel.flagged
    draw_map(
        ax,
        shape,
        truth=panel.walls,
        paths=_lines(panel.paths, ground),
        cost=None if hatched is None else hatched.astype(np.float64),
        places=places if bare or len(panel.paths) else None,
    )
    if panel.points is not None:
        at = on_floor(ground, panel.points) if isinstance(ground, Layout) else panel.points + 0.5
        ax.plot(at[:, 1], at[:, 0], ".", color=EXPERT, markersize=0.6, zorder=3)


# Curves ------------------------------------------------------------------------------------------


def curves_figure(
    panels: Sequence[tuple[str, Sequence[Curve]]],
    path: Path,
    xlabel: str = "iteration",
    ylabel: str = "",
    width: float = 3.6,
) -> Path:
    """Panels of curves with their standard errors, side by side."""
    if not any(curves for _, curves in panels):
        raise InvalidInput("a figure of curves needs at least one curve")
    with canvas(width * len(panels), 3.2) as figure:
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for ax, (title, curves) in zip(axes, panels, strict=True):
            draw_curves(ax, curves, xlabel, ylabel)
            ax.set_title(title)
        return save(figure, path)


# Episodes ----------------------------------------------------------------------------------------


def top_view(episodes: Sequence[Array], c: Constraint, xy: tuple[int, int], title: str) -> bytes:
    """A PNG of episodes' features [t, d] in two columns. Steps that violate c are marked.

    Where the constraint is on these two alone, its forbidden side is shaded.
    """
    low, high = box([phi[:, xy] for phi in episodes], MARGIN)
    with canvas(7.0, 5.2) as figure:
        ax = figure.add_subplot()
        shade_forbidden(ax, c, xy, low, high)
        draw_plane(ax, xy, (low, high), episodes, [], None, None)
        for phi in episodes:
            ax.scatter(*phi[c.raw(phi) > 0][:, xy].T, s=3, color=FORBIDDEN, zorder=3)
        across, up = (f"{c.features[n].name}, {c.features[n].unit}" for n in xy)
        ax.set_aspect("equal", adjustable="box")
        ax.set(xlabel=across, ylabel=up, title=_wrapped(title, 90))
        return picture_bytes(figure, ".png")


def strip(frames: NDArray[np.uint8], titles: Sequence[str]) -> bytes:
    """A PNG of frames [n, h, w, 3] side by side, each with its title."""
    n, height, width, _ = frames.shape
    with canvas(2.4 * n, 2.4 * height / width + 0.3) as figure:
        axes = figure.subplots(1, n, squeeze=False)[0]
        for ax, frame, title in zip(axes, frames, titles, strict=True):
            ax.imshow(frame)
            ax.set_axis_off()
            ax.set_title(title, fontsize=8)
        return picture_bytes(figure, ".png")
