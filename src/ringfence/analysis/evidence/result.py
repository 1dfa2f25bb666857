"""The record that labelling leaves: labels with their reasons, in words and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis.evidence.moves import Mask
from ringfence.errors import InvalidInput

LABELS = ("allowed", "proven", "implicated", "unknown")
ALLOWED, PROVEN, IMPLICATED, UNKNOWN = range(4)
SCHEMA = 1

#: Standard errors by which a mean return may be too low, where there is chance in the world.
ERRORS = 3.0


@dataclass(frozen=True)
class Standing:
    """How a group of experts stands, and whether it testifies.

    paths: how many were sampled, None if the experts are known exactly; expert_return: J_E;
    shown: the best return that the allowed cells (or, without chance, one of its own paths) show
    to be possible, None if they show none; gap = shown - J_E > 0 means that they could have done
    better; bar: what an unvisited cell must beat to be held against them.
    """

    task: str
    start: int
    paths: int | None
    expert_return: float
    standard_error: float
    shown: float | None
    gap: float
    bar: float
    testifies: bool
    reason: str


@dataclass(frozen=True)
class Conflict:
    """Cells that can't all be allowed: with them, `task` from `start` has a `possible` return
    above what its experts earned. moves: the same as moves to a goal, if only goals pay
    (None otherwise, and for experts who did not arrive)."""

    cells: tuple[int, ...]
    task: str
    start: int
    possible: float
    expert_return: float
    moves: float | None
    expert_moves: float | None


@dataclass(frozen=True, eq=False)
class Evidence:
    """Labels of all cells, with their reasons.

    labels [S]: indices into LABELS; m [S]: the size of the smallest conflict set (1: proven, 0:
    none); m_exact [S]: whether that is certain: otherwise m is an upper bound, and an unknown
    cell is one for which the search was cut before it found a conflict set; witness [S]: which of
    `conflicts` shows it, -1 for none; doubtful: cells that fewer than min_paths paths visited.
    shape: cells are numbered row by row in it.
    """

    shape: tuple[int, ...]
    labels: NDArray[np.int8]
    m: NDArray[np.intp]
    m_exact: Mask
    witness: NDArray[np.intp]
    conflicts: tuple[Conflict, ...]
    standings: tuple[Standing, ...]
    doubtful: tuple[int, ...]
    min_paths: int
    suboptimality: float
    chance: bool

    @property
    def allowed(self) -> Mask:
        return np.asarray(self.labels == ALLOWED)

    @property
    def proven(self) -> Mask:
        return np.asarray(self.labels == PROVEN)

    @property
    def implicated(self) -> Mask:
        return np.asarray(self.labels == IMPLICATED)

    @property
    def unknown(self) -> Mask:
        return np.asarray(self.labels == UNKNOWN)

    @property
    def suspects(self) -> tuple[Standing, ...]:
        """The groups that do not testify."""
        return tuple(s for s in self.standings if not s.testifies)

    def counts(self) -> dict[str, int]:
        """The number of cells with each label."""
        return {name: int((self.labels == i).sum()) for i, name in enumerate(LABELS)}

    def name(self, cell: int) -> str:
        """A cell as people call it: "(3,4)"."""
        return f"({','.join(str(int(i)) for i in np.unravel_index(cell, self.shape))})"

    def names(self, cells: Sequence[int]) -> str:
        """Several cells in words: "(0,2), (0,3) and (0,4)"."""
        called = [self.name(cell) for cell in cells]
        return called[0] if len(called) == 1 else f"{', '.join(called[:-1])} and {called[-1]}"

    def why(self, cell: int) -> str:
        """The reason for a cell's label, as a sentence."""
        name, label = self.name(cell), int(self.labels[cell])
        if label == ALLOWED:
            return f"{name} is allowed: a demonstrator was there."
        if label == UNKNOWN:
            cut = "" if self.m_exact[cell] else " The search for one was cut short."
            return f"{name} is unknown: no demonstration speaks for or against it.{cut}"
        reason = self.explain(self.conflicts[self.witness[cell]])
        if label == PROVEN:
            return f"{name} is proven forbidden: {reason}"
        most = "" if self.m_exact[cell] else "at most "
        return f"{name} is implicated (m = {most}{self.m[cell]}): {reason}"

    def explain(self, conflict: Conflict) -> str:
        """What would follow if the cells of a conflict were allowed."""
        were = "were" if len(conflict.cells) == 1 else "were all"
        head = f"if {self.names(conflict.cells)} {were} allowed, {conflict.task} from "
        head += self.name(conflict.start)
        if conflict.moves is None:
            return (
                f"{head} could return {conflict.possible:.4g}, "
                f"the demonstrators' return was {conflict.expert_return:.4g}."
            )
        took = (
            "the demonstrators did not arrive"
            if conflict.expert_moves is None
            else f"the demonstrators took {conflict.expert_moves:.4g}"
        )
        return f"{head} could be reached in {conflict.moves:.4g} moves, {took}."

    def sentences(self) -> list[str]:
        """What the labels rest on, and what noise did to them."""
        return [*_on_suspects(self), *_on_visits(self), *_on_certainty(self)]

    def to_json(self) -> dict[str, Any]:
        """The evidence as plain JSON values; `from_json` reads it back."""
        return {
            "schema": SCHEMA,
            "shape": list(self.shape),
            "labels": [LABELS[i] for i in self.labels],
            "m": self.m.tolist(),
            "m_exact": self.m_exact.tolist(),
            "witness": self.witness.tolist(),
            "conflicts": [{**asdict(c), "cells": list(c.cells)} for c in self.conflicts],
            "standings": [asdict(s) for s in self.standings],
            "doubtful": list(self.doubtful),
            "min_paths": self.min_paths,
            "suboptimality": self.suboptimality,
            "chance": self.chance,
        }


def from_json(document: Mapping[str, Any]) -> Evidence:
    """The evidence that `to_json` wrote."""
    try:
        if document["schema"] != SCHEMA:
            raise InvalidInput(
                f"evidence: schema {document['schema']!r}, this version reads {SCHEMA}; "
                "label the demonstrations again"
            )
        conflicts = [{**c, "cells": tuple(c["cells"])} for c in document["conflicts"]]
        return Evidence(
            shape=tuple(document["shape"]),
            labels=np.array([LABELS.index(name) for name in document["labels"]], dtype=np.int8),
            m=np.array(document["m"], dtype=np.intp),
            m_exact=np.array(document["m_exact"], dtype=bool),
            witness=np.array(document["witness"], dtype=np.intp),
            conflicts=tuple(Conflict(**c) for c in conflicts),
            standings=tuple(Standing(**s) for s in document["standings"]),
            doubtful=tuple(document["doubtful"]),
            **{name: document[name] for name in ("min_paths", "suboptimality", "chance")},
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidInput(
            f"evidence: not a document that Ringfence wrote ({error!r}); label again"
        ) from error


def _on_suspects(evidence: Evidence) -> list[str]:
    if not evidence.suspects:
        return []
    said = [
        f"{len(evidence.suspects)} of {len(evidence.standings)} groups of demonstrations do not "
        "testify: nothing is proven from them."
    ]
    for s in evidence.suspects:
        gap = f" (by {s.gap:.4g})" if s.gap > 0 else ""
        said.append(f"{s.task} from {evidence.name(s.start)}: {s.reason}{gap}.")
    worst = max(s.gap for s in evidence.suspects)
    if worst > 0:
        said.append(
            "A group that shows to be slow only costs evidence, but one that is slow without "
            "showing it (no faster way through visited cells) is believed. State a suboptimality "
            f"a little above {worst:.4g} to hear these too, if you know that they lose no more."
        )
    return said


def _on_visits(evidence: Evidence) -> list[str]:
    if evidence.min_paths == 1:
        return [
            "A cell counts as allowed if one path visited it: a demonstrator who stepped on a "
            "forbidden cell makes it look allowed. If some do, raise min_paths."
        ]
    said = f"A cell counts as allowed if at least {evidence.min_paths} paths visited it."
    if evidence.doubtful:
        said += (
            f" {len(evidence.doubtful)} cells were visited by fewer and are doubtful: "
            f"{evidence.names(evidence.doubtful)}."
        )
    return [said]


def _on_certainty(evidence: Evidence) -> list[str]:
    said = []
    if evidence.chance:
        said.append(
            "There is chance in this world: a group must be beaten by more than "
            f"{ERRORS:g} standard errors of its mean return, so 'proven' is a statistical claim, "
            "and a demonstrator may have been carried into a forbidden cell."
        )
    unsettled = int((~evidence.m_exact & evidence.unknown).sum())
    bounds = int((~evidence.m_exact & evidence.implicated).sum())
    if unsettled:
        said.append(f"{unsettled} unknown cells: the search for a conflict was cut short.")
    if bounds:
        said.append(f"{bounds} implicated cells: m is an upper bound.")
    return said
