"""The best of c_1..c_N on held-out demonstrations, without the truth.

Among the iterates whose learners earn at least what the experts earn, less one standard error,
the one whose learners violate the judging constraints least beyond the held-out experts: the
smallest gap_i = max_{c in judges} J(pi_i, c) - J(pi_E, c), on the mean of tasks. Where several
have none (gap_i <= 0: no constraint tells them from experts), the one that earns most: the
smallest gap would then prefer the overcautious. The rules differ in who judges:

    every-judge   all of c_1..c_N
    last-judge    c_N alone, as the answer to the most learners: an early c_i, fitted to a clone's
                  walk, finds fault with learners that keep the truth as the experts do. Nothing
                  was fitted to the experts' rewards, so those of all demonstrations count
    wide-margin   all of c_1..c_N, and a learner may earn less by 3 standard errors of the
                  difference: with one error and few episodes a maze's game chose its empty c_1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ringfence.game import Record
from ringfence.objects import Behaviour, J

#: Of the experts' reward: a soft-optimal learner strays, and loses a step, once in many million
#: episodes, while sampled experts never did.
REWARD_TOLERANCE = 1e-6
#: Standard errors of the difference by which a learner may earn less, by "wide-margin".
ERRORS = 3.0

Rule = Literal["every-judge", "last-judge", "wide-margin"]


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
    rule: Rule = "every-judge",
    everyone: Sequence[Behaviour] = (),
) -> Selection:
    """Choose among a game's records by held-out experts, one behaviour per task.

    everyone: all demonstrations, training and held-out, one behaviour per task ("last-judge").
    """
    if not records:
        raise ValueError("nothing to select from")
    K, last = len(heldout), rule == "last-judge"
    judges = [records[-1].c] if last else [record.c for record in records]
    experts = (everyone or heldout) if last else heldout
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
    if rule == "wide-margin":
        own = [np.sqrt(np.sum([pi.reward_se**2 for pi in r.learners])) / K for r in records]
        margin = [ERRORS * float(np.hypot(se, o)) for o in own]
    lowest = enough - REWARD_TOLERANCE * max(1.0, abs(enough))
    eligible = [n for n, r in enumerate(reward) if r >= lowest - margin[n]]
    best = choose(eligible, gap, reward)
    return Selection(records[best].i, tuple(gap), tuple(reward), enough, se, bool(eligible))


def choose(eligible: Sequence[int], gap: Sequence[float], reward: Sequence[float]) -> int:
    """Of the eligible the least violation, then the highest reward; if none is, the latter."""
    if not eligible:
        return int(np.argmax(reward))
    return min(eligible, key=lambda n: (max(gap[n], 0.0), -reward[n]))
