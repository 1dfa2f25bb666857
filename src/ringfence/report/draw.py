"""Maps and curves on matplotlib axes: the parts that pictures are put together from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.objects import Array
from ringfence.report.labels import Labels
from ringfence.report.read import Bools
from ringfence.worlds.grid import Cell

INK, MUTED, LINE = "#1c2430", "#667080", "#d9d6ce"
LEARNER, EXPERT, FORBIDDEN, ALLOWED = "#0b62a4", "#c2620a", "#93307a", "#0b7a5b"
TINTS = {"allowed": "#ffffff", "proven": "#8b93a3", "implicated": "#d3d7de", "unknown": "#f4f2ec"}
#: Paths are drawn beside each other, within this share of a cell around its middle.
LANES, GOLDEN = 0.6, 0.618033988749895


def draw_map(
    ax: Any,
    shape: tuple[int, int],
    *,
    truth: Bools | None = None,
    paths: Sequence[NDArray[np.generic]] = (),
    cost: Array | None = None,
    labels: Labels | None = None,
    places: Mapping[Cell, str] | None = None,
    numbers: bool = False,
) -> None:
    """Draw a map on matplotlib axes: each part only if it is given.

    truth [rows, cols]: the walls, outlined; paths: trajectories as cells [T, 2]; cost
    [rows, cols]: a constraint, hatched where it is above 0, with its value if `numbers`;
    labels: the evidence; places: letters at starts and goals.
    """
    rows, cols = shape
    ax.set(xlim=(0, cols), ylim=(rows, 0), aspect="equal", xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set(visible=True, color=LINE)
    _mesh(ax, shape)
    if labels is not None:
        _tints(ax, labels)
    if cost is not None:
        _costs(ax, cost, numbers)
    _paths(ax, paths)
    if truth is not None:
        outline(ax, truth, INK, 1.8)
    for (r, c), letter in (places or {}).items():
        _place(ax, r, c, letter)
    if labels is not None:
        _letters(ax, labels, places or {})


def _mesh(ax: Any, shape: tuple[int, int]) -> None:
    for r in range(1, shape[0]):
        ax.axhline(r, color=LINE, linewidth=0.5, zorder=1)
    for c in range(1, shape[1]):
        ax.axvline(c, color=LINE, linewidth=0.5, zorder=1)


def _square(r: int, c: int, **style: Any) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((c, r), 1, 1, **style)


def _costs(ax: Any, cost: Array, numbers: bool) -> None:
    top = max(1.0, float(cost.max()))
    for r, c in np.ndindex(cost.shape):
        share = float(cost[r, c]) / top
        if share > 0:
            shade = (*_rgb(FORBIDDEN), 0.08 + 0.22 * share)
            line = (*_rgb(FORBIDDEN), 0.25 + 0.75 * share)
            ax.add_patch(_square(r, c, facecolor=shade, linewidth=0, zorder=2))
            if not numbers:
                ax.add_patch(
                    _square(r, c, fill=False, edgecolor=line, linewidth=0, hatch="////", zorder=2)
                )
        if numbers:
            text = f"{share:.0f}" if share in (0.0, 1.0) else f"{share:.1f}".lstrip("0")
            color = FORBIDDEN if share > 0 else "#a5abb5"
            _write(ax, r + 0.5, c + 0.5, text, color=color, fontsize=6.5)


def _rgb(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return red, green, blue


def _paths(ax: Any, paths: Sequence[NDArray[np.generic]]) -> None:
    from matplotlib.collections import LineCollection

    lines = []
    for n, path in enumerate(paths, start=1):
        cells = np.asarray(path, dtype=np.float64)
        shift = [(n * GOLDEN**power % 1 - 0.5) * LANES for power in (1, 2)]
        lines.append(cells[:, ::-1] + 0.5 + np.array(shift))
    # Many paths through one corridor should still show where single ones go.
    alpha = max(0.16, min(0.9, 12 / max(1, len(lines))))
    ax.add_collection(
        LineCollection(
            lines, colors=EXPERT, linewidths=0.9, alpha=alpha, capstyle="round", zorder=3
        )
    )


def outline(ax: Any, region: Bools, colour: str, width: float, style: str = "-") -> None:
    from matplotlib.collections import LineCollection

    padded = np.pad(region, 1)
    edges = []
    for r, c in np.ndindex(region.shape[0] + 1, region.shape[1] + 1):
        if padded[r, c + 1] != padded[r + 1, c + 1]:
            edges.append([(c, r), (c + 1, r)])
        if padded[r + 1, c] != padded[r + 1, c + 1]:
            edges.append([(c, r), (c, r + 1)])
    ax.add_collection(
        LineCollection(
            edges,
            colors=colour,
            linewidths=width,
            linestyles=style,
            capstyle="projecting",
            zorder=4,
            clip_on=False,
        )
    )


def _place(ax: Any, r: int, c: int, letter: str) -> None:
    from matplotlib.patches import Circle, FancyBboxPatch

    if letter == "S":
        shape: Any = Circle((c + 0.5, r + 0.5), 0.3, color=INK, zorder=5, linewidth=0)
    else:
        shape = FancyBboxPatch(
            (c + 0.3, r + 0.3),
            0.4,
            0.4,
            boxstyle="round,pad=0.06,rounding_size=0.1",
            facecolor="white",
            edgecolor=INK,
            linewidth=0.9,
            zorder=5,
        )
    ax.add_patch(shape)
    colour = "white" if letter == "S" else INK
    _write(ax, r + 0.5, c + 0.5, letter, color=colour, fontsize=7, fontweight="bold", zorder=6)


def _tints(ax: Any, labels: Labels) -> None:
    for (r, c), label in labels.cells.items():
        hatch = "...." if label.kind == "unknown" else None
        style = {"facecolor": TINTS[label.kind], "edgecolor": "#dcd8cd", "linewidth": 0}
        ax.add_patch(_square(r, c, hatch=hatch, zorder=0.5, **style))


def _letters(ax: Any, labels: Labels, places: Mapping[Cell, str]) -> None:
    colours = {"allowed": ALLOWED, "proven": INK, "implicated": INK, "unknown": MUTED}
    for (r, c), label in labels.cells.items():
        if (r, c) in places:
            continue
        if label.kind == "allowed":
            ax.plot(c + 0.5, r + 0.5, "o", color=ALLOWED, markersize=2.6, zorder=6)
            continue
        weight = "bold" if label.kind == "proven" else "normal"
        _write(
            ax,
            r + 0.5,
            c + 0.5,
            label.letter,
            color=colours[label.kind],
            fontsize=8.5,
            fontweight=weight,
            zorder=6,
        )


def _write(ax: Any, y: float, x: float, text: str, **style: Any) -> None:
    ax.text(x, y, text, ha="center", va="center_baseline", **style)


@dataclass(frozen=True, eq=False)
class Curve:
    """mean [n] over x [n], with its standard error [n] if there is one."""

    name: str
    x: Sequence[float]
    mean: Sequence[float]
    se: Sequence[float] | None = None


#: So few points are named on the axis, where they are not too close to each other.
MOST_TICKS = 12
#: One colour, marker and dash per curve: each alone tells them apart.
CURVE_STYLES = (
    (LEARNER, "o", "-"),
    (EXPERT, "s", "--"),
    (FORBIDDEN, "D", "-."),
    (ALLOWED, "^", ":"),
    (INK, "v", "-"),
)


def draw_curves(ax: Any, curves: Sequence[Curve], xlabel: str, ylabel: str) -> None:
    """Mean and standard error of each curve on matplotlib axes."""
    for n, curve in enumerate(curves):
        colour, marker, dash = CURVE_STYLES[n % len(CURVE_STYLES)]
        x, mean = np.asarray(curve.x, dtype=float), np.asarray(curve.mean, dtype=float)
        if curve.se is not None:
            se = np.asarray(curve.se, dtype=float)
            ax.fill_between(x, mean - se, mean + se, color=colour, alpha=0.16, linewidth=0)
        ax.plot(
            x,
            mean,
            dash,
            color=colour,
            marker=marker,
            markersize=4,
            linewidth=1.5,
            label=curve.name,
        )
    ax.grid(axis="y", color=LINE, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.tick_params(length=0)
    points = sorted({float(x) for curve in curves for x in curve.x})
    if len(points) <= MOST_TICKS and (np.diff(points) * 2 * MOST_TICKS >= np.ptp(points)).all():
        ax.set_xticks(points, [f"{x:g}" for x in points])
    if len(curves) > 1:
        ax.legend(frameon=False, fontsize=8)
