"""evidence.json as the report shows it: a label for each cell, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence import LABELS, Evidence, Relation
from ringfence.errors import InvalidInput
from ringfence.report.cells import Bools
from ringfence.report.text import cell_name, figure_text, plural, some

SUGGESTED = 3  # so many demonstrations are suggested


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


@dataclass(frozen=True, eq=False)
class Labels:
    """The evidence of a run, its labels by cell, and the selected constraint against them.

    forbidden: the cells that the selected constraint forbids, in the map's shape; wishes: the
    demonstrations worth asking for, in words, None where the run did not look for any; remarks:
    what the run itself found about groups that a policy under the constraint could beat.
    """

    evidence: Evidence
    cells: dict[tuple[int, ...], Label]
    forbidden: Bools
    relation: Relation
    wishes: tuple[str, ...] | None
    remarks: tuple[str, ...]

    def count(self, kind: str) -> int:
        return self.evidence.counts()[kind]

    def region(self, kind: str) -> Bools:
        """The cells with a label, as `forbidden` has them."""
        mask = self.evidence.labels == LABELS.index(kind)
        return np.asarray(mask.reshape(self.forbidden.shape))


def make_labels(document: Mapping[str, Any], forbidden: Bools) -> Labels:
    """The labels in an evidence.json; forbidden: by the selected constraint, over the run's map."""
    try:
        evidence = evidences.from_json(document["evidence"])
        _check_indices(evidence, forbidden.shape)
        return Labels(
            evidence=evidence,
            cells={cell: _label(evidence, n) for n, cell in enumerate(np.ndindex(forbidden.shape))},
            forbidden=forbidden,
            relation=evidences.relate(evidence, forbidden.ravel()),
            wishes=_wishes(document, evidence),
            remarks=_remarks(document),
        )
    except (InvalidInput, KeyError, TypeError, ValueError, IndexError) as problem:
        cause = f"no entry {problem}" if isinstance(problem, KeyError) else str(problem)
        raise InvalidInput(
            f"evidence.json: not the evidence of this run ({cause}); write it again with "
            "'ringfence resume RUN'"
        ) from None


def _check_indices(evidence: Evidence, shape: tuple[int, ...]) -> None:
    """All that is looked up by number must be there."""
    count = math.prod(shape)
    if evidence.shape not in (shape, (count,)):
        raise ValueError(f"it is about {evidence.shape} cells, the map has {shape}")
    for name in ("labels", "m", "m_exact", "witness"):
        if getattr(evidence, name).shape != (count,):
            raise ValueError(f"{name} has not one entry for each of {count} cells")
    judged = evidence.proven | evidence.implicated
    if judged.any() and evidence.witness[judged].min() < 0:
        raise ValueError("a cell is judged without a witness")


def _label(evidence: Evidence, n: int) -> Label:
    why = f"Evidence: {evidence.why(n)}"
    kind, m, exact = LABELS[evidence.labels[n]], int(evidence.m[n]), bool(evidence.m_exact[n])
    return Label(kind, m, exact, why)


def _wishes(document: Mapping[str, Any], evidence: Evidence) -> tuple[str, ...] | None:
    """The same task through the same cells is one wish, from the best of its starts."""
    if document.get("next") is None:
        return None
    unknown = plural(int(evidence.unknown.sum()), "unknown cell")
    best: dict[tuple[str, str], str] = {}
    for wish in document["next"]:
        cells = some([cell_name(cell) for cell in wish["cells"]], 6)
        gain = f"{figure_text(float(wish['score']), 2)} of {unknown}"
        words = f"{wish['task']} from {cell_name(wish['start'])}: expected to settle {gain}"
        best.setdefault(
            (str(wish["task"]), cells), f"{words}, through {cells}." if cells else words
        )
    return tuple(best.values())[:SUGGESTED]


def _remarks(document: Mapping[str, Any]) -> tuple[str, ...]:
    relation = document.get("relation")
    sentences = relation.get("sentences", ()) if isinstance(relation, dict) else ()
    return tuple(text for text in map(str, sentences) if "could be beaten" in text)
