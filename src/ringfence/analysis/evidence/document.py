"""evidence.json: what the demonstrations determine, how the selected constraint relates to it,
and which demonstration to ask for next. No truth goes into it.

    {"schema", "evidence": the labels (evidence.result), "why": a sentence per cell,
     "sentences": what the labels rest on, "relation": the constraint against the labels,
     "next": [{"task", "start": [row, col], "score", "cells": [[row, col], ..]}, ..]}

On continuous worlds without "why", and each of "next" is {"words", "score", "start", "goal",
"cells"}, cells by their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence import Evidence, Group, Relation, Suggestion, ask, sampled
from ringfence.analysis.evidence.sampled import SampledEvidence
from ringfence.analysis.evidence.suggest import spread
from ringfence.constraints.boxes import largest_boxes
from ringfence.constraints.cell_grid import named_box
from ringfence.disk import read_json, reading
from ringfence.errors import InvalidInput
from ringfence.objects import Constraint
from ringfence.worlds.world import Cells

SCHEMA = 1
SUGGESTIONS = 5
MOST_GOALS = 100
NAMED = 3  # boxes of cells


def document(
    evidence: Evidence, groups: Sequence[Group], c: Constraint, cells: Cells
) -> dict[str, Any]:
    forbidden = cells.forbidden(c).ravel()
    return {
        "schema": SCHEMA,
        "evidence": evidence.to_json(),
        "why": [evidence.why(cell) for cell in range(len(evidence.labels))],
        "sentences": evidence.sentences(),
        "relation": _relation(evidence, evidences.relate(evidence, forbidden, groups)),
        "next": [_suggestion(evidence, s) for s in suggestions(evidence, forbidden, cells)],
    }


def suggestions(evidence: Evidence, forbidden: NDArray[np.bool_], cells: Cells) -> list[Suggestion]:
    """The best demonstrations to ask for: from allowed cells to allowed or unknown ones; where a
    world has no tasks of going to a cell, of its own tasks from other starts.

    A demonstrator who declines to go to an unknown cell says something about it, too. In a large
    world only some goals, evenly spread, are considered.
    """
    if not evidence.unknown.any():
        return []
    if cells.towards is None:
        return evidences.next_demonstrations(evidence, cells.tasks, forbidden)[:SUGGESTIONS]
    goals = np.flatnonzero(evidence.allowed | evidence.unknown)
    places = [_cell(evidence, int(state)) for state in spread(goals, MOST_GOALS)]
    candidates = [cells.towards(tuple(place), None) for place in places]
    return evidences.next_demonstrations(evidence, candidates, forbidden)[:SUGGESTIONS]


def _relation(evidence: Evidence, relation: Relation) -> dict[str, Any]:
    parts = ("contradicted", "confirmed", "implicated", "unknown", "missed")
    cells = {name: [_cell(evidence, state) for state in getattr(relation, name)] for name in parts}
    return {**cells, "sentences": list(relation.sentences)}


def _suggestion(evidence: Evidence, s: Suggestion) -> dict[str, Any]:
    return {
        "task": s.task,
        "start": _cell(evidence, s.start),
        "score": s.score,
        "cells": [_cell(evidence, state) for state in s.cells],
    }


def _cell(evidence: Evidence, state: int) -> list[int]:
    return [int(i) for i in np.unravel_index(state, evidence.shape)]


def sampled_document(
    evidence: SampledEvidence,
    c: Constraint | None,
    starts: NDArray[np.intp],
    met: NDArray[np.bool_],
) -> dict[str, Any]:
    """c: None where it is on more features than have cells, which then don't tell what it forbids;
    starts: cells where demonstrations begin; met [S]: where demonstrators or learners were."""
    nothing = np.zeros(len(evidence.labels), np.bool_)
    forbidden = nothing if c is None else forbidden_cells(evidence, c)
    found = ask.wishes(evidence, starts, met, forbidden, SUGGESTIONS)
    return {
        "schema": SCHEMA,
        "evidence": evidence.to_json(),
        "sentences": evidence.sentences(),
        "relation": None if c is None else sampled_relation(evidence, forbidden, met),
        "next": [
            {
                "words": f"from {evidence.name(w.start)} straight to {evidence.name(w.goal)}",
                "score": len(w.cells),
                "start": w.start,
                "goal": w.goal,
                "cells": list(w.cells),
            }
            for w in found
        ],
    }


def forbidden_cells(evidence: SampledEvidence, c: Constraint) -> NDArray[np.bool_]:
    """The cells [S] whose middle a constraint forbids."""
    grid = evidence.grid
    at = np.array(np.unravel_index(np.arange(len(evidence.labels)), grid.shape)).T
    phi = np.zeros((len(at), len(evidence.features)))
    phi[:, list(grid.columns)] = grid.low + grid.size * (at + 0.5)
    return np.asarray(c.cost(phi) > 0)


def sampled_relation(
    evidence: SampledEvidence, forbidden: NDArray[np.bool_], met: NDArray[np.bool_]
) -> dict[str, Any]:
    """A learned constraint against the labels: numbers of cells, and sentences."""
    parts = {
        "contradicted": (
            forbidden & evidence.allowed,
            "forbidden although a demonstrator was there",
        ),
        "confirmed": (forbidden & evidence.proven, "forbidden and proven to be"),
        "implicated": (
            forbidden & evidence.implicated,
            "forbidden by the learner's choice among cells that can't all be allowed",
        ),
        "unknown": (
            forbidden & evidence.unknown & met,
            "that learners entered, forbidden by the learner's choice: no demonstration speaks for "
            "or against",
        ),
        "missed": (
            ~forbidden & evidence.proven,
            "proven forbidden but not forbidden by the constraint",
        ),
    }
    said = [
        f"{int(mask.sum())} cells {words}: {boxes(evidence, mask)}."
        for mask, words in parts.values()
        if mask.any()
    ]
    beyond = int((forbidden & evidence.unknown & ~met).sum())
    if beyond:
        said.append(f"It forbids {beyond} more unknown cells, which nobody entered.")
    unexplained = sum(
        not forbidden[list(c.cells)].any() for c in evidence.conflicts if c.cells != c.border
    )
    if unexplained:
        said.append(
            f"{unexplained} known conflicts are unexplained: none of their cells is forbidden."
        )
    elif evidence.conflicts:
        said.append(
            "It explains every known conflict of unvisited cells: it forbids at least one of each."
        )
    counts = {name: int(mask.sum()) for name, (mask, _) in parts.items()}
    return {**counts, "beyond": beyond, "unexplained": unexplained, "sentences": said}


def boxes(evidence: SampledEvidence, mask: NDArray[np.bool_]) -> str:
    """The largest boxes of some cells, in words."""
    found = largest_boxes(mask.reshape(evidence.grid.shape), NAMED)
    named = "; ".join(named_box(evidence.grid, evidence.over, *box) for box in found)
    inside = sum(int(np.prod(np.subtract(end, first))) for first, end in found)
    return named + (f"; and {int(mask.sum()) - inside} more" if mask.sum() > inside else "")


def read(path: Path) -> Evidence | SampledEvidence:
    """The labels in a run's evidence.json."""
    fix = f"'ringfence resume {path.parent}' makes it again"
    with reading(path, fix):
        try:
            found = read_json(path, fix)["evidence"]
            return sampled.from_json(found) if "grid" in found else evidences.from_json(found)
        except InvalidInput as problem:
            raise ValueError(problem) from None
