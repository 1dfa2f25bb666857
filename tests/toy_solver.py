"""A policy player in one file: it plans with a fixed price on cost, whatever the limit.

Kind "toy_solver:make".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ringfence.errors import InvalidInput
from ringfence.objects import Problem, Solution
from ringfence.solvers.solver import Exact
from ringfence.worlds.finite import FiniteTask, behaviour, occupancy


@dataclass(frozen=True)
class Config:
    """price: of a unit of cost, in units of reward."""

    kind: Literal["toy_solver:make"] = "toy_solver:make"
    price: float = 100.0


def make(config: Config) -> Exact:
    return Exact(Priced(config.price))


@dataclass(frozen=True)
class Priced:
    price: float

    def __call__(self, problem: Problem) -> Solution:
        task = problem.task
        if not isinstance(task, FiniteTask) or task.horizon is None:
            raise InvalidInput(f"task {task.name!r}: toy_solver plans over finite horizons")
        S, A = task.mdp.reward.shape
        cost = problem.constraint.cost(task.phi.reshape(S * A, -1)).reshape(S, A)
        V, pi = np.zeros(S), np.zeros((task.horizon, S, A))
        for t in reversed(range(task.horizon)):
            Q = task.mdp.reward - self.price * cost + (task.mdp.transition @ V).reshape(S, A)
            V = Q.max(axis=1)
            pi[t] = np.eye(A)[Q.argmax(axis=1)]
        return Solution({"pi": pi}, self.price, behaviour(task, occupancy(task.mdp, pi)), 0)
