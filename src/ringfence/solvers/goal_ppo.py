"""A policy player without a planner: PPO on a policy that sees the goal, for all tasks at once.

Algorithm 3 asks for constrained RL on each task. Here one policy, trained on episodes of all tasks,
serves them all; what it does on each is then sampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Problem, Solution, behaviour_of
from ringfence.solvers.ppo import PPO, PPOConfig, evaluate
from ringfence.solvers.solver import pictured

EPISODES = 50  # its stream of random numbers


@dataclass(frozen=True, eq=False)
class GoalPPO:
    """`solve_all` is the game's policy player; starts [n, 4]: states of demonstrations."""

    config: PPOConfig = field(default_factory=PPOConfig)
    starts: Array | None = None
    episodes: int = 20

    def solve_all(self, problems: Sequence[Problem]) -> list[Solution]:
        """One constraint and one limit for all problems; their `goals` become one task's."""
        first = problems[0]
        if any(p.constraint is not first.constraint or p.delta != first.delta for p in problems):
            raise InvalidInput("one policy for all tasks needs one constraint and one limit")
        tasks: list[Any] = [p.task for p in problems]
        joint = replace(tasks[0], goals=tuple(goal for task in tasks for goal in task.goals))
        seed = first.seed[:2]
        all_at_once = replace(first, task=joint, seed=seed, states=self.starts)
        joined = PPO(self.config)(all_at_once)
        raw, steps, solutions = first.constraint.raw, joined.env_steps // len(tasks), []
        for k, task in enumerate(tasks):
            path = (*seed, EPISODES, k)
            runs = evaluate(task, joined.policy, raw, self.episodes, path, deterministic=True)
            own = behaviour_of(runs)
            shown = pictured(runs)
            solutions.append(replace(joined, behaviour=own, env_steps=steps, pictured=shown))
        return solutions


def demonstrated_states(trajectories: Sequence[Array], every: int = 3) -> Array:
    """States [n, 4] to start episodes from, of observations [T + 1, 6] of a PointTask."""
    return np.concatenate([10.0 * seen[::every, :4] for seen in trajectories])
