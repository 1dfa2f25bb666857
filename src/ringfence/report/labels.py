"""evidence.json as the report shows it: a label for each cell, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ringfence.report.read import RunData
from ringfence.worlds.grid import Cell

Kind = Literal["allowed", "proven", "implicated", "unknown"]
KINDS: tuple[Kind, ...] = ("allowed", "proven", "implicated", "unknown")


@dataclass(frozen=True)
class Label:
    """What the demonstrations say about a cell; `words` is the sentence that says why."""

    kind: Kind
    m: int | None
    words: str

    @property
    def letter(self) -> str:
        if self.kind == "implicated":
            return str(self.m)
        return {"allowed": "\u00b7", "proven": "P", "unknown": "?"}[self.kind]


@dataclass(frozen=True)
class Labels:
    cells: dict[Cell, Label]

    def count(self, kind: Kind) -> int:
        return sum(label.kind == kind for label in self.cells.values())


def read_labels(run: RunData) -> Labels | None:
    return None
