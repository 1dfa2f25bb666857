"""Ants walking in a maze from above, as SVG that moves by itself: no script is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.constraints import files as constraint_files
from ringfence.objects import Array, Constraint
from ringfence.report.markup import Markup, short, tag
from ringfence.report.read import Bools, RunData
from ringfence.report.shell import section
from ringfence.runs.ledger import Ledger
from ringfence.worlds.sim.floor import CELL, Layout

#: Frames of one round, and its seconds: some ten times faster than the Ants walk.
FRAMES = 120
SECONDS = 7.0
RADIUS = 0.6  # m, about the Ant's torso with its upper legs
#: The network's line that is drawn, and its points per side of a cell.
LEVEL, FINE = 0.5, 8


def walks(run: Path, data: RunData) -> Markup:
    """The Ants of the first and of the last iteration, under their constraints."""
    last = len(data.rows) - 1
    figures = []
    for n, words in ((0, "iteration 1"), (last, f"iteration {last + 1}")):
        paths = _paths(Ledger(run / "ledger"), data.rows[n])
        if not paths:
            continue
        c = constraint_files.load(run / f"constraints/c_{n:03d}")
        drawing = walking(Layout(data.shape), data.learned[n].forbidden, data.walls, paths, c)
        cost = data.rows[n]["learner_true_cost_mean"]
        spent = "" if cost is None else f", {cost:.1f} steps per episode in walls"
        flagged = int(data.learned[n].forbidden.sum())
        caption = f"Under the constraint of {words}: {flagged} cells flagged{spent}."
        figures.append(tag("figure", drawing, tag("figcaption", caption), class_="card"))
    intro = (
        "One Ant per task and start, ten times faster than they walk. Violet: cells that the "
        "planner goes around; violet line: cost 0.5 of the network; outlined: the true walls."
    )
    return section(
        "The Ants", tag("p", intro, class_="muted"), tag("div", figures, class_="two"), name="ants"
    )


def _paths(ledger: Ledger, row: Mapping[str, Any]) -> list[Array]:
    """The first episode from each start of each task, as far as the ledger has them."""
    found = []
    for name in row.get("ledger") or []:
        solution = ledger.get(name) if isinstance(name, str) and name.isalnum() else None
        if solution is None:
            continue
        policy = solution.policy
        xy = np.asarray(policy["xy"], np.float64)
        episodes = np.split(xy, np.cumsum(np.asarray(policy["length"], np.intp))[:-1])
        _, first = np.unique(np.asarray(policy["start"]), return_index=True)
        found += [episodes[n] for n in first]
    return found


def walking(
    layout: Layout, flagged: Bools, walls: Bools | None, paths: Sequence[Array], c: Constraint
) -> Markup:
    """Flagged cells, the true walls, the network's line, and a dot that walks along each path.

    All start together; who has arrived waits for the others.
    """
    rows, cols = layout.shape
    width, height = cols * CELL, rows * CELL
    longest = max(len(path) for path in paths)
    return tag(
        "svg",
        tag("rect", x=0, y=0, width=width, height=height, class_="floor"),
        [_square(int(r), int(col), "flagged") for r, col in np.argwhere(flagged)],
        [] if walls is None else [_square(int(r), int(k), "wall") for r, k in np.argwhere(walls)],
        [tag("path", d=line, class_="level") for line in level_lines(layout, c)],
        [_ant(path, longest, width, height) for path in paths],
        viewBox=f"-0.5 -0.5 {short(width + 1)} {short(height + 1)}",
        class_="walking",
        role="img",
        aria_label=f"{len(paths)} Ants walking through the maze, seen from above",
    )


def _square(row: int, col: int, name: str) -> Markup:
    return tag("rect", x=col * CELL, y=row * CELL, width=CELL, height=CELL, class_=name)


def level_lines(layout: Layout, c: Constraint) -> list[str]:
    """Where the cost is LEVEL, as SVG paths in metres from the map's upper left corner."""
    from contourpy import contour_generator

    rows, cols = layout.shape
    x = np.linspace(0, cols * CELL, FINE * cols + 1)
    y = np.linspace(0, rows * CELL, FINE * rows + 1)
    right, down = np.meshgrid(x, y)
    points = np.stack([right - cols * CELL / 2, rows * CELL / 2 - down], axis=-1).reshape(-1, 2)
    lines = contour_generator(x, y, c.cost(points).reshape(right.shape)).lines(LEVEL)
    return ["M" + "L".join(f"{short(a)} {short(b)}" for a, b in np.array(line)) for line in lines]


def _ant(path: Array, longest: int, width: float, height: float) -> Markup:
    at = np.minimum(np.linspace(0, longest - 1, FRAMES).astype(int), len(path) - 1)
    x, y = path[at, 0] + width / 2, height / 2 - path[at, 1]

    def move(name: str, values: Array) -> Markup:
        return tag(
            "animate",
            attributeName=name,
            values=";".join(short(float(v)) for v in values),
            dur=f"{SECONDS:g}s",
            repeatCount="indefinite",
        )

    # Where nothing moves (a printed page) the dot stands at the path's end.
    end = {"cx": float(x[-1]), "cy": float(y[-1])}
    return tag("circle", move("cx", x), move("cy", y), r=RADIUS, class_="ant", **end)
