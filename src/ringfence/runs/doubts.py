"""What speaks against a game's outcome, in words: told at its end, on its page, in summary.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ringfence.objects import Constraint, Trajectory

#: A learner breaks its limit beyond this multiple of it, and this much a step (a limit may be 0).
TIMES, PER_STEP = 1.5, 0.01
#: It earns much more than the experts from this share of their reward on.
MUCH_MORE = 0.25
#: A boundary is out of sight that is further from every demonstrated step than this share of the
#: range (5% to 95%) of their values.
OUT_OF_SIGHT = 0.1

MORE = "more iterations (resume --iterations) or longer ones (--steps; in a file: env_steps)"


def doubts(
    row: Mapping[str, Any], rewarding: bool, c: Constraint, demos: Sequence[Trajectory]
) -> list[str]:
    """row: the selected iteration's; rewarding: does its learner earn what the experts do;
    c: its constraint; demos: those that it was learned from."""
    found = []
    if not rewarding:
        found.append(
            "no learner earned what the experts do (less a standard error); the iterate that earns "
            "most was taken. Give each iteration more steps (--steps; in a file: env_steps), or "
            "play more of them (resume --iterations)"
        )
    gained = row["learner_reward_mean"] - row["expert_reward_mean"]
    if gained > MUCH_MORE * abs(row["expert_reward_mean"]):
        found.append(
            f"the learner earns {row['learner_reward_mean']:.4g}, the experts "
            f"{row['expert_reward_mean']:.4g}: either they are far from the best that the "
            "constraint allows, or it still allows what they avoid. To see which, "
            f"play {MORE}"
        )
    cost, limit = row["learner_cost_mean"], row["delta_mean"]
    if cost > TIMES * limit + PER_STEP * row["learner_length_mean"]:
        found.append(
            f"the policy does not keep its limit: an episode costs {cost:.4g}, {limit:.4g} are "
            f"allowed. Train it longer before you use it (transfer), or play {MORE}"
        )
    raw = np.concatenate([c.raw(t.features) for t in demos])
    low, high = np.quantile(raw, [0.05, 0.95])
    if raw.max() < -OUT_OF_SIGHT * (high - low):
        found.append(
            "no demonstrated step comes near the constraint: where it lies is the learners' doing, "
            f"not the experts'. Play {MORE}"
        )
    return found
