"""Which of c_1..c_N is handed back, without the truth: one rule for every world.

    The constraint that leaves the fewest known conflicts unexplained; among equals the one that
    charges the most learners who show something; then the one whose own learners earn what the
    demonstrators do, within their limit, on the most tasks; then the last.

A known *conflict* is a learner of any iteration, or one without a constraint, that earns more than
the demonstrators of its task: if these are the best that a constraint allows, it must charge that
learner. A learner *shows something* if it is one of the first, or earns what the demonstrators do
and no less than every learner of the task before it (objects.telling). A constraint *charges* a
learner whose episode costs more under it than those of the demonstrators, held-out ones included:
what it forbids to both explains nothing.

Constraints are judged, by everybody that is known, and not only by the learners that they happened
to have: one that was trained too briefly says little about its constraint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.game import Record
from ringfence.objects import REWARD_TOLERANCE, Array, Behaviour, Constraint, J, earns, telling

#: What a step has to cost beyond the demonstrators', on average over an episode, to be a charge: a
#: limit of 0 is approached by learning, and never reached.
PER_STEP = 0.01


@dataclass(frozen=True)
class Selection:
    """The chosen iteration (as in Record.i), and what the choice was made from.

    learners: all that are known, conflicts: those of them that earn more than the demonstrators;
    of each iterate unexplained: the conflicts that it doesn't charge, charged: the learners that it
    does, of those that show something, done_well: the tasks on which its own learner earns
    enough within its limit, reward: its learners' mean; expert_reward: the demonstrators', with its
    standard error; rewarding: do the chosen iterate's learners earn that, less the error?
    """

    i: int
    learners: int
    conflicts: int
    unexplained: tuple[int, ...]
    charged: tuple[int, ...]
    done_well: tuple[int, ...]
    reward: tuple[float, ...]
    expert_reward: float
    expert_reward_se: float
    rewarding: bool


def select(
    records: Sequence[Record],
    experts: Sequence[Behaviour],
    heldout: Sequence[Behaviour],
    free: Sequence[Behaviour] = (),
) -> Selection:
    """Choose among a game's records by all demonstrators and all learners.

    experts, heldout [K]: training and held-out demonstrations of each task; free [K]: learners
    without a constraint, where some were tried.
    """
    if not records:
        raise ValueError("nothing to select from")
    sides = (experts, heldout)
    before = [free] if free else []
    known = [*before, *(record.learners for record in records)]
    shown = [pooled(*pair) for pair in zip(*sides, strict=True)]
    of = len(known) * len(shown)
    earned = np.array(
        [[earns(pi, *task, of) for pi, task in zip(g, shown, strict=True)] for g in known]
    )
    charges = np.array([charged(record.c, known, sides) for record in records])
    unexplained = ((earned > 0) & ~charges).sum(axis=(1, 2))
    shows = telling(known, [mean for mean, _, _ in shown])
    count = (shows & charges).sum(axis=(1, 2))
    done_well = [
        int(((own >= 0) & keeps_limit(record, sides)).sum())
        for own, record in zip(earned[len(before) :], records, strict=True)
    ]
    best = max(range(len(records)), key=lambda n: (-unexplained[n], count[n], done_well[n], n))
    reward = [float(np.mean([pi.reward for pi in record.learners])) for record in records]
    enough = float(np.mean([mean for mean, _, _ in shown]))
    error = float(np.sqrt(np.sum([se**2 for _, se, _ in shown])) / len(shown))
    return Selection(
        records[best].i,
        int(earned.size),
        int((earned > 0).sum()),
        tuple(map(int, unexplained)),
        tuple(map(int, count)),
        tuple(done_well),
        tuple(reward),
        enough,
        error,
        reward[best] >= enough - error - REWARD_TOLERANCE * max(1.0, abs(enough)),
    )


def pooled(one: Behaviour, other: Behaviour) -> tuple[float, float, int | None]:
    """The mean return of two samples of episodes together, its standard error, and how many they
    are."""
    if one.episodes is None or other.episodes is None:  # exact
        return one.reward, one.reward_se, None
    sizes, means = np.array([one.episodes, other.episodes]), np.array([one.reward, other.reward])
    n, mean = int(sizes.sum()), float(sizes @ means / sizes.sum())
    within = np.array([one.reward_se, other.reward_se]) ** 2 * sizes * (sizes - 1)
    squares = float((within + sizes * (means - mean) ** 2).sum())
    return mean, float(np.sqrt(squares / (n - 1) / n)), n


def dearest(c: Constraint, sides: Sequence[Sequence[Behaviour]]) -> Array:
    """What an episode of the demonstrators costs [K], on the side where it costs more."""
    return np.asarray(np.max([[J(pi_E, c) for pi_E in side] for side in sides], axis=0))


def charged(
    c: Constraint, known: Sequence[Sequence[Behaviour]], sides: Sequence[Sequence[Behaviour]]
) -> NDArray[np.bool_]:
    """Which of the learners [n, K] cost more under c than the demonstrators."""
    limit = dearest(c, sides)
    return np.array([beyond(c, group, limit) for group in known])


def beyond(c: Constraint, group: Sequence[Behaviour], limits: Array) -> NDArray[np.bool_]:
    """Which behaviours [K] exceed their limits [K]."""
    cost, length = (np.array(x) for x in ([J(pi, c) for pi in group], [pi.length for pi in group]))
    return np.asarray(cost > limits + PER_STEP * length)


def keeps_limit(record: Record, sides: Sequence[Sequence[Behaviour]]) -> NDArray[np.bool_]:
    """Which of an iterate's own learners [K] keep the limit that they had."""
    limits = np.maximum(record.deltas, dearest(record.c, sides))
    return ~beyond(record.c, record.learners, limits)
