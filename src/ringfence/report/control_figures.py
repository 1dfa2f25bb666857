"""Pictures of runs on continuous worlds: courses over seeds, and paths from above."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from ringfence import demos as demonstrations
from ringfence.constraints import files as constraint_files
from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.objects import Array
from ringfence.report.draw import EXPERT, FORBIDDEN, INK, LEARNER, Curve, draw_curves
from ringfence.report.figures import canvas, picture_bytes
from ringfence.runs.files import write_file

Summary = dict[str, Any]
SHOWN = 3  # iterations in the picture of paths
EXPERT_PATHS = 10
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
            draw_curves(ax, [parameter_curve(summaries, name)], "iteration", f"learned {name}")
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
    """What the truth has in the place of a learned parameter."""
    value = (summary["true_parameters"] or {}).get(name)
    return None if value is None else float(value)


# From above ------------------------------------------------------------------------------------


def is_planar(summary: Summary) -> bool:
    """Is the constraint on x and y?"""
    return set(summary["used"]) == {"x", "y"}


def paths(run: Path, path: Path) -> None:
    """First, middle and last iteration from above: learners' paths, learned and true edge."""
    summary = json.loads((run / "summary.json").read_text())
    rows = summary["iterations"]
    count = len(rows)
    chosen = sorted({0, (count - 1) // 2, count - 1})[:SHOWN]
    experts = expert_paths(run)
    with canvas(3.4 * len(chosen), 3.4) as figure:
        axes = figure.subplots(1, len(chosen), squeeze=False, sharex=True, sharey=True)[0]
        for ax, n in zip(axes, chosen, strict=True):
            learned = constraint_files.load(run / f"constraints/c_{n:03d}")
            assert isinstance(learned, LinearConstraint)
            learners = episode_paths(run, rows[n]["ledger"][0])
            panel(ax, experts, learners, learned, summary["truth"])
            ax.set_title(f"iteration {rows[n]['i']}: {learned.describe()}", fontsize=8)
            ax.set_xlabel("x, m")
        axes[0].set_ylabel("y, m")
        axes[0].legend(frameon=False, fontsize=7, loc="upper left")
        write_file(path, picture_bytes(figure, path.suffix))


def panel(
    ax: Any,
    experts: Sequence[Array],
    learners: Sequence[Array],
    learned: LinearConstraint,
    truth: str | None,
) -> None:
    """Paths [t, 2] in x and y, with the edges of what is forbidden."""
    for group, colour, label in ((experts, EXPERT, "experts"), (learners, LEARNER, "learners")):
        for n, xy in enumerate(group):
            ax.plot(*xy.T, color=colour, linewidth=0.7, alpha=0.6, label=label if n == 0 else None)
    points = np.concatenate([*experts, *learners])
    low, high = points.min(axis=0) - MARGIN, points.max(axis=0) + MARGIN
    draw_edge(ax, learned, low, high, color=FORBIDDEN, linewidth=1.6, label="learned")
    if truth:
        true = parse_inequality(truth, learned.features)
        draw_edge(ax, true, low, high, color=INK, linewidth=1.2, linestyle=":", label="truth")
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])


def draw_edge(ax: Any, c: LinearConstraint, low: Array, high: Array, **style: Any) -> None:
    ends = edge(c, low, high)
    if ends is not None:
        ax.plot(*ends.T, **style)


def edge(c: LinearConstraint, low: Array, high: Array) -> Array | None:
    """The line raw = 0 in x and y across a box, as two points [2, 2]; None if there is none."""
    names = [f.name for f in c.features]
    a, b = (float(c.weights[names.index(name)]) for name in ("x", "y"))
    if a == b == 0:
        return None
    if abs(b) >= abs(a):
        x = np.array([low[0], high[0]])
        return np.column_stack([x, (c.offset - a * x) / b])
    y = np.array([low[1], high[1]])
    return np.column_stack([(c.offset - b * y) / a, y])


def expert_paths(run: Path) -> list[Array]:
    given = demonstrations.load(run / "demos")
    columns = xy_columns([f.name for f in given.features])
    return [t.features[:, columns] for t in given.tasks[0].train[:EXPERT_PATHS]]


def episode_paths(run: Path, ledger: str) -> list[Array]:
    """The kept episodes of a solve, in x and y."""
    document = json.loads((run / "constraints/c_000/constraint.json").read_text())
    columns = xy_columns([f["name"] for f in document["features"]])
    arrays = safetensors.numpy.load_file(run / "episodes" / ledger / "episodes.safetensors")
    return [np.asarray(arrays[k], np.float64)[:, columns] for k in sorted(arrays, key=int)]


def xy_columns(names: Sequence[str]) -> list[int]:
    return [names.index("x"), names.index("y")]
