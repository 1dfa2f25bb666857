"""What an analysis looks at: a game that was played, without any truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ringfence.analysis.evidence.groups import Group
from ringfence.constraints.family import Family
from ringfence.game import Record, weigh
from ringfence.objects import Behaviour, Constraint, NotHere, TaskDemos
from ringfence.players.player import ConstraintPlayer
from ringfence.selection import Selection
from ringfence.worlds.world import Cells


@dataclass(frozen=True, eq=False)
class Played:
    """family: the class; player: as it was in the game; demos, experts, heldout [K]; records, rows
    [N]: the iterations; chosen: the selected one; groups: the experts as evidence compares them, or
    why it can't; cells: the finite world underneath; resamples, seed: of the bootstrap."""

    family: Family
    player: ConstraintPlayer
    weighted: bool
    demos: Sequence[TaskDemos]
    experts: Sequence[Behaviour]
    heldout: Sequence[Behaviour]
    records: Sequence[Record]
    rows: Sequence[Mapping[str, Any]]
    chosen: Selection
    groups: Sequence[Group] | NotHere
    cells: Cells | None
    resamples: int
    seed: int

    @property
    def c(self) -> Constraint:
        """The selected constraint."""
        return self.records[self.chosen.i - 1].c

    @property
    def before(self) -> list[Sequence[Behaviour]]:
        """The learners that the selected constraint answers to, as the player saw them."""
        records = self.records[: self.chosen.i - 1]
        return [weigh(r.solutions) if self.weighted else r.shown for r in records]
