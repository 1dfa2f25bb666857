"""Solves on continuous worlds, through a run's ledger: one at a time, each with all cores.

A solve that is under way has a checkpoint in the run, under the name that it will have in the
ledger; a killed run goes on from there. Some of its episodes are kept for pictures.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import safetensors.numpy

from ringfence.demos.attempts import failed
from ringfence.objects import Array, Problem, Solution, Start, Trajectory, behaviour_of
from ringfence.runs.backends import solve_named
from ringfence.runs.control_config import ControlWorld
from ringfence.runs.files import write_folder
from ringfence.runs.ledger import Ledger, arrays_hash, key_hash, solve_key
from ringfence.solvers.ppo import PPO, evaluate, no_augmentation
from ringfence.solvers.ppo_config import PPOConfig
from ringfence.solvers.ppo_state import Record
from ringfence.worlds.sim.rollouts import ContinuousTask

#: Of a solve's episodes, kept for pictures: how many, and every how many steps.
PICTURED, THINNED = 8, 5

OnRecord = Callable[[Problem, Record], None]
OnSolved = Callable[[Problem, str, bool], None]


@dataclass(frozen=True, eq=False)
class ControlSolver:
    """Policy players of a run. stop_reward, states: per task name, where there are any.

    drop_failed: their failed episodes are not for the constraint player.
    """

    run: Path
    world: ControlWorld
    ppo: PPOConfig
    stop_reward: Mapping[str, float]
    states: Mapping[str, Array]
    on_record: OnRecord
    on_solved: OnSolved
    drop_failed: bool = False

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.run / "ledger")

    def __call__(self, problems: Sequence[Problem]) -> list[Solution]:
        return [self.one(problem) for problem in problems]

    def one(self, problem: Problem) -> Solution:
        config = replace(
            self.ppo,
            stop_reward=self.stop_reward.get(problem.task.name, self.ppo.stop_reward),
        )
        key = solve_key(self.world, config, problem)
        states = self.states.get(problem.task.name)
        if states is not None:
            key["states"] = arrays_hash({"states": states})
        if self.drop_failed:
            key["drop_failed"] = True
        name = key_hash(key)
        known = self.ledger.get(name)
        if known is None:
            solution = solve_named(lambda p: self._solve(p, config, states, name), problem)
            self.ledger.put(name, key, solution)
        shutil.rmtree(self._checkpoint(name), ignore_errors=True)
        self.on_solved(problem, name, known is not None)
        solved = known or self.ledger.get(name)
        assert solved is not None
        return solved

    def _solve(
        self, problem: Problem, config: PPOConfig, states: Array | None, name: str
    ) -> Solution:
        solver = PPO(
            config,
            states,
            self._checkpoint(name),
            lambda record: self.on_record(problem, record),
            deterministic=False,
        )
        result = solver.solve(problem)
        write_folder(self.run / "episodes" / name, pictured(result.stochastic))
        return self._told(result.solution, result.stochastic)

    def _told(self, solution: Solution, episodes: Sequence[Trajectory]) -> Solution:
        """The solution with what the constraint player is to see of it."""
        fails = failed(episodes) if self.drop_failed else np.zeros(len(episodes), np.bool_)
        if not fails.any():
            return solution
        succeeded = [t for t, fail in zip(episodes, fails, strict=True) if not fail]
        return replace(solution, succeeded=behaviour_of(succeeded))

    def _checkpoint(self, name: str) -> Path:
        return self.run / "checkpoints" / name

    def rollout(self, task: ContinuousTask, start: Start, seed: tuple[int, ...]) -> Solution:
        """What the policy `start` does before any solve, e.g. a cloned one."""
        episodes = self.ppo.evaluation_episodes
        key = {
            "schema": 1,
            "rollout": arrays_hash(cast(Mapping[str, np.ndarray], start)),
            "task": repr(task),
            "episodes": episodes,
            "seed": list(seed),
            **({"drop_failed": True} if self.drop_failed else {}),
        }
        name = key_hash(key)
        known = self.ledger.get(name)
        if known is None:
            runs = evaluate(task, start, no_augmentation, episodes, seed)
            write_folder(self.run / "episodes" / name, pictured(runs))
            solution = Solution(start, 0.0, behaviour_of(runs), env_steps=0)
            self.ledger.put(name, key, self._told(solution, runs))
        solved = known or self.ledger.get(name)
        assert solved is not None
        return solved


def pictured(trajectories: Sequence[Trajectory]) -> dict[str, bytes]:
    """Some episodes' features, thinned: {"episodes.safetensors": 0 [t, d], 1 [t, d], ..}."""
    arrays: dict[str, Any] = {
        str(n): np.ascontiguousarray(t.features[::THINNED], np.float32)
        for n, t in enumerate(trajectories[:PICTURED])
    }
    return {"episodes.safetensors": safetensors.numpy.save(arrays)}
