"""Maps, floors and planes on matplotlib axes: the parts that pictures are put together from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ringfence.objects import Array, Constraint
from ringfence.report.cell_labels import Labels
from ringfence.report.cells import Bools, Cell
from ringfence.report.draw.canvas import ALLOWED, EXPERT, FORBIDDEN, INK, LEARNER, LINE, MUTED
from ringfence.report.draw.geometry import alone, borders, edges

TINTS = {"allowed": "#ffffff", "proven": "#8b93a3", "implicated": "#d3d7de", "unknown": "#f4f2ec"}
FORBIDS = 1e-9  # the least raw value that is shaded: a table has 0 where nothing is forbidden
SHADED = 200  # points per side, for the shade of a forbidden side


# Cells: x is the column, y the row ---------------------------------------------------------------


def draw_map(
    ax: Any,
    shape: Cell,
    *,
    truth: Bools | None = None,
    paths: Sequence[Array] = (),
    cost: Array | None = None,
    labels: Labels | None = None,
    places: Mapping[Cell, str] | None = None,
) -> None:
    """Draw a map on matplotlib axes: each part only if it is given.

    truth [rows, cols]: the walls, outlined; paths: lines of places (row, col); cost [rows, cols]:
    a constraint, hatched where it is above 0; labels: the evidence; places: letters at starts and
    goals.
    """
    rows, cols = shape
    ax.set(xlim=(0, cols), ylim=(rows, 0), aspect="equal", xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set(visible=True, color=LINE)
    for r in range(1, rows):
        ax.axhline(r, color=LINE, linewidth=0.5, zorder=1)
    for c in range(1, cols):
        ax.axvline(c, color=LINE, linewidth=0.5, zorder=1)
    if labels is not None:
        _tints(ax, labels)
    if cost is not None:
        _costs(ax, cost)
    _paths(ax, paths)
    if truth is not None:
        outline(ax, truth, INK, 1.8)
    for (r, c), letter in (places or {}).items():
        _place(ax, r, c, letter)
    if labels is not None:
        _letters(ax, labels, places or {})


def _square(r: int, c: int, **style: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((c, r), 1, 1, **style)


def _costs(ax: Any, cost: Array) -> None:
    from matplotlib.colors import to_rgb

    top, violet = max(1.0, float(cost.max())), to_rgb(FORBIDDEN)
    for r, c in np.ndindex(cost.shape):
        share = float(cost[r, c]) / top
        if share > 0:
            shade, line = (*violet, 0.08 + 0.22 * share), (*violet, 0.25 + 0.75 * share)
            ax.add_patch(_square(r, c, facecolor=shade, linewidth=0, zorder=2))
            hatch: dict[str, Any] = {"edgecolor": line, "linewidth": 0, "hatch": "////"}
            ax.add_patch(_square(r, c, fill=False, zorder=2, **hatch))


def _lines(ax: Any, lines: Sequence[Any], **style: Any) -> None:
    from matplotlib.collections import LineCollection

    ax.add_collection(LineCollection(list(lines), **style))


def _paths(ax: Any, paths: Sequence[Array]) -> None:
    # Many paths through one corridor should still show where single ones go.
    alpha = max(0.16, min(0.9, 12 / max(1, len(paths))))
    style: dict[str, Any] = {"linewidths": 0.9, "alpha": alpha, "capstyle": "round", "zorder": 3}
    _lines(ax, [path[:, ::-1] for path in paths], colors=EXPERT, **style)


def outline(ax: Any, region: Bools, colour: str, width: float, style: str = "-") -> None:
    """The border of a set of cells."""
    segments = [[(c, r), (c2, r2)] for (r, c), (r2, c2) in borders(region)]
    look: dict[str, Any] = {"capstyle": "projecting", "zorder": 4, "clip_on": False}
    _lines(ax, segments, colors=colour, linewidths=width, linestyles=style, **look)


def contours(ax: Any, lines: Sequence[Array], width: float) -> None:
    """Lines of equal cost, of places (row, col)."""
    _lines(ax, [line[:, ::-1] for line in lines], colors=FORBIDDEN, linewidths=width, zorder=4)


def _place(ax: Any, r: int, c: int, letter: str) -> None:
    from matplotlib.patches import Circle, FancyBboxPatch

    if letter == "S":
        shape: Any = Circle((c + 0.5, r + 0.5), 0.3, color=INK, zorder=5, linewidth=0)
    else:
        box = "round,pad=0.06,rounding_size=0.1"
        look: dict[str, Any] = {"facecolor": "white", "edgecolor": INK, "linewidth": 0.9}
        shape = FancyBboxPatch((c + 0.3, r + 0.3), 0.4, 0.4, boxstyle=box, zorder=5, **look)
    ax.add_patch(shape)
    colour = "white" if letter == "S" else INK
    _write(ax, r, c, letter, color=colour, fontsize=7, fontweight="bold", zorder=6)


def _tints(ax: Any, labels: Labels) -> None:
    for (r, c), label in labels.cells.items():
        hatch = "...." if label.kind == "unknown" else None
        style = {"facecolor": TINTS[label.kind], "edgecolor": "#dcd8cd", "linewidth": 0}
        ax.add_patch(_square(r, c, hatch=hatch, zorder=0.5, **style))


def _letters(ax: Any, labels: Labels, places: Mapping[Cell, str]) -> None:
    for (r, c), label in labels.cells.items():
        if (r, c) in places:
            continue
        if label.kind == "allowed":
            ax.plot(c + 0.5, r + 0.5, "o", color=ALLOWED, markersize=2.6, zorder=6)
            continue
        weight = "bold" if label.kind == "proven" else "normal"
        colour = MUTED if label.kind == "unknown" else INK
        _write(ax, r, c, label.letter, color=colour, fontsize=8.5, fontweight=weight, zorder=6)


def _write(ax: Any, r: int, c: int, text: str, **style: Any) -> None:
    ax.text(c + 0.5, r + 0.5, text, ha="center", va="center_baseline", **style)


# Planes ------------------------------------------------------------------------------------------


def draw_plane(
    ax: Any,
    columns: tuple[int, int],
    corners: tuple[Array, Array],
    experts: Sequence[Array],
    learners: Sequence[Array],
    c: Constraint | None,
    truth: Constraint | None,
) -> None:
    """Paths [t, d] in two features, and the edges of a constraint and of the truth."""
    low, high = corners
    for group, colour, name in ((experts, EXPERT, "experts"), (learners, LEARNER, "learners")):
        for n, phi in enumerate(group):
            label = name if n == 0 else None
            ax.plot(*phi[:, columns].T, color=colour, linewidth=0.7, alpha=0.6, label=label)
    looks: tuple[tuple[Constraint | None, dict[str, Any]], ...] = (
        (c, {"color": FORBIDDEN, "linewidth": 1.6, "label": "learned"}),
        (truth, {"color": INK, "linewidth": 1.2, "linestyle": ":", "label": "truth"}),
    )
    for constraint, look in looks:
        for line in [] if constraint is None else edges(constraint, columns, low, high):
            ax.plot(*line.T, **look)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def shade_forbidden(
    ax: Any, c: Constraint, columns: tuple[int, int], low: Array, high: Array
) -> None:
    """The side of a plane that a constraint forbids; nothing where other features enter it."""
    x, y = np.linspace(low, high, SHADED).T
    raw = alone(c, columns, np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2))
    if raw is not None:
        values = raw.reshape(SHADED, SHADED)
        ax.contourf(x, y, values, levels=[FORBIDS, np.inf], colors=[FORBIDDEN], alpha=0.14)
