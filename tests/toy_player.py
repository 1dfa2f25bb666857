"""A constraint player in one file: it forbids where learners were, by a margin, more than experts.

Kind "toy_player:make".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ringfence.constraints.table import TableConstraint, visit_table
from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour, Feature
from ringfence.players.player import Ground, History, payoff


@dataclass(frozen=True)
class Config:
    """margin: visits per episode, on the mean of tasks."""

    kind: Literal["toy_player:make"] = "toy_player:make"
    margin: float = 0.1


def make(config: Config, ground: Ground) -> Counting:
    shape = getattr(ground.family.convex, "shape", None)
    if shape is None:
        raise InvalidInput("[player] kind toy_player:make counts visits to cells")
    return Counting(ground.family.features, shape, ground.T, config.margin)


@dataclass(frozen=True)
class Counting:
    features: tuple[Feature, ...]
    shape: tuple[int, ...]
    T: float
    margin: float

    def initial(self) -> TableConstraint:
        return TableConstraint(self.features, np.zeros(self.shape))

    def update(self, experts: Sequence[Behaviour], history: History) -> TableConstraint:
        learners = [pi for iteration in history for pi in iteration]
        theirs, ours = (
            np.mean([visit_table(pi, self.shape) for pi in group], axis=0)
            for group in (experts, learners)
        )
        forbidden = (ours > theirs + self.margin) & (theirs == 0)
        return TableConstraint(self.features, forbidden.astype(float))

    def best_payoff(self, experts: Sequence[Behaviour], learners: Sequence[Behaviour]) -> float:
        return payoff(self.update(experts, [learners]), experts, learners, self.T)
