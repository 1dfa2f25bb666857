"""One more iteration under the constraint that is handed back, where its learners break its limit.

A game's solves are short, and each begins at the policy before it, whose noise has fallen: enough
to show what a constraint leaves open, often too little to keep it. So who is handed out with the
constraint and does not keep it is trained on under it, for longer and with noise to find another
way, and is handed out if it then breaks less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ringfence.game import Record, Rules, limits_of
from ringfence.objects import Behaviour, Problem, Solution, Task, excess
from ringfence.solvers.ppo_settings import stirred


def settled(
    chosen: Record,
    i: int,
    tasks: Sequence[Task],
    experts: Sequence[Behaviour],
    rules: Rules,
    seed: int,
    solve: Callable[[Sequence[Problem]], Sequence[Solution]],
    together: bool = False,
) -> Record | None:
    """Iteration i after a game, under the constraint of an iteration of it; None where every
    learner of that keeps its limit. together: have all tasks one policy?"""
    c, limits = chosen.c, [limits_of(rules, chosen.i, pi_E, chosen.c) for pi_E in experts]
    over = [k for k, pi in enumerate(chosen.learners) if excess(pi, c, chosen.deltas[k]) > 0]
    if not over:
        return None
    over = list(range(len(tasks))) if together else over
    found = solve(
        [
            Problem(task, c, sum(limit), stirred(before.policy), (seed, i, k), deltas=limit)
            for k, (task, limit, before) in enumerate(
                zip(tasks, limits, chosen.solutions, strict=True)
            )
            if k in over
        ]
    )
    solutions = list(chosen.solutions)
    for k, new in zip(over, found, strict=True):
        before, after = (excess(s.behaviour, c, chosen.deltas[k]) for s in (solutions[k], new))
        if together or after < before:
            solutions[k] = new
    return replace(chosen, i=i, solutions=tuple(solutions), c_next=c)
