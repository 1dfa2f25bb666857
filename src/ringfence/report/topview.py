"""The Ant from above: where episodes went, over the constraint they were under."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringfence.constraints.linear import LinearConstraint
from ringfence.objects import Array, Trajectory
from ringfence.report.draw import EXPERT, FORBIDDEN
from ringfence.report.figures import canvas, picture_bytes

MARGIN = 1.0  # metres around the paths


def top_view(trajectories: Sequence[Trajectory], c: LinearConstraint, title: str) -> bytes:
    """A PNG of the paths in x and y (m). Steps that violate the constraint are marked.

    Where the constraint is on x and y alone, its forbidden side is shaded.
    """
    names = [f.name for f in c.features]
    x, y = names.index("x"), names.index("y")
    points = np.concatenate([t.features[:, [x, y]] for t in trajectories])
    low, high = points.min(axis=0) - MARGIN, points.max(axis=0) + MARGIN
    with canvas(7.0, 5.2) as figure:
        ax = figure.add_subplot()
        if not any(w for n, w in enumerate(c.weights) if n not in (x, y)):
            _shade(ax, c, (x, y), low, high)
        for t in trajectories:
            ax.plot(t.features[:, x], t.features[:, y], color=EXPERT, linewidth=0.8, alpha=0.6)
            bad = c.raw(t.features) > 0
            ax.scatter(t.features[bad, x], t.features[bad, y], s=3, color=FORBIDDEN, zorder=3)
        ax.set_xlim(low[0], high[0])
        ax.set_ylim(low[1], high[1])
        ax.set_aspect("equal", adjustable="box")
        ax.set_xlabel("x, m")
        ax.set_ylabel("y, m")
        ax.set_title(title)
        return picture_bytes(figure, ".png")


def _shade(
    ax: object, c: LinearConstraint, columns: tuple[int, int], low: Array, high: Array
) -> None:
    grid = np.meshgrid(np.linspace(low[0], high[0], 200), np.linspace(low[1], high[1], 200))
    phi = np.zeros((grid[0].size, len(c.features)))
    phi[:, columns[0]], phi[:, columns[1]] = grid[0].ravel(), grid[1].ravel()
    raw = c.raw(phi).reshape(grid[0].shape)
    ax.contourf(*grid, raw, levels=[0, np.inf], colors=[FORBIDDEN], alpha=0.14)  # type: ignore[attr-defined]
