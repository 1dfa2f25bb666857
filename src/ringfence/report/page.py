"""report.html: one page about a run, complete in itself, and one over several runs.

The page is written from the run's files and holds everything it shows: charts and map layers are
SVG in the text, so that a program can check them, and a small script shows and hides them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.errors import InvalidInput
from ringfence.report import (
    animation,
    control_page,
    control_seeds,
    course,
    findings,
    seeds,
    svg,
    words,
)
from ringfence.report.alike import require_alike
from ringfence.report.control_read import is_control, read_control
from ringfence.report.labels import Labels, read_labels
from ringfence.report.markup import Markup, data_block, figure_text, tag
from ringfence.report.read import RunData, read_run, require_finished
from ringfence.report.shell import document, folded, section, tiles, versions_line
from ringfence.runs.files import write_file

NAME = "report.html"


def write(run: Path, out: Path | None = None) -> Path:
    """Write a finished run's page, by default its report.html, whole or not at all."""
    path = out or run / NAME
    write_file(path, render(run).encode())
    return path


def render(run: Path) -> str:
    """The page of a finished run."""
    if any((run / name).is_file() for name in ("solve.toml", "transfer.toml")):
        raise InvalidInput(
            f"{run}: not a game, so it has no page; what came of it is in its summary.json, "
            "curves.csv and pictures"
        )
    require_finished(run)
    if is_control(run):
        return control_page.render(read_control(run))
    data = read_run(run)
    ants = animation.walks(run, data) if data.config.world.simulator == "ant" else None
    return render_data(data, read_labels(data), ants)


def write_many(runs: Sequence[Path], out: Path) -> Path:
    """Write one page over several seeds of the same experiment."""
    require_alike(runs)
    if is_control(runs[0]):
        page = control_seeds.render([read_control(run) for run in runs])
    else:
        page = seeds.render([read_run(run) for run in runs])
    write_file(out, page.encode())
    return out


def render_data(run: RunData, labels: Labels | None, ants: Markup | None = None) -> str:
    """`ants` is a section of its own, between map and iterations."""
    body = [
        _head(run, labels),
        _map(run, labels),
        ants,
        course.iterations(run),
        findings.evidence(run, labels),
        findings.undetermined(run, labels),
        _reproduce(run),
    ]
    title = f"{run.summary['world']}: {words.rule(run)}"
    return document(title, body, data_block("data", _script_data(run)))


# ---------------------------------------------------------------------------------- the result


def _head(run: RunData, labels: Labels | None) -> Markup:
    s = run.summary
    return tag(
        "header",
        tag(
            "p",
            f"Ringfence \u00b7 {s['world']} \u00b7 {s['method']} \u00b7 seed {s['seed']}",
            class_="eyebrow",
        ),
        tag("h1", words.headline(run)),
        tag("p", words.lede(run), class_="lede"),
        tag("p", words.ending(run), class_="muted"),
        tiles(_figures(run, labels)),
        tag("p", run.selected.words, class_="words"),
    )


def _figures(run: RunData, labels: Labels | None) -> list[tuple[str, str]]:
    row = run.best
    expert_reward = figure_text(row["expert_reward_mean"])
    items = [
        (
            figure_text(row["learner_reward_mean"]),
            f"reward of the learners, experts {expert_reward}",
        )
    ]
    if run.walls is not None:
        expert_cost = figure_text(row["expert_true_cost_mean"])
        items.append(
            (
                figure_text(row["learner_true_cost_mean"]),
                f"steps in forbidden cells, experts {expert_cost}",
            )
        )
    iou = row["constraint"].get("iou")
    if iou is not None:
        items.append((f"{iou:.3f}".rstrip("0").rstrip("."), "overlap with the true walls (IoU)"))
    if labels is not None:
        items.append(findings.tile(run, labels))
    chosen, count = run.summary["selected"], words.plural(len(run.rows), "iteration")
    return [*items, (f"c{_subscript(chosen)}", f"selected of {count}")]


def _subscript(i: int) -> str:
    return "".join(chr(0x2080 + int(digit)) for digit in str(i))


# ------------------------------------------------------------------------------------- the map


def _map(run: RunData, labels: Labels | None) -> Markup:
    drawing = svg.run_map(run, labels, words.cell_facts(run, labels))
    stage = tag(
        "div",
        drawing,
        tag("div", id="tip", class_="off", role="status"),
        class_="stage card",
        id="stage",
    )
    says = [
        tag(
            "div",
            [tag("p", line) for line in words.iteration(run, n)],
            data_i=n + 1,
            class_=None if n + 1 == run.summary["selected"] else "off",
        )
        for n in range(len(run.rows))
    ]
    controls = tag(
        "div",
        _slider(run),
        _task_choice(run),
        _layer_choice(run, labels),
        tag("div", says, class_="says", aria_live="polite"),
        class_="controls",
    )
    intro = (
        "Point at a cell, or focus the map and use the arrow keys, to read what is known about it. "
        "S is a start, a framed figure a goal."
    )
    explorer = tag("div", stage, controls, id="explorer")
    return section("The map", tag("p", intro, class_="muted"), explorer, name="the-map")


def _slider(run: RunData) -> Markup:
    chosen, count = run.summary["selected"], len(run.rows)
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


def _task_choice(run: RunData) -> Markup:
    options = [tag("option", "all tasks", value="all")]
    options += [tag("option", name, value=k) for k, name in enumerate(run.tasks)]
    name = tag("label", "Task of paths and visits", for_="task", class_="name")
    return tag("div", name, tag("select", options, id="task"))


def _layer_choice(run: RunData, labels: Labels | None) -> Markup:
    """Switches for the layers that this run has, each with a sample of what it looks like."""
    layers = [("constraint", "learned constraint of the iteration", True)]
    if run.walls is not None:
        layers.append(("truth", "true walls", True))
    layers.append(("paths", "experts' paths", True))
    if any(table is not None for tables in run.visits for table in tables):
        layers.append(("visits", "learners' visits in the iteration", False))
    if labels is not None:
        layers.append(
            ("evidence", "evidence: dot allowed, P proven, figure implicated, ? unknown", False)
        )
    boxes = [
        tag(
            "label",
            tag("input", type="checkbox", value=name, checked=on),
            _sample(name),
            tag("span", text),
            class_="layer",
        )
        for name, text, on in layers
    ]
    return tag("fieldset", tag("legend", "Layers"), boxes, id="layers")


def _sample(layer: str) -> Markup:
    """A small picture of a layer's look, for the legend."""
    box: dict[str, Any] = {"x": 2, "y": 2, "width": 22, "height": 16}
    drawn: dict[str, list[Markup]] = {
        "constraint": [tag("rect", fill="url(#map-hatch)", **box)],
        "truth": [tag("rect", class_="outline truth", **box)],
        "paths": [tag("path", class_="paths", stroke_width=2, d="M2 16H13V6H24")],
        "visits": [
            tag("rect", class_="visits", fill_opacity=o, x=2 + 8 * n, y=2, width=7, height=16)
            for n, o in enumerate((0.25, 0.55, 0.9))
        ],
        "evidence": [
            tag("rect", class_="tint implicated", **box),
            tag("text", "P", class_="letter proven", x=13, y=15, text_anchor="middle"),
        ],
    }
    return tag("svg", drawn[layer], viewBox="0 0 26 20", aria_hidden="true")


def _script_data(run: RunData) -> dict[str, Any]:
    """What the script needs to say about a cell in an iteration."""

    def sparse(table: Any) -> dict[int, float]:
        return {int(n): float(f"{table.flat[n]:.3g}") for n in np.flatnonzero(table > 5e-7)}

    visits = []
    for tables in run.visits:
        known = {str(k): t for k, t in enumerate(tables) if t is not None}
        if len(known) == len(tables):
            known["all"] = np.mean(list(known.values()), axis=0)
        visits.append({k: sparse(t) for k, t in known.items()})
    return {
        "selected": run.summary["selected"],
        "count": len(run.rows),
        "cols": run.shape[1],
        "tasks": run.tasks,
        "forbidden": ["".join("01"[int(f)] for f in c.forbidden.flat) for c in run.learned],
        "cost": [[float(f"{v:.4g}") for v in c.cost.flat] for c in run.learned],
        "visits": visits,
    }


# ------------------------------------------------------------------------------- to reproduce


def _reproduce(run: RunData) -> Markup:
    exact = run.config.demos.experts == "exact"
    learned_from = (
        "The game learned from the experts' exact occupancies; the paths on the map are samples."
        if exact
        else "The game learned from the training trajectories that the map shows."
    )
    took = "" if run.seconds is None else f" The game took {figure_text(run.seconds)} s."
    return section(
        "Reproduce this",
        tag("p", f"The same command and versions give the same constraint, byte for byte.{took}"),
        tag("pre", run.config.command, class_="card"),
        tag("p", learned_from, class_="muted"),
        folded("Configuration (config.toml)", tag("pre", run.config_text)),
        tag("footer", _footer(run)),
        name="reproduce",
    )


def _footer(run: RunData) -> str:
    steps = run.summary["env_steps"]
    simulated = f" {steps:,} simulated steps." if steps else ""  # exact solvers simulate none
    return (
        f"Written with {versions_line(run.summary['versions'])}. "
        f"Demonstrations {run.config.demos.content_hash[:12]}.{simulated}"
    )
