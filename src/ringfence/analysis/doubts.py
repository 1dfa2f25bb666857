"""What speaks against a game's outcome, in words: told at its end, on its page, in summary.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ringfence.analysis.played import Played
from ringfence.analysis.unsettled import unsettled
from ringfence.objects import STEPS_BEYOND, Behaviour, Solution, earns, excess

#: A learner breaks its limit beyond this multiple of it, and this much a step (a limit may be 0).
TIMES, PER_STEP = 1.5, 0.01
#: It earns much more than the experts from this share of their reward on.
MUCH_MORE = 0.25
#: A boundary is out of sight that is further from every demonstrated step than this share of the
#: range (5% to 95%) of their values.
OUT_OF_SIGHT = 0.1

MORE = "longer iterations (--steps; in a file: env_steps) or more of them (resume --iterations)"


def doubts(played: Played) -> list[str]:
    """Of the selected iterate: its learners, their limit, and what the constraint rests on."""
    row, shown = played.rows[played.chosen.i - 1], [t for d in played.demos for t in d.train]
    found = [
        *_of_rewards(row, played.chosen.rewarding),
        *_of_limits(row),
        *_of_limits_of_0(played),
        *_of_failures(row),
    ]
    raw = np.concatenate([played.c.raw(t.features) for t in shown])
    low, high = np.quantile(raw, [0.05, 0.95])
    if raw.max() < -OUT_OF_SIGHT * (high - low):
        found.append(
            "no demonstrated step comes near the constraint: where it lies is the learners' doing, "
            f"not the experts'. Play {MORE}"
        )
    return [*found, *unsettled(played)]


def _of_rewards(row: Mapping[str, Any], rewarding: bool) -> Iterator[str]:
    if not rewarding:
        yield (
            "the selected iterate's learners don't earn what the experts do (less a standard "
            "error): they may have learned too little to test the constraint. Give each iteration "
            "more steps (--steps; in a file: env_steps), or play more of them (resume --iterations)"
        )
    gained = row["learner_reward_mean"] - row["expert_reward_mean"]
    if gained > MUCH_MORE * abs(row["expert_reward_mean"]):
        yield (
            f"the learner earns {row['learner_reward_mean']:.4g}, the experts "
            f"{row['expert_reward_mean']:.4g}: either they are far from the best that the "
            "constraint allows, or it still allows what they avoid. To see which, "
            f"play {MORE}"
        )


def _of_limits(row: Mapping[str, Any]) -> Iterator[str]:
    cost, limit = row["learner_cost_mean"], row["delta_mean"]
    if cost > TIMES * limit + PER_STEP * row["learner_length_mean"]:
        yield (
            f"the policy does not keep its limit: an episode costs {cost:.4g}, {limit:.4g} are "
            f"allowed. Train it longer before you use it (transfer), or play {MORE}"
        )


def _of_limits_of_0(played: Played) -> Iterator[str]:
    """Of learners whose episodes were sampled; the others approach 0 and never reach it."""
    record = played.records[played.chosen.i - 1]
    over = {
        d.task: excess(pi, record.c, 0.0) + STEPS_BEYOND
        for d, pi, delta in zip(played.demos, record.learners, record.deltas, strict=True)
        if delta == 0 and pi.episodes is not None and excess(pi, record.c, 0.0) > 0
    }
    if over:
        names = ", ".join(f"{task} ({share:.1%})" for task, share in over.items())
        yield (
            f"policies that are handed out do not keep their limit of 0: steps that cost something "
            f"on {names}. Train them longer before you use them (transfer), or play {MORE}"
        )


def _of_failures(row: Mapping[str, Any]) -> Iterator[str]:
    if failed := sum(n or 0 for n in row["learner_failed"]):
        yield (
            f"{failed:g} of the learners' episodes failed at the task, and the constraint player "
            f"did not see them. Play {MORE}"
        )


def doubts_of_probe(free: Sequence[Solution], experts: Sequence[Behaviour]) -> list[str]:
    """Of learners without a constraint, who showed that none is needed: did they learn enough?"""
    pairs = [(s.behaviour, pi_E) for s, pi_E in zip(free, experts, strict=True)]
    short = sum(
        earns(pi, pi_E.reward, pi_E.reward_se, pi_E.episodes, len(pairs)) < 0 for pi, pi_E in pairs
    )
    steps = sum(s.env_steps for s in free)
    if not short and not steps:  # an exact learner
        return []
    if not short:
        return [
            f"without a constraint the learner does no better than the demonstrators after {steps} "
            "steps. That is so where nothing is forbidden, and also where it never left their way: "
            "before you believe it, try it from nothing (--set opening.kind=none), with more steps "
            "(--steps; in a file: env_steps), or play anyway (--set opening.probe=false)"
        ]
    return [
        f"without a constraint the learner earns less than the demonstrators on {short} of "
        f"{len(pairs)} task(s) after {steps} steps: it may have learned too little to need one. "
        "Give it more steps (--steps; in a file: env_steps), or play anyway "
        "(--set opening.probe=false)"
    ]
