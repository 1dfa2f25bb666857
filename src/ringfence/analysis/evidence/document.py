"""evidence.json: what the demonstrations determine, how the selected constraint relates to it,
and which demonstration to ask for next. No truth goes into it.

    {"schema", "evidence": the labels (evidence.result), "why": a sentence per cell,
     "sentences": what the labels rest on, "relation": the constraint against the labels,
     "next": [{"task", "start": [row, col], "score", "cells": [[row, col], ..]}, ..]}
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence import Evidence, Group, Relation, Suggestion
from ringfence.analysis.evidence.suggest import spread
from ringfence.disk import read_json, reading
from ringfence.errors import InvalidInput
from ringfence.objects import Constraint
from ringfence.worlds.world import Cells

SCHEMA = 1
SUGGESTIONS = 5
MOST_GOALS = 100


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


def read(path: Path) -> Evidence:
    """The labels in a run's evidence.json."""
    fix = f"'ringfence resume {path.parent}' makes it again"
    with reading(path, fix):
        try:
            return evidences.from_json(read_json(path, fix)["evidence"])
        except InvalidInput as problem:
            raise ValueError(problem) from None
