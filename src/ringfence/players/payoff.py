"""The player that says what demonstrations testify to under a stated budget.

Among the constraints of the class under which every task's experts stay within the budget, the one
that costs the learners most. For a threshold that is the tightest one that leaves the experts
their budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ringfence.constraints.cell_grid import CellConstraint
from ringfence.constraints.regions import RegionForm
from ringfence.constraints.written import Form, nothing_forbidden
from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour, Constraint
from ringfence.players.form_search import fit
from ringfence.players.patches import Patches, places
from ringfence.players.player import Ground, History, payoff


@dataclass(frozen=True)
class Config:
    """For classes with ?: of those that leave experts a budget, the costliest for learners.

    expert_budget: the cost that an expert's episode may have had under the constraint; of several
    limits at once each has it for itself.
    """

    kind: Literal["payoff"] = "payoff"
    expert_budget: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.expert_budget < np.inf:
            raise InvalidInput(f"the experts' budget must be at least 0, got {self.expert_budget}")


def make(config: Config, ground: Ground) -> PayoffPlayer:
    if ground.family.form is None:
        raise InvalidInput(
            f"[player] kind payoff is for inequalities such as 'speed <= ?'; for the class "
            f"{ground.family.text!r} use regression"
        )
    form, charged = ground.family.form, None
    if isinstance(form, RegionForm) and form.side == "outside" and config.expert_budget == 0:
        charged = places(ground, form.columns)
    return PayoffPlayer(form, ground.T, config.expert_budget, charged)


@dataclass(frozen=True)
class PayoffPlayer:
    """max_c sum_j J(pi_j, c) over {c in class : J(pi_E^k, c) <= budget for all k}.

    Of several limits at once each has the budget for itself. charged: for regions to stay out of,
    whose learners count by the places that are charged to them, each alike: where they rest would
    else count most, and any sliver that no demonstrator entered gains something.
    """

    form: Form
    T: float
    budget: float = 0.0
    charged: Patches | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.budget < np.inf:
            raise InvalidInput(f"the experts' budget must be at least 0, got {self.budget}")

    def initial(self) -> Constraint:
        return nothing_forbidden(self.form.features)

    def update(self, experts: Sequence[Behaviour], history: History) -> Constraint:
        learners = [pi for iteration in history for pi in iteration]
        if self.charged is not None:
            c = self.charged.update(experts, history)
            if not c.forbidden.any():
                return self.initial()
            learners = [met_once(c)]
        return fit(self.form, experts, learners, self.budget)

    def best_payoff(self, experts: Sequence[Behaviour], learners: Sequence[Behaviour]) -> float:
        c = self.update(experts, [learners])
        return payoff(c, experts, learners, self.T)


def met_once(c: CellConstraint) -> Behaviour:
    """Who was in the middle of every forbidden cell once."""
    at = np.argwhere(c.forbidden)
    features = np.zeros((len(at), len(c.features)))
    features[:, list(c.grid.columns)] = c.grid.low + c.grid.size * (at + 0.5)
    return Behaviour(features, np.ones(len(at)), 0.0, 0.0, float(len(at)), None)
