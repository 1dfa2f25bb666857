"""Courses of trainings as pictures: cost against its limit, multiplier, reward over steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.objects import Array
from ringfence.report.draw.canvas import CURVE_STYLES, INK, LINE, canvas, save

MILLION = 1e6


@dataclass(frozen=True, eq=False)
class Course:
    """One training: steps [n] and named columns [n]."""

    steps: Array
    columns: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Panel:
    """A column of all groups' courses; `limit` is a line across."""

    column: str
    label: str
    limit: float | None = None


def courses_figure(
    groups: Mapping[str, Mapping[int, Course]], limits: Mapping[str, float], path: Path
) -> Path:
    """A column of panels per group: cost and limit above the multiplier, seeds as lines."""
    with canvas(3.2 * len(groups), 4.6) as figure:
        axes = figure.subplots(2, len(groups), squeeze=False, sharex="col")
        for n, (name, seeds) in enumerate(groups.items()):
            for row, column in enumerate(("cost", "lam")):
                ax = axes[row, n]
                for k, (seed, course) in enumerate(sorted(seeds.items())):
                    colour, _, _ = CURVE_STYLES[k % len(CURVE_STYLES)]
                    _line(ax, course, column, color=colour, linewidth=1.0, label=f"seed {seed}")
                _finish(ax, Panel(column, "", limits[name] if column == "cost" else None))
            axes[0, n].set_title(name if seeds else f"{name}: not run")
            axes[1, n].set_xlabel("million steps")
        axes[0, 0].set_ylabel("cost of an episode")
        axes[1, 0].set_ylabel("multiplier")
        most = int(np.argmax([len(seeds) for seeds in groups.values()]))
        axes[0, most].legend(frameon=False, fontsize=8)
        return save(figure, path)


def comparison_figure(
    groups: Mapping[str, Sequence[Course]], panels: Sequence[Panel], path: Path
) -> Path:
    """Panels side by side; in each, a colour per group: seeds thin, their mean thick."""
    with canvas(4.6 * len(panels), 3.4) as figure:
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for ax, panel in zip(axes, panels, strict=True):
            for n, (name, courses) in enumerate(groups.items()):
                colour, _, dash = CURVE_STYLES[n % len(CURVE_STYLES)]
                for course in courses:
                    _line(ax, course, panel.column, color=colour, linewidth=0.6, alpha=0.5)
                _line(ax, mean_course(courses), panel.column, color=colour, linewidth=2.2,
                      linestyle=dash, label=name)  # fmt: skip
            _finish(ax, panel)
            ax.set(xlabel="million steps", ylabel=panel.label)
        axes[0].legend(frameon=False, fontsize=8)
        return save(figure, path)


def mean_course(courses: Sequence[Course]) -> Course:
    """The mean over courses, as far as all of them go."""
    n = min(len(c.steps) for c in courses)
    columns = {
        name: np.mean([c.columns[name][:n] for c in courses], axis=0) for name in courses[0].columns
    }
    return Course(courses[0].steps[:n], columns)


def _line(ax: Any, course: Course, column: str, **style: Any) -> None:
    ax.plot(course.steps / MILLION, course.columns[column], **style)


def _finish(ax: Any, panel: Panel) -> None:
    ax.grid(axis="y", color=LINE, linewidth=0.6)
    ax.tick_params(length=0)
    if panel.limit is not None:
        ax.axhline(panel.limit, color=INK, linewidth=1.0, linestyle=":", label="limit")
    if all(np.min(line.get_ydata()) >= 0 for line in ax.lines):
        ax.set_ylim(bottom=0.0)
