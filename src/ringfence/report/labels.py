"""evidence.json as the report shows it: a label for each cell, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence import LABELS, Evidence, Relation
from ringfence.errors import InvalidInput
from ringfence.report.read import Bools, RunData
from ringfence.worlds.grid import Cell


@dataclass(frozen=True)
class Label:
    """What the demonstrations say about a cell; `words` is the sentence that says why.

    kind: one of LABELS; m: the size of the smallest conflict set, an upper bound if not `exact`.
    """

    kind: str
    m: int
    exact: bool
    words: str

    @property
    def letter(self) -> str:
        if self.kind == "implicated":
            return str(self.m) if self.exact else f"\u2264{self.m}"
        return {"allowed": "\u00b7", "proven": "P", "unknown": "?"}[self.kind]


@dataclass(frozen=True)
class Suggestion:
    """A demonstration to ask for: of a task from a cell, and the unknown cells it would settle."""

    task: str
    start: Cell
    score: float
    cells: tuple[Cell, ...]


@dataclass(frozen=True, eq=False)
class Labels:
    """The evidence of a run, its labels by cell, and the selected constraint against them.

    suggestions is None where the run did not look for any.
    """

    evidence: Evidence
    cells: dict[Cell, Label]
    relation: Relation
    suggestions: tuple[Suggestion, ...] | None
    remarks: tuple[str, ...]

    def count(self, kind: str) -> int:
        return self.evidence.counts()[kind]

    def region(self, kind: str) -> Bools:
        """The cells with a label, [rows, cols]."""
        mask = self.evidence.labels == LABELS.index(kind)
        return np.asarray(mask.reshape(self.evidence.shape))


def read_labels(run: RunData) -> Labels | None:
    """The labels of a run, None if it has no evidence."""
    if run.evidence is None:
        return None
    try:
        evidence = evidences.from_json(run.evidence["evidence"])
        _check_indices(evidence, run.shape)
        return Labels(
            evidence=evidence,
            cells={cell: _label(evidence, n) for n, cell in enumerate(np.ndindex(run.shape))},
            relation=evidences.relate(evidence, run.selected.forbidden),
            suggestions=_suggestions(run.evidence),
            remarks=_remarks(run.evidence),
        )
    except (InvalidInput, KeyError, TypeError, ValueError, IndexError) as problem:
        cause = f"no entry {problem}" if isinstance(problem, KeyError) else str(problem)
        raise InvalidInput(
            f"evidence.json: not the evidence of this run ({cause}); write it again with "
            "'ringfence resume RUN'"
        ) from None


def _check_indices(evidence: Evidence, shape: tuple[int, int]) -> None:
    """All that is looked up by number must be there."""
    count = shape[0] * shape[1]
    if evidence.shape != shape:
        raise ValueError(f"it is about {evidence.shape} cells, the map has {shape}")
    for name in ("labels", "m", "m_exact", "witness"):
        if getattr(evidence, name).shape != (count,):
            raise ValueError(f"{name} has not one entry for each of {count} cells")
    judged = evidence.proven | evidence.implicated
    if judged.any() and evidence.witness[judged].min() < 0:
        raise ValueError("a cell is judged without a witness")


def _label(evidence: Evidence, n: int) -> Label:
    return Label(
        kind=LABELS[evidence.labels[n]],
        m=int(evidence.m[n]),
        exact=bool(evidence.m_exact[n]),
        words=f"Evidence: {evidence.why(n)}",
    )


def _suggestions(document: Mapping[str, Any]) -> tuple[Suggestion, ...] | None:
    listed = document.get("next")
    if listed is None:
        return None

    def cell(pair: Sequence[int]) -> Cell:
        row, col = pair
        return int(row), int(col)

    return tuple(
        Suggestion(
            str(s["task"]), cell(s["start"]), float(s["score"]), tuple(map(cell, s["cells"]))
        )
        for s in listed
    )


def _remarks(document: Mapping[str, Any]) -> tuple[str, ...]:
    """What the run itself noted about the constraint and the labels."""
    relation = document.get("relation")
    sentences: Sequence[Any] = relation.get("sentences", ()) if isinstance(relation, dict) else ()
    return tuple(str(sentence) for sentence in sentences)
