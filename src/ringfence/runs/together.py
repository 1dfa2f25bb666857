"""One policy for all tasks of a game: a training on all of them, then what it does on each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ringfence.errors import InvalidInput
from ringfence.objects import Problem, Solution
from ringfence.runs.backend import Role, Solves
from ringfence.worlds.sim.mixture import Mixture


def solve_together(
    solves: Solves, problems: Sequence[Problem], role: Role = "solve"
) -> list[Solution]:
    """The solutions of all problems, which differ in their tasks alone, by one policy.

    The limit is kept on the mean over tasks; the behaviours that come back are of each task apart.
    """
    joint = joined(problems)
    one = solves([joint], role)[0]
    shown = solves([replace(p, start=one.policy) for p in problems], "show")
    steps = one.env_steps // len(problems)
    return [replace(s, lam=one.lam, env_steps=steps) for s in shown]


def joined(problems: Sequence[Problem]) -> Problem:
    first = problems[0]
    if any(p.deltas != first.deltas or p.delta != first.delta for p in problems):
        raise InvalidInput("one policy for all tasks needs one limit for all of them")
    if any(p.states is not None for p in problems):
        raise InvalidInput("[solver] start_share: one policy for all tasks begins at no states")
    tasks: Any = tuple(p.task for p in problems)
    asked = [p.stop_reward for p in problems if p.stop_reward is not None]
    stop = float(np.mean(asked)) if len(asked) == len(problems) else None
    path = (*first.seed[:2], len(problems))
    return replace(first, task=Mixture(tasks), seed=path, stop_reward=stop, drop_failed=False)
