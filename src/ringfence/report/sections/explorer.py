"""The constraint of each iteration to look at: on a map or floor, a plane, or along one feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.objects import Array, NotHere
from ringfence.report import facts
from ringfence.report.cells import Cells
from ringfence.report.draw import svg_cells, svg_plane
from ringfence.report.markup import Markup, data_block, folded, muted, tag, titled
from ringfence.report.read import Run, View
from ringfence.report.text import plural
from ringfence.report.validate import CELL_VIEWS

TITLE = "The constraint, drawn"
MOST_VIEWS = 3  # more are folded


def section(run: Run) -> Markup | NotHere:
    if not run.rows:
        return NotHere(run.reason("views"))
    if not run.views:
        return NotHere("this world has no map, plane or line to draw it on")
    stages = [_stage(run, view, n) for n, view in enumerate(run.views)]
    if rest := stages[MOST_VIEWS:]:
        stages = [*stages[:MOST_VIEWS], folded(f"{plural(len(rest), 'more view')}", *rest)]
    says = [
        tag("div", [tag("p", line) for line in facts.iteration(run, n)], data_i=n + 1,
            class_=None if n + 1 == run.selected else "off")
        for n in range(len(run.rows))
    ]  # fmt: skip
    controls = tag(
        "div",
        _slider(run),
        _task_choice(run),
        _layer_choice(run),
        tag("div", says, class_="says", aria_live="polite"),
        class_="controls",
    )
    name, intro = _words(run)
    explorer = tag("div", tag("div", stages, class_="stages"), controls, id="explorer")
    return titled(name, muted(intro), explorer, data_block("data", _data(run)), name="the-map")


def _words(run: Run) -> tuple[str, str]:
    """A title, and how to read the drawing."""
    kind, columns = run.views[0].kind, run.views[0].columns
    if kind in CELL_VIEWS:
        return ("The map" if kind == "map" else "The floor"), (
            "Point at a cell, or focus the map and use the arrow keys, to read what is known "
            "about it. S is a start, a framed figure a goal."
        )
    key = "Experts orange, learners blue, the learned edge violet"
    key += "." if run.truth is None else ", the true one dotted."
    name = run.features[columns[0]].name
    return ("From above" if kind == "plane" else f"How {name} is spread"), key


def _stage(run: Run, view: View, n: int) -> Markup:
    if view.kind in CELL_VIEWS:
        assert run.cells is not None
        drawing = svg_cells.run_map(run, run.cells, facts.cell_facts(run, run.cells))
        tip = tag("div", id="tip", class_="off", role="status")
        return tag("div", drawing, tip, class_="stage card", id="stage")
    names = " and ".join(run.features[column].name for column in view.columns)
    if view.kind == "plane":
        x, y = view.columns
        drawing = svg_plane.from_above(run, (x, y), f"view-{n}")
    else:
        drawing = svg_plane.distribution(run, view.columns[0], f"view-{n}")
    return tag("div", tag("h3", names) if n else None, drawing, class_="stage card")


# Controls ----------------------------------------------------------------------------------------


def _slider(run: Run) -> Markup:
    chosen, count = run.selected, len(run.rows)
    name = tag(
        "label",
        "Iteration ",
        tag("output", f"{chosen} of {count}", id="shown"),
        tag("span", f"selected: {chosen}", class_="muted small", style="margin-left:.8em"),
        for_="iteration",
        class_="name",
    )
    play = tag("button", "Play", id="play", type="button", disabled=count == 1)
    slider = tag("input", id="iteration", type="range", min=1, max=count, step=1, value=chosen)
    return tag("div", name, tag("div", play, slider, class_="slider"))


def _task_choice(run: Run) -> Markup | None:
    if len(run.tasks) == 1:
        return None
    options = [tag("option", "all tasks", value="all")]
    options += [tag("option", name, value=k) for k, name in enumerate(run.tasks)]
    name = tag("label", "Task of experts and learners", for_="task", class_="name")
    return tag("div", name, tag("select", options, id="task"))


def _layer_choice(run: Run) -> Markup:
    """Switches for the layers that this run has, each with a sample of what it looks like."""
    cells = run.views[0].kind in CELL_VIEWS
    look = "cells" if cells else "plane"
    layers = [("constraint", "learned constraint of the iteration", True)]
    if run.walls is not None or run.truth is not None:
        layers.append(("truth", "true walls" if cells else "true constraint", True))
    layers.append(("paths", "experts' paths" if run.views[0].kind != "line" else "experts", True))
    if any(learner is not None for row in run.learners for learner in row):
        what = "learners' visits" if cells else "learners"
        layers.append(("visits", f"{what} in the iteration", not cells))
    if run.labels is not None and cells:
        words = "evidence: dot allowed, P proven, figure implicated, ? unknown"
        layers.append(("evidence", words, False))
    boxes = [
        tag(
            "label",
            tag("input", type="checkbox", value=name, checked=on),
            tag("svg", tag("use", href=f"#{look}-{name}"), aria_hidden="true"),
            tag("span", text),
            class_="layer",
        )
        for name, text, on in layers
    ]
    return tag("fieldset", tag("legend", "Layers"), boxes, id="layers")


# Data of the script ------------------------------------------------------------------------------


def _data(run: Run) -> dict[str, Any]:
    shown = {"selected": run.selected, "count": len(run.rows), "tasks": run.tasks}
    return shown if run.cells is None else shown | _cell_data(run, run.cells)


def _cell_data(run: Run, cells: Cells) -> dict[str, Any]:
    """What can be said about a cell in an iteration."""

    def sparse(table: Array) -> dict[int, float]:
        return {int(n): float(f"{table.flat[n]:.3g}") for n in np.flatnonzero(table > 5e-7)}

    tables = svg_cells.visit_tables(run, cells)
    return {
        "cols": cells.shape[1],
        "forbidden": ["".join("01"[int(f)] for f in m.forbidden.flat) for m in run.maps],
        "cost": [[float(f"{v:.4g}") for v in m.cost.flat] for m in run.maps],
        "visits": [{task: sparse(table) for task, table in row.items()} for row in tables],
    }
