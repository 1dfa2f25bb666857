"""Solvers of one's own for tests: one that kills its process, one that never comes to an end."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from ringfence.errors import SolverFailed
from ringfence.objects import Problem, Solution
from ringfence.solvers.soft import SoftSolver
from ringfence.solvers.solver import Exact


@dataclass(frozen=True)
class Config:
    """deaths: how many processes die over the task; notes: a folder, a file for each of them."""

    kind: str
    notes: str
    task: str = "goal (0,3)"
    deaths: int = 1
    seconds: float = 600.0
    words: str = "the solver is at its end"


def note(config: Config, problem: Problem) -> int:
    """Leave a file; how many there are now."""
    folder = Path(config.notes)
    (folder / f"{'-'.join(map(str, problem.seed))}.{time.monotonic_ns()}").touch()
    return len(list(folder.iterdir()))


def mortal(config: Config) -> Exact:
    def solve(problem: Problem) -> Solution:
        if problem.task.name == config.task and note(config, problem) <= config.deaths:
            os.kill(os.getpid(), signal.SIGKILL)
        return SoftSolver()(problem)

    return Exact(solve)


def sleeping(config: Config) -> Exact:
    def solve(problem: Problem) -> Solution:
        note(config, problem)
        time.sleep(config.seconds)
        return SoftSolver()(problem)

    return Exact(solve)


def failing(config: Config) -> Exact:
    def solve(problem: Problem) -> Solution:
        if problem.task.name == config.task:
            raise SolverFailed(config.words)
        return SoftSolver()(problem)

    return Exact(solve)
