"""What a game left unsettled about the constraint that it hands back, in words.

Selection judges constraints by all demonstrators and learners; here stands what even the chosen one
doesn't answer, and which other constraint of the game would have answered as well.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis.played import Played
from ringfence.objects import Array, Constraint, J
from ringfence.selection import PER_STEP, Selection

#: Two constraints that explain the same learners agree where both forbid at least this share of
#: the steps that either forbids.
AGREE = 0.8

REMEDY = "longer solves (--steps; in a file: env_steps) or more iterations (resume --iterations)"


def unsettled(played: Played) -> Iterator[str]:
    chosen = played.chosen
    left = chosen.unexplained[chosen.i - 1]
    if left:
        yield (
            f"{left} of the {chosen.conflicts} learners that earned more than the demonstrators "
            "are allowed by the constraint: it forbids too little, the class can't say what the "
            f"demonstrators keep, or they are not the best under it. What helps: {REMEDY}"
        )
    if not chosen.conflicts and len(played.records) > 1:
        yield (
            "no learner of any iteration earned more than the demonstrators, so nothing that "
            f"they avoided was shown to pay: the constraint is a guess. What helps: {REMEDY}"
        )
    if not any(chosen.done_well) and len(played.records) > 1:
        yield (
            "no learner of any iteration earned what the demonstrators do within its limit: the "
            f"constraint was never tried by one that could. What helps: {REMEDY}"
        )
    paying = sum(
        J(shown, played.c) > J(pi_E, played.c) + PER_STEP * shown.length
        for shown, pi_E in zip(played.heldout, played.experts, strict=True)
    )
    if paying:
        yield (
            f"held-out demonstrations of {paying} of {len(played.heldout)} tasks break the "
            "constraint: it forbids some of what the demonstrators do. More demonstrations help"
        )
    yield from other_answers(played)


def other_answers(played: Played) -> Iterator[str]:
    """The last of the constraints that answer everybody as well as the chosen one, and yet forbid
    something else."""
    points = met(played)
    chosen, own = played.chosen, forbidden(played.c, points)
    for n in reversed(equals(chosen)):
        other = forbidden(played.records[n].c, points)
        either, both = (own | other).sum(), (own & other).sum()
        if both < AGREE * either:
            yield (
                f"c_{n + 1} explains as much as the constraint that was selected, c_{chosen.i}, "
                f"and forbids something else ({played.records[n].c.describe()}): of the steps that "
                f"either forbids, both forbid {both / either:.0%}. What helps: {REMEDY}"
            )
            return


def equals(chosen: Selection) -> list[int]:
    """The places of the iterates that explain as many conflicts as the chosen one; where there are
    none, which any constraint explains, of those that charge as many learners."""
    charged = (0,) * len(chosen.charged) if chosen.conflicts else chosen.charged
    answers = list(zip(chosen.unexplained, charged, strict=True))
    best = answers[chosen.i - 1]
    return [n for n, answer in enumerate(answers) if answer == best and n != chosen.i - 1]


def met(played: Played) -> Array:
    """The features [n, d] of all steps that demonstrators and learners made."""
    groups = [played.experts, played.heldout, *(record.learners for record in played.records)]
    return np.concatenate([pi.features[pi.visits > 0] for group in groups for pi in group])


def forbidden(c: Constraint, points: Array) -> NDArray[np.bool_]:
    return np.asarray(c.cost(points) > 0)
