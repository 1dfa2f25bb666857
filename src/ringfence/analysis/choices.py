"""The selected iterate beside the last, a random one, and the best by the truth. For reading only:
it looks at rows that the driver has completed with the truth's columns, after the selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ringfence.objects import REWARD_TOLERANCE
from ringfence.selection import Selection

COMPARED = (
    "constraint_error",
    "learner_reward_mean",
    "learner_true_raw_mean",
    "learner_true_cost_mean",
)
Row = Mapping[str, Any]


def choices(rows: Sequence[Row], chosen: Selection) -> dict[str, Any]:
    """The truth-knowing choice: of the iterates whose learners earn enough, the one that violates
    least beyond the demonstrators."""
    table: dict[str, Any] = {
        "selected": _choice(rows[chosen.i - 1]),
        "last": _choice(rows[-1]),
        "random": {"i": None, **{name: _mean(rows, name) for name in COMPARED}},
        "truth": None,
    }
    if all(row["learner_true_cost_mean"] is not None for row in rows):
        gap = [row["learner_true_cost_mean"] - row["expert_true_cost_mean"] for row in rows]
        slack = REWARD_TOLERANCE * max(1.0, abs(chosen.expert_reward))
        enough = chosen.expert_reward - chosen.expert_reward_se - slack
        eligible = [n for n in range(len(rows)) if chosen.reward[n] >= enough]
        table["truth"] = _choice(rows[choose(eligible, gap, chosen.reward)])
    return table


def choose(eligible: Sequence[int], gap: Sequence[float], reward: Sequence[float]) -> int:
    """Of the eligible the least violation, then the highest reward; if none is, the latter."""
    if not eligible:
        return int(np.argmax(reward))
    return min(eligible, key=lambda n: (max(gap[n], 0.0), -reward[n]))


def _choice(row: Row) -> dict[str, Any]:
    return {"i": row["i"], **{name: row[name] for name in COMPARED}}


def _mean(rows: Sequence[Row], name: str) -> float | None:
    values = [row[name] for row in rows]
    return None if any(v is None for v in values) else float(np.mean(values))
