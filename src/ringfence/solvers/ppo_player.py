"""PPO as a policy player: a problem in, a solution out, with what pictures and the game need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ringfence.demos.attempts import failed
from ringfence.errors import InvalidInput
from ringfence.objects import Problem, Solution, Trajectory, behaviour_of
from ringfence.solvers.base import Report, pictured, quiet
from ringfence.solvers.ppo import PPO, PPOConfig, Result, evaluate, no_augmentation, seen_of
from ringfence.worlds.continuous import is_continuous


@dataclass(frozen=True)
class PPOPlayer:
    """One training at a time, with all cores."""

    config: PPOConfig
    at_once: ClassVar[int] = 1
    learns: ClassVar[bool] = True

    def key(self, problem: Problem, usual: dict[str, Any]) -> dict[str, Any]:
        return usual

    def __call__(
        self, problem: Problem, checkpoint: Path | None = None, report: Report = quiet
    ) -> Solution:
        result = self.train(problem, checkpoint, report, deterministic=False)
        return told(problem, result.solution, result.stochastic)

    def train(
        self,
        problem: Problem,
        checkpoint: Path | None,
        report: Report,
        deterministic: bool = True,
    ) -> Result:
        """The whole result; deterministic: try the policy without its noise, too."""
        require_continuous(problem)
        stop = self.config.stop_reward if problem.stop_reward is None else problem.stop_reward
        config = replace(self.config, stop_reward=stop)
        solver = PPO(
            config,
            problem.states,
            checkpoint,
            lambda record: report(asdict(record)),
            deterministic=deterministic,
        )
        return solver.solve(problem)

    def free(self) -> PPOPlayer:
        """Without a multiplier; it shows how much can be earned, so it doesn't stop early."""
        return PPOPlayer(replace(self.config, initial_lam=0.0, stop_reward=None))

    def watch(self) -> Watcher:
        return Watcher(self.config.evaluation_episodes)

    def episodes(
        self, problem: Problem, solution: Solution, count: int, seed: tuple[int, ...]
    ) -> list[Trajectory]:
        raw = seen_of(problem.constraint, self.config.augment)
        return evaluate(problem.task, solution.policy, raw, count, seed)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Watcher:
    """What a policy does before any training: some episodes of it."""

    count: int
    at_once: ClassVar[int] = 1
    learns: ClassVar[bool] = True

    def key(self, problem: Problem, usual: dict[str, Any]) -> dict[str, Any]:
        names = ("schema", "world", "task", "start", "seed", "role", "drop_failed")
        return {**{n: usual[n] for n in names if n in usual}, "episodes": self.count}

    def __call__(
        self, problem: Problem, checkpoint: Path | None = None, report: Report = quiet
    ) -> Solution:
        require_continuous(problem)
        start: Mapping[str, Any] = problem.start or {}
        task: Any = problem.task
        runs = evaluate(task, start, no_augmentation, self.count, problem.seed)
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


def require_continuous(problem: Problem) -> None:
    if not is_continuous(problem.task):
        raise InvalidInput(
            f"task {problem.task.name!r} is finite: PPO can't solve it; use the solver 'soft'"
        )
