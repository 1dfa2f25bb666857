"""What a policy does before any training, and what a solve tells of its episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ringfence.attempts import failed
from ringfence.objects import Problem, Solution, Trajectory, behaviour_of
from ringfence.solvers.collecting import continuous, evaluate, seen_of
from ringfence.solvers.solver import Report, pictured, quiet


@dataclass(frozen=True)
class Watcher:
    """A solver that doesn't train: `count` episodes of the policy `problem.start`. sees: it sees
    the constraint's value, as it did in its training."""

    count: int
    sees: bool = False
    at_once: ClassVar[int] = 1
    learns: ClassVar[bool] = True

    def key(self, problem: Problem, usual: dict[str, Any]) -> dict[str, Any]:
        names = ["schema", "world", "task", "start", "seed", "role", "drop_failed"]
        names += ["constraint"] if self.sees else []
        return {**{n: usual[n] for n in names if n in usual}, "episodes": self.count}

    def __call__(
        self, problem: Problem, checkpoint: Path | None = None, report: Report = quiet
    ) -> Solution:
        task, start = continuous(problem), problem.start or {}
        raw = seen_of(problem.constraint, self.sees)
        runs = evaluate(task, start, raw, self.count, problem.seed)
        return told(problem, Solution(start, 0.0, behaviour_of(runs), env_steps=0), runs)

    def free(self) -> Watcher:
        return self

    def watch(self) -> Watcher:
        return self

    def episodes(
        self, problem: Problem, solution: Solution, count: int, seed: tuple[int, ...]
    ) -> None:
        return None


def told(problem: Problem, solution: Solution, episodes: Sequence[Trajectory]) -> Solution:
    """The solution with pictures, and with what the constraint player is to see of it."""
    solution = replace(solution, pictured=pictured(episodes))
    fails = failed(episodes) if problem.drop_failed else np.zeros(len(episodes), np.bool_)
    if not fails.any():
        return solution
    succeeded = [t for t, fail in zip(episodes, fails, strict=True) if not fail]
    return replace(solution, succeeded=behaviour_of(succeeded))
