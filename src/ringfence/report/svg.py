"""The map as inline SVG, in layers that the page's script shows and hides.

Every layer is in the page from the start: a `data-layer` names it, a `data-i` its iteration, a
`data-task` the task it belongs to (`data-only` if it is shown for that choice of task alone).
The class `off` hides an element; the script does nothing but move that class about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ringfence.objects import Array
from ringfence.report.labels import Labels
from ringfence.report.markup import Child, Markup, short, tag
from ringfence.report.read import Bools, Learned, RunData
from ringfence.worlds.grid import Cell

CELL = 40
MARGIN_X, MARGIN_Y = 28, 24
#: Visits per episode from which on a cell gets the next shade; a factor of about three each.
SHADES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
#: Paths are drawn beside each other, within this share of a cell around its middle.
LANES = 0.62
GOLDEN = 0.618033988749895


def run_map(run: RunData, labels: Labels | None, facts: Mapping[Cell, Sequence[str]]) -> Markup:
    """The map with all layers; what is shown at first is the selected iteration, all tasks."""
    chosen = run.summary["selected"]
    return _frame(
        run.shape,
        "The map: hover over a cell, or focus the map and use the arrow keys, to read about it.",
        _ground(run.shape),
        None if labels is None else evidence_tints(labels, off=True),
        _visit_layers(run),
        [constraint_layer(c.cost, c.forbidden, n, n != chosen) for n, c in _numbered(run)],
        _path_layers(run),
        None if run.walls is None else outline(run.walls, "truth"),
        places(run),
        None if labels is None else evidence_letters(labels, special(run), off=True),
        _cells(run.shape, facts),
        tag("rect", id="ring", class_="ring off"),
        id_="map",
        role="group",
    )


def evidence_map(run: RunData, labels: Labels) -> Markup:
    """A still map of the evidence with the selected constraint's outline on it."""
    return _frame(
        run.shape,
        "Evidence map: a dot is allowed, P proven, a number the size of the smallest conflict "
        "that implicates the cell, ? unknown.",
        _ground(run.shape),
        evidence_tints(labels),
        outline(run.selected.forbidden, "chosen"),
        places(run),
        evidence_letters(labels, special(run)),
        id_="evidence-map",
    )


def share_map(shape: tuple[int, int], share: Array, walls: Bools | None) -> Markup:
    """How many of several runs forbid each cell, in percent."""
    cells = [
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
    return _frame(shape, name, _ground(shape), tag("g", cells), drawn, texts, id_="share-map")


def _frame(
    shape: tuple[int, int], name: str, *children: Child, id_: str, role: str = "img"
) -> Markup:
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
        _patterns(id_),
        numbers,
        children,
        id=id_,
        class_="map",
        viewBox=" ".join(map(short, view)),
        style=f"--zoom:{short(zoom)}",
        role=role,
        aria_label=name,
    )


def _zoom(shape: tuple[int, int]) -> float:
    """How much larger than on a small map letters are drawn, so that they stay readable."""
    return max(1.0, max(shape) / 14)


def _every(count: int, zoom: float) -> range:
    """Rows or columns to number: all of a small map, some of a large one."""
    return range(0, count, 1 if zoom == 1 else 5)


def _patterns(owner: str) -> Markup:
    """Textures, so that nothing depends on colour alone."""
    hatch = tag(
        "pattern",
        tag("rect", width=8, height=8, class_="hatch-ground"),
        tag("line", x1=0, y1=0, x2=0, y2=8, class_="hatch-line"),
        id=f"{owner}-hatch",
        width=8,
        height=8,
        patternUnits="userSpaceOnUse",
        patternTransform="rotate(45)",
    )
    dots = tag(
        "pattern",
        tag("circle", cx=3, cy=3, r=0.9, class_="dots-dot"),
        id=f"{owner}-dots",
        width=8,
        height=8,
        patternUnits="userSpaceOnUse",
    )
    return tag("defs", hatch, dots)


def _box(r: int, c: int, inset: float = 0) -> dict[str, float]:
    side = float(CELL - 2 * inset)
    return {"x": c * CELL + inset, "y": r * CELL + inset, "width": side, "height": side}


def _ground(shape: tuple[int, int]) -> Markup:
    rows, cols = shape
    lines = "".join(f"M0 {r * CELL}H{cols * CELL}" for r in range(rows + 1))
    lines += "".join(f"M{c * CELL} 0V{rows * CELL}" for c in range(cols + 1))
    ground = tag("rect", class_="ground", x=0, y=0, width=cols * CELL, height=rows * CELL)
    return tag("g", ground, tag("path", class_="mesh", d=lines))


def _off(name: str, off: bool) -> str:
    return f"{name} off" if off else name


def _numbered(run: RunData) -> list[tuple[int, Learned]]:
    return list(enumerate(run.learned, start=1))


def constraint_layer(cost: Array, forbidden: Bools, i: int, off: bool) -> Markup:
    """c_i: one element per cell, hatched where it forbids; a lower cost is a paler hatch."""
    top = float(cost.max()) or 1.0

    def cell(r: int, c: int) -> Markup:
        kind = "forbidden" if forbidden[r, c] else "free"
        opacity = round(0.35 + 0.65 * float(cost[r, c]) / top, 2) if forbidden[r, c] else None
        return tag("rect", class_=kind, opacity=opacity, **_box(r, c))

    rows, cols = forbidden.shape
    cells = [cell(r, c) for r in range(rows) for c in range(cols)]
    return tag("g", cells, class_=_off("constraint", off), data_layer="constraint", data_i=i)


def _visit_layers(run: RunData) -> list[Markup]:
    layers = []
    for i, tables in enumerate(run.visits, start=1):
        known = [table for table in tables if table is not None]
        if len(known) == len(tables):
            mean = np.mean(known, axis=0)
            layers.append(_heat(mean, i, "all"))
        layers += [_heat(t, i, str(k)) for k, t in enumerate(tables) if t is not None]
    return layers


def _heat(visits: Array, i: int, task: str) -> Markup:
    """One path per shade: squares of all cells that are visited so often."""
    level = np.searchsorted(SHADES, visits, side="right")
    paths = []
    for shade in range(1, len(SHADES) + 1):
        cells = np.argwhere(level == shade)
        if len(cells):
            inset, side = 3, CELL - 6
            d = "".join(
                f"M{c * CELL + inset} {r * CELL + inset}h{side}v{side}h-{side}z" for r, c in cells
            )
            paths.append(tag("path", d=d, fill_opacity=round(0.9 * shade / len(SHADES), 2)))
    return tag("g", paths, class_="visits off", data_layer="visits", data_i=i, data_only=task)


def _path_layers(run: RunData) -> list[Markup]:
    """The experts' paths, a group per task; equal paths are one line, drawn thicker."""
    # Few paths are drawn strong, many pale, so that a corridor of all doesn't drown the rest.
    opacity = round(max(0.22, min(0.8, 3 / sum(map(len, run.paths)) ** 0.5)), 2)
    groups, drawn = [], 0
    for k, paths in enumerate(run.paths):
        lines = []
        for path, count in Counter(tuple(map(tuple, p)) for p in paths).items():
            drawn += 1
            width = 1.3 + 0.5 * min(count - 1, 4)
            lines.append(tag("path", d=_lane(path, drawn), stroke_width=width))
        groups.append(
            tag(
                "g",
                lines,
                class_="paths",
                stroke_opacity=opacity,
                data_layer="paths",
                data_task=k,
            )
        )
    return groups


def _lane(path: Sequence[tuple[int, ...]], n: int) -> str:
    """A path through the cells, shifted a little so that paths don't hide each other."""
    dx, dy = ((n * GOLDEN**power % 1 - 0.5) * LANES for power in (1, 2))
    points = [((c + 0.5 + dx) * CELL, (r + 0.5 + dy) * CELL) for r, c in path]
    if len(points) == 1:  # a zero-length line with round ends is a dot
        points *= 2
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def outline(region: Bools, kind: str) -> Markup:
    """The border of a set of cells."""
    padded = np.pad(region, 1)
    d = []
    for r, c in np.ndindex(region.shape[0] + 1, region.shape[1] + 1):
        x, y = c * CELL, r * CELL
        if padded[r, c + 1] != padded[r + 1, c + 1]:
            d.append(f"M{x} {y}h{CELL}")
        if padded[r + 1, c] != padded[r + 1, c + 1]:
            d.append(f"M{x} {y}v{CELL}")
    return tag("path", class_=f"outline {kind}", d="".join(d), data_layer=kind)


def special(run: RunData) -> dict[Cell, str]:
    """Starts and goals with the letter that the map has there."""
    lines = run.config.world.map
    return {cell: lines[cell[0]][cell[1]] for cell in (*run.world.starts, *run.world.goals)}


def places(run: RunData) -> list[Markup]:
    """Starts as discs, goals as squares, with their letters."""
    names = {name: k for k, name in enumerate(run.tasks)}
    tasks = {g: names.get(t.name) for g, t in zip(run.world.goals, run.world.tasks, strict=True)}
    drawn, zoom = [], _zoom(run.shape)
    for (r, c), letter in special(run).items():
        x, y = (c + 0.5) * CELL, (r + 0.5) * CELL
        if letter == "S":
            shape = tag("circle", cx=x, cy=y, r=11 * zoom)
        else:
            shape = tag("rect", rx=4 * zoom, **_box(r, c, inset=CELL / 2 - 10.5 * zoom))
        text = tag("text", letter, x=x, y=y + 4.5 * zoom, text_anchor="middle")
        kind = "place start" if letter == "S" else "place goal"
        drawn.append(tag("g", shape, text, class_=kind, data_goal=tasks.get((r, c))))
    return drawn


def evidence_tints(labels: Labels, off: bool = False) -> Markup:
    cells = [
        tag("rect", class_=f"tint {label.kind}", **_box(r, c))
        for (r, c), label in labels.cells.items()
    ]
    return tag("g", cells, class_=_off("evidence", off), data_layer="evidence")


def evidence_letters(labels: Labels, taken: Mapping[Cell, str], off: bool = False) -> Markup:
    """Each cell's letter, in the middle or, where a start or goal stands, in the corner."""
    texts = []
    for cell, label in labels.cells.items():
        corner = cell in taken
        if corner and label.kind == "allowed":
            continue
        if label.kind == "allowed":  # drawn, because fonts disagree about a middle dot
            x, y = (cell[1] + 0.5) * CELL, (cell[0] + 0.5) * CELL
            texts.append(tag("circle", class_="letter allowed", cx=x, cy=y, r=3.2))
        else:
            texts.append(_text(cell, label.letter, f"letter {label.kind}", corner))
    return tag("g", texts, class_=_off("evidence", off), data_layer="evidence")


def _text(cell: Cell, text: str, kind: str, corner: bool = False) -> Markup:
    x, y = (0.86, 0.92) if corner else (0.5, 0.62)
    r, c = cell
    return tag("text", text, class_=kind, x=(c + x) * CELL, y=(r + y) * CELL, text_anchor="middle")


def _cells(shape: tuple[int, int], facts: Mapping[Cell, Sequence[str]]) -> Markup:
    """Invisible cells on top that know what can be said about them."""
    cells = [
        tag(
            "rect",
            tag("title", "\n".join(facts[(r, c)])),
            class_="cell",
            data_cell=f"{r},{c}",
            **_box(r, c),
        )
        for r, c in np.ndindex(shape)
    ]
    return tag("g", cells, id="cells", tabindex=0, role="group", aria_label="cells of the map")
