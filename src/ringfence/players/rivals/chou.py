"""Chou et al.'s method as the paper's appendix adapts it: one regression, no game.

    1. From the cloned policy, maximum-entropy RL without a constraint.
    2. Of its episodes keep those of higher reward than the experts': were they allowed, the
       experts would have done the same.
    3. One regression of the constraint class to these (+1) and the demonstrations (-1).
    4. Constrained RL under the result, with limit 0 as published.

The published version takes its episodes from a replay buffer; PPO has none, so here they are
episodes of the policy that step 1 ends with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ringfence.constraints.template import Template
from ringfence.objects import Constraint, Problem, Solution, Start, Task, Trajectory, behaviour_of
from ringfence.players.regression import regress

#: The second number of the seed paths of steps 1 and 4.
EXPLORE, SOLVE = 0, 1


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of it; c and solution are None if no episode earned more than the experts."""

    explored: Solution
    tried: int
    better: int
    c: Constraint | None
    solution: Solution | None


def chou(
    task: Task,
    template: Template,
    demonstrations: Sequence[Trajectory],
    start: Start | None,
    explore: Callable[[Problem], Solution],
    episodes: Callable[[Solution], Sequence[Trajectory]],
    solve: Callable[[Problem], Solution],
    seed: int,
) -> Outcome:
    """explore: RL with an entropy bonus; episodes: whole episodes of its policy; solve: CRL."""
    expert = behaviour_of(demonstrations)
    free = explore(Problem(task, template.none(), 0.0, start, (seed, EXPLORE, 0)))
    tried = episodes(free)
    better = [t for t in tried if t.rewards.sum() > expert.reward]
    if not better:
        return Outcome(free, len(tried), 0, None, None)
    c = template.constraint(regress(template, [expert], [behaviour_of(better)]))
    solution = solve(Problem(task, c, 0.0, start, (seed, SOLVE, 0)))
    return Outcome(free, len(tried), len(better), c, solution)
