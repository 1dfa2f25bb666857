"""The best of c_1..c_N on held-out demonstrations, without the truth.

Among the iterates whose learners earn at least what the experts earn, less one standard error,
the one whose learners violate the judging constraints least beyond the held-out experts: the
smallest gap_i = max_{c in judges} J(pi_i, c) - J(pi_E, c), on the mean of tasks. Where several
have none (gap_i <= 0: no constraint tells them from experts), the one that earns most: the
smallest gap would then prefer the overcautious.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringfence.game import Record
from ringfence.objects import Behaviour, Constraint, J

#: Of the experts' reward: a soft-optimal learner strays, and loses a step, once in many million
#: episodes, while sampled experts never did.
REWARD_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Selection:
    """The chosen iteration (as in Record.i), and what the choice was made from."""

    i: int
    gap: tuple[float, ...]
    reward: tuple[float, ...]
    expert_reward: float  # that was to be reached, less ..
    expert_reward_se: float  # .. this
    rewarding: bool  # False: no iterate earns enough, so the one that earns most was taken


def select(
    records: Sequence[Record],
    heldout: Sequence[Behaviour],
    *,
    judges: Sequence[Constraint] = (),
    experts: Sequence[Behaviour] = (),
    errors: float | None = None,
) -> Selection:
    """Choose among a game's records by held-out experts, one behaviour per task.

    judges: by default all constraints of the game, c_1..c_N. experts: whose reward is to be
    reached, by default that of the held-out. errors: by how many standard errors of the difference
    (learner's and experts') a learner may earn less; by default by one of the experts' alone.
    """
    if not records:
        raise ValueError("nothing to select from")
    K = len(heldout)
    judges, experts = judges or [record.c for record in records], experts or heldout
    expert_cost = [np.mean([J(pi_E, c) for pi_E in heldout]) for c in judges]
    gap = [
        max(
            float(np.mean([J(pi, c) for pi in record.learners]) - cost)
            for c, cost in zip(judges, expert_cost, strict=True)
        )
        for record in records
    ]
    reward = [float(np.mean([pi.reward for pi in record.learners])) for record in records]
    enough = float(np.mean([pi_E.reward for pi_E in experts]))
    se = float(np.sqrt(np.sum([pi_E.reward_se**2 for pi_E in experts])) / K)
    margin = [se] * len(records)
    if errors is not None:
        own = [np.sqrt(np.sum([pi.reward_se**2 for pi in r.learners])) / K for r in records]
        margin = [errors * float(np.hypot(se, o)) for o in own]
    lowest = enough - REWARD_TOLERANCE * max(1.0, abs(enough))
    eligible = [n for n, r in enumerate(reward) if r >= lowest - margin[n]]
    best = choose(eligible, gap, reward)
    return Selection(records[best].i, tuple(gap), tuple(reward), enough, se, bool(eligible))


def choose(eligible: Sequence[int], gap: Sequence[float], reward: Sequence[float]) -> int:
    """Of the eligible the least violation, then the highest reward; if none is, the latter."""
    if not eligible:
        return int(np.argmax(reward))
    return min(eligible, key=lambda n: (max(gap[n], 0.0), -reward[n]))
