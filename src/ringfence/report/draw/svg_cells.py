"""Maps and floors as inline SVG, in layers that the page's script shows and hides.

Every layer is in the page from the start: a `data-layer` names it, a `data-i` its iteration, a
`data-task` the task it belongs to (`data-only` if it is shown for that choice of task alone).
The class `off` hides an element; the script does nothing but move that class about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ringfence.objects import Array, Constraint
from ringfence.report.cell_labels import Labels
from ringfence.report.cells import Bools, Cell, Cells, Learned
from ringfence.report.draw.geometry import borders, lane, levels, thinned
from ringfence.report.markup import Child, Markup, polyline, short, tag
from ringfence.report.read import Run

CELL = 40
MARGIN_X, MARGIN_Y = 28, 24
#: Visits per episode from which on a cell gets the next shade; a factor of about three each.
SHADES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
LEVEL = 0.5  # of a network's cost: this line is drawn on floors
POINTS = 60  # of a walk on a floor

#: Frames of one round of the animation, and its seconds: some ten times faster than Ants walk.
FRAMES = 120
SECONDS = 7.0
RADIUS = 0.15  # of a cell, about the Ant's torso with its upper legs


# Whole maps --------------------------------------------------------------------------------------


def run_map(run: Run, cells: Cells, facts: Mapping[Cell, Sequence[str]]) -> Markup:
    """The map with all layers; what is shown at first is the selected iteration, all tasks."""
    labels = run.labels
    layers = [
        constraint_layer(cells, learned, c, i, off=i != run.selected)
        for i, (learned, c) in enumerate(zip(run.maps, run.learned, strict=True), start=1)
    ]
    return _frame(
        cells.shape,
        "The map: hover over a cell, or focus the map and use the arrow keys, to read about it.",
        None if labels is None else evidence_tints(labels, off=True),
        _visit_layers(run, cells),
        layers,
        _path_layers(run, cells),
        None if cells.walls is None else outline(cells.walls, "truth"),
        places(cells, run.tasks),
        None if labels is None else evidence_letters(labels, cells.letters, off=True),
        _targets(cells.shape, facts),
        tag("rect", id="ring", class_="ring off"),
        id_="map",
        role="group",
    )


def evidence_map(run: Run, cells: Cells, labels: Labels) -> Markup:
    """A still map of the evidence with the selected constraint's outline on it."""
    return _frame(
        cells.shape,
        "Evidence map: a dot is allowed, P proven, a number the size of the smallest conflict "
        "that implicates the cell, ? unknown.",
        evidence_tints(labels),
        outline(labels.forbidden, "chosen"),
        places(cells, run.tasks),
        evidence_letters(labels, cells.letters),
        id_="evidence-map",
    )


def share_map(shape: Cell, share: Array, walls: Bools | None) -> Markup:
    """How many of several runs forbid each cell, in percent."""
    tints = [
        tag(
            "rect",
            tag("title", f"row {r}, column {c}: forbidden in {100 * share[r, c]:.0f}% of the runs"),
            class_="forbidden" if share[r, c] == 1 else "share-tint",
            fill_opacity=None if share[r, c] == 1 else 0.6 * float(share[r, c]),
            **_box(r, c),
        )
        for r, c in np.ndindex(shape)
    ]
    texts = [
        _text((r, c), f"{100 * share[r, c]:.0f}", "share")
        for r, c in np.ndindex(shape)
        if 0 < share[r, c] < 1
    ]
    drawn = None if walls is None else outline(walls, "truth")
    name = "The share of runs that forbid each cell."
    return _frame(shape, name, tag("g", tints), drawn, texts, id_="share-map")


def walking(
    cells: Cells, learned: Learned, c: Constraint, paths: Sequence[Array], id_: str
) -> Markup:
    """The constraint, the true walls, and a dot that walks along each path of places [t, 2].

    It moves by itself, no script is needed. All start together; who has arrived waits.
    """
    longest = max(len(path) for path in paths)
    return _frame(
        cells.shape,
        f"{len(paths)} Ants walking through the maze, seen from above",
        constraint_layer(cells, learned, c),
        None if cells.walls is None else outline(cells.walls, "truth"),
        [moving_dot(path[:, ::-1] * CELL, longest, RADIUS * CELL) for path in paths],
        id_=id_,
    )


def _frame(shape: Cell, name: str, *children: Child, id_: str, role: str = "img") -> Markup:
    rows, cols = shape
    zoom = _zoom(shape)
    left, top = MARGIN_X * zoom, MARGIN_Y * zoom
    view = (-left, -top, cols * CELL + left + 6, rows * CELL + top + 6)
    numbers = [
        tag("text", c, class_="edge", x=(c + 0.5) * CELL, y=-8 * zoom, text_anchor="middle")
        for c in _every(cols, zoom)
    ] + [
        tag("text", r, class_="edge", x=-9 * zoom, y=(r + 0.5) * CELL + 4 * zoom, text_anchor="end")
        for r in _every(rows, zoom)
    ]
    return tag(
        "svg",
        numbers,
        _ground(shape),
        children,
        id=id_,
        class_="map",
        viewBox=" ".join(map(short, view)),
        style=f"--zoom:{short(zoom)}",
        role=role,
        aria_label=name,
    )


def _zoom(shape: Cell) -> float:
    """How much larger than on a small map letters are drawn, so that they stay readable."""
    return max(1.0, max(shape) / 14)


def _every(count: int, zoom: float) -> range:
    """Rows or columns to number: all of a small map, some of a large one."""
    return range(0, count, 1 if zoom == 1 else 5)


def _box(r: int, c: int, inset: float = 0) -> dict[str, float]:
    side = float(CELL - 2 * inset)
    return {"x": c * CELL + inset, "y": r * CELL + inset, "width": side, "height": side}


def _ground(shape: Cell) -> Markup:
    rows, cols = shape
    lines = "".join(f"M0 {r * CELL}H{cols * CELL}" for r in range(rows + 1))
    lines += "".join(f"M{c * CELL} 0V{rows * CELL}" for c in range(cols + 1))
    ground = tag("rect", class_="ground", x=0, y=0, width=cols * CELL, height=rows * CELL)
    return tag("g", ground, tag("path", class_="mesh", d=lines))


def _off(name: str, off: bool) -> str:
    return f"{name} off" if off else name


def _line(line: Array) -> str:
    """The `d` of a line of places (row, col)."""
    return polyline(line[:, ::-1] * CELL)


# Layers ------------------------------------------------------------------------------------------


def constraint_layer(
    cells: Cells, learned: Learned, c: Constraint, i: int | None = None, off: bool = False
) -> Markup:
    """c_i: one element per cell, hatched where it forbids; a lower cost is a paler hatch.

    On a floor the network's own line comes with it.
    """
    top = float(learned.cost.max()) or 1.0

    def cell(r: int, col: int) -> Markup:
        if not learned.forbidden[r, col]:
            return tag("rect", class_="free", **_box(r, col))
        opacity = round(0.35 + 0.65 * float(learned.cost[r, col]) / top, 2)
        return tag("rect", class_="forbidden", opacity=opacity, **_box(r, col))

    drawn = [cell(r, col) for r, col in np.ndindex(cells.shape)]
    if cells.layout is not None:
        lines = levels(c, cells.layout, LEVEL)
        drawn += [tag("path", class_="level", d=_line(line)) for line in lines]
    return tag("g", drawn, class_=_off("constraint", off), data_layer="constraint", data_i=i)


def _visit_layers(run: Run, cells: Cells) -> list[Markup]:
    layers = []
    for i, tables in enumerate(visit_tables(run, cells), start=1):
        layers += [_heat(table, i, task) for task, table in tables.items()]
    return layers


def visit_tables(run: Run, cells: Cells) -> list[dict[str, Array]]:
    """Per iteration: expected visits by the number of the task, and "all" where all are known."""
    found = []
    for learners in run.learners:
        tables = {
            str(k): cells.visits(learner.behaviour)
            for k, learner in enumerate(learners)
            if learner is not None
        }
        if len(tables) == len(learners):
            tables["all"] = np.mean(list(tables.values()), axis=0)
        found.append(tables)
    return found


def _heat(visits: Array, i: int, task: str) -> Markup:
    """One path per shade: squares of all cells that are visited so often."""
    level = np.searchsorted(SHADES, visits, side="right")
    paths, inset, side = [], 3, CELL - 6
    for shade in range(1, len(SHADES) + 1):
        d = "".join(
            f"M{c * CELL + inset} {r * CELL + inset}h{side}v{side}h-{side}z"
            for r, c in np.argwhere(level == shade)
        )
        if d:
            paths.append(tag("path", d=d, fill_opacity=round(0.9 * shade / len(SHADES), 2)))
    return tag("g", paths, class_="visits off", data_layer="visits", data_i=i, data_only=task)


def _path_layers(run: Run, cells: Cells) -> list[Markup]:
    """The experts' paths, a group per task."""
    # Few paths are drawn strong, many pale, so that a corridor of all doesn't drown the rest.
    opacity = round(max(0.22, min(0.8, 3 / sum(map(len, run.experts)) ** 0.5)), 2)
    groups, drawn = [], 0
    for k, experts in enumerate(run.experts):
        lines = _walks(cells, experts) if cells.layout else _lanes(cells, experts, drawn)
        drawn += len(lines)
        attributes = {"data_layer": "paths", "data_task": k, "stroke_opacity": opacity}
        groups.append(tag("g", lines, class_="paths", **attributes))
    return groups


def _walks(cells: Cells, experts: Sequence[Array]) -> list[Markup]:
    """Where they went on a floor."""
    lines = [_line(thinned(cells.places(phi), POINTS)) for phi in experts]
    return [tag("path", d=d, stroke_width=1.3) for d in lines]


def _lanes(cells: Cells, experts: Sequence[Array], drawn: int) -> list[Markup]:
    """Paths over a map; equal ones are one line, drawn thicker."""
    counts = Counter(tuple(map(tuple, cells.path(phi).tolist())) for phi in experts)
    lines = []
    for n, (path, count) in enumerate(counts.items(), start=drawn + 1):
        line = lane(path, n)
        if len(line) == 1:  # a zero-length line with round ends is a dot
            line = np.repeat(line, 2, axis=0)
        lines.append(tag("path", d=_line(line), stroke_width=1.3 + 0.5 * min(count - 1, 4)))
    return lines


def outline(region: Bools, kind: str) -> Markup:
    """The border of a set of cells."""
    d = "".join(
        f"M{c * CELL} {r * CELL}" + (f"h{CELL}" if r == r2 else f"v{CELL}")
        for (r, c), (r2, _) in borders(region)
    )
    return tag("path", class_=f"outline {kind}", d=d, data_layer=kind)


def places(cells: Cells, tasks: Sequence[str]) -> list[Markup]:
    """Starts as discs, goals as squares, with their letters."""
    drawn, zoom = [], _zoom(cells.shape)
    for (r, c), letter in cells.letters.items():
        x, y = (c + 0.5) * CELL, (r + 0.5) * CELL
        start = (r, c) in cells.starts
        if start:
            shape = tag("circle", cx=x, cy=y, r=11 * zoom)
        else:
            shape = tag("rect", rx=4 * zoom, **_box(r, c, inset=CELL / 2 - 10.5 * zoom))
        text = tag("text", letter, x=x, y=y + 4.5 * zoom, text_anchor="middle")
        goal = None if start else cells.task_of((r, c), tasks)
        kind = "place start" if start else "place goal"
        drawn.append(tag("g", shape, text, class_=kind, data_goal=goal))
    return drawn


def evidence_tints(labels: Labels, off: bool = False) -> Markup:
    tints = [
        tag("rect", class_=f"tint {label.kind}", **_box(r, c))
        for (r, c), label in labels.cells.items()
    ]
    return tag("g", tints, class_=_off("evidence", off), data_layer="evidence")


def evidence_letters(labels: Labels, taken: Mapping[Cell, str], off: bool = False) -> Markup:
    """Each cell's letter, in the middle or, where a start or goal stands, in the corner."""
    texts = []
    for (r, c), label in labels.cells.items():
        corner = (r, c) in taken
        if corner and label.kind == "allowed":
            continue
        if label.kind == "allowed":  # drawn, because fonts disagree about a middle dot
            x, y = (c + 0.5) * CELL, (r + 0.5) * CELL
            texts.append(tag("circle", class_="letter allowed", cx=x, cy=y, r=3.2))
        else:
            texts.append(_text((r, c), label.letter, f"letter {label.kind}", corner))
    return tag("g", texts, class_=_off("evidence", off), data_layer="evidence")


def _text(cell: Cell, text: str, kind: str, corner: bool = False) -> Markup:
    x, y = (0.86, 0.92) if corner else (0.5, 0.62)
    r, c = cell
    return tag("text", text, class_=kind, x=(c + x) * CELL, y=(r + y) * CELL, text_anchor="middle")


def _targets(shape: Cell, facts: Mapping[Cell, Sequence[str]]) -> Markup:
    """Invisible cells on top that know what can be said about them."""
    targets = [
        tag(
            "rect",
            tag("title", "\n".join(facts[(r, c)])),
            class_="cell",
            data_cell=f"{r},{c}",
            **_box(r, c),
        )
        for r, c in np.ndindex(shape)
    ]
    return tag("g", targets, id="cells", tabindex=0, role="group", aria_label="cells of the map")


def moving_dot(path: Array, longest: int, radius: float) -> Markup:
    """A dot that walks along a path of points (x, y) [t, 2], again and again."""
    at = np.minimum(np.linspace(0, longest - 1, FRAMES).astype(int), len(path) - 1)
    x, y = path[at].T

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
    return tag("circle", move("cx", x), move("cy", y), r=radius, class_="ant", **end)
