"""A solver that sleeps, and answers with what a training's solution is like in size: 3,200 points
and a policy of 128 x 128. Kind "sleeping_solver:make"."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ringfence.objects import Behaviour, Problem, Solution
from ringfence.solvers.solver import Exact

POINTS, EPISODES = 3_200, 32


@dataclass(frozen=True)
class Config:
    """seconds: to sleep."""

    kind: Literal["sleeping_solver:make"] = "sleeping_solver:make"
    seconds: float = 1.0


class Sleeping(Exact):
    def check(self, problem: Problem) -> None:
        """Any task will do."""


def make(config: Config) -> Sleeping:
    def solve(problem: Problem) -> Solution:
        time.sleep(config.seconds)
        rng = np.random.default_rng(problem.seed)
        speeds, visits = rng.uniform(0.0, 1.0, (POINTS, 1)), np.full(POINTS, 1.0 / EPISODES)
        done = Behaviour(speeds, visits, 10.0, 0.1, POINTS / EPISODES, EPISODES)
        return Solution({"w": rng.normal(size=(128, 128)).astype(np.float32)}, 0.0, done, 0)

    return Sleeping(solve)
