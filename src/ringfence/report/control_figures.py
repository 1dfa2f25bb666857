"""Pictures of runs on continuous worlds: courses over seeds, and paths from above."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.objects import Array
from ringfence.report.control_read import box, edges, parameter_words, read_control, true_parameters
from ringfence.report.draw import EXPERT, FORBIDDEN, INK, LEARNER, Curve, draw_curves
from ringfence.report.figures import canvas, picture_bytes
from ringfence.runs.files import write_file

Summary = dict[str, Any]
MARGIN = 1.0  # metres around the paths


def courses(summaries: Sequence[Summary], path: Path) -> None:
    """Constraint, reward and true raw value per iteration: mean and standard error over seeds."""
    panels = [("reward per episode", "reward")]
    if summaries[0]["truth"]:
        panels.append(("true raw value per episode", "true_raw"))
    names = list(summaries[0]["iterations"][0]["constraint"]["parameters"])
    shown = names if len(names) <= 2 else []
    with canvas(3.6 * (len(panels) + len(shown)), 3.0) as figure:
        axes = figure.subplots(1, len(panels) + len(shown), squeeze=False)[0]
        for ax, name in zip(axes, shown, strict=False):
            draw_curves(
                ax,
                [parameter_curve(summaries, name)],
                "iteration",
                f"learned {parameter_words(name)}",
            )
            true = true_parameter(summaries[0], name)
            if true is not None:
                ax.axhline(true, color=INK, linewidth=1.0, linestyle=":", label="truth")
                ax.legend(frameon=False, fontsize=8)
        for ax, (label, column) in zip(axes[len(shown) :], panels, strict=True):
            curves = [
                over_seeds(f"{who}s", [_column(s, f"{who}_{column}_mean") for s in summaries])
                for who in ("learner", "expert")
            ]
            draw_curves(ax, curves, "iteration", label)
        write_file(path, picture_bytes(figure, path.suffix))


def _column(summary: Summary, name: str) -> list[float]:
    return [row[name] for row in summary["iterations"]]


def parameter_curve(summaries: Sequence[Summary], name: str) -> Curve:
    lines = [[row["constraint"]["parameters"][name] for row in s["iterations"]] for s in summaries]
    return over_seeds("learned", lines)


def over_seeds(name: str, lines: Sequence[Sequence[float]]) -> Curve:
    """A run that ended early keeps its last value."""
    longest = max(map(len, lines))
    values = np.array([[*line, *[line[-1]] * (longest - len(line))] for line in lines], float)
    se = values.std(axis=0, ddof=1) / np.sqrt(len(lines)) if len(lines) > 1 else None
    return Curve(name, list(range(1, longest + 1)), values.mean(axis=0).tolist(),
                 None if se is None else se.tolist())  # fmt: skip


def true_parameter(summary: Summary, name: str) -> float | None:
    """What the truth has in the place of a learned parameter, if they can be compared."""
    value = true_parameters(summary).get(name)
    return None if value is None else float(value)


# From above ------------------------------------------------------------------------------------


def is_planar(summary: Summary) -> bool:
    """Is the constraint on x and y?"""
    return set(summary["used"]) == {"x", "y"}


def paths(run: Path, path: Path) -> None:
    """First, middle and last iteration from above: paths, learned and true edge."""
    data = read_control(run)
    xy, count = data.planar, len(data.rows)
    assert xy is not None
    chosen = sorted({0, (count - 1) // 2, count - 1})
    groups = [[t[:, xy] for t in group] for group in (data.experts, *data.learners)]
    low, high = box([t for group in groups for t in group], MARGIN)
    with canvas(3.4 * len(chosen), 3.4) as figure:
        axes = figure.subplots(1, len(chosen), squeeze=False, sharex=True, sharey=True)[0]
        for ax, n in zip(axes, chosen, strict=True):
            draw_paths(ax, groups[0], color=EXPERT, label="experts")
            draw_paths(ax, groups[n + 1], color=LEARNER, label="learners")
            for line in edges(data.learned[n], xy, low, high):
                ax.plot(*line.T, color=FORBIDDEN, linewidth=1.6, label="learned")
            for line in [] if data.truth is None else edges(data.truth, xy, low, high):
                ax.plot(*line.T, color=INK, linewidth=1.2, linestyle=":", label="truth")
            ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel="x, m")
            ax.set_title(f"iteration {n + 1}: {data.learned[n].describe()}", fontsize=8)
        axes[0].set_ylabel("y, m")
        axes[0].legend(frameon=False, fontsize=7, loc="upper left")
        write_file(path, picture_bytes(figure, path.suffix))


def draw_paths(ax: Any, group: Sequence[Array], color: str, label: str) -> None:
    for n, xy in enumerate(group):
        named = label if n == 0 else None
        ax.plot(*xy.T, color=color, linewidth=0.7, alpha=0.6, label=named)
