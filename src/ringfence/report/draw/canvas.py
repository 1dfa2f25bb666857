"""What pictures are drawn with: a canvas in one style, colours, and curves on axes.

PNG or SVG by the file's ending; the same data, the same bytes. matplotlib is imported when the
first picture is drawn, so that commands without one start fast.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.disk import write_file
from ringfence.errors import InvalidInput

INK, MUTED, LINE = "#1c2430", "#667080", "#d9d6ce"
LEARNER, EXPERT, FORBIDDEN, ALLOWED = "#0b62a4", "#c2620a", "#93307a", "#0b7a5b"
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
#: What a picture would say of when and by which program it was made; left out.
METADATA: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
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
    if suffix not in METADATA:
        raise InvalidInput(f"a picture's name must end in .png or .svg, not {suffix!r}")
    stream = io.BytesIO()
    figure.savefig(stream, format=suffix[1:], metadata=METADATA[suffix], dpi=160)
    return stream.getvalue()


def save(figure: Any, path: Path) -> Path:
    return write_file(path, picture_bytes(figure, path.suffix))


# Curves ------------------------------------------------------------------------------------------


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
        look = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.5}
        ax.plot(x, mean, dash, label=curve.name, **look)
    ax.grid(axis="y", color=LINE, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.tick_params(length=0)
    points = sorted({float(x) for curve in curves for x in curve.x})
    if len(points) <= MOST_TICKS and (np.diff(points) * 2 * MOST_TICKS >= np.ptp(points)).all():
        ax.set_xticks(points, [f"{x:g}" for x in points])
    if len(curves) > 1:
        ax.legend(frameon=False, fontsize=8)
