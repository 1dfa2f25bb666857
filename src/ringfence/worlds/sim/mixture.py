"""Several tasks as one, for a single policy that sees in its observation which of them it is at.

The copies are spread over the tasks, so a rollout holds steps of all of them, and an episode's
reward and cost are means over tasks. What the policy does on each is then seen on each alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Feature, Trajectory
from ringfence.worlds.sim.rollouts import (
    Arrays,
    Chunk,
    Collector,
    CollectorSpec,
    ContinuousTask,
    choices_of,
    join_chunks,
)

#: The stream of a task's random numbers, behind the problem's seed path and before its number.
TASK = 4


@dataclass(frozen=True)
class Mixture:
    """tasks: with the same observations, actions, features and episode length."""

    tasks: tuple[ContinuousTask, ...]

    def __post_init__(self) -> None:
        first = self.tasks[0]
        for task in self.tasks[1:]:
            if spaces(task) != spaces(first):
                raise InvalidInput(
                    f"tasks {first.name!r} and {task.name!r} can't have one policy: their "
                    "observations, actions, features or episode lengths differ"
                )

    @property
    def name(self) -> str:
        return " + ".join(task.name for task in self.tasks)

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.tasks[0].features

    @property
    def horizon(self) -> int:
        return self.tasks[0].horizon

    @property
    def observation_dim(self) -> int:
        return self.tasks[0].observation_dim

    @property
    def action_low(self) -> Array:
        return self.tasks[0].action_low

    @property
    def action_high(self) -> Array:
        return self.tasks[0].action_high

    @property
    def choices(self) -> tuple[int, ...]:
        return choices_of(self.tasks[0])

    def collector(self, spec: CollectorSpec) -> Collector:
        K = len(self.tasks)
        if spec.copies < K:
            raise InvalidInput(
                f"one policy for {K} tasks needs at least {K} copies, got {spec.copies}"
            )
        copies = [spec.copies // K + (k < spec.copies % K) for k in range(K)]
        return MixtureCollector(
            [
                task.collector(replace(spec, copies=n, seed=(*spec.seed, TASK, k)))
                for k, (task, n) in enumerate(zip(self.tasks, copies, strict=True))
            ]
        )


def spaces(task: ContinuousTask) -> tuple[Any, ...]:
    """What tasks of one policy have in common."""
    box = (task.action_low.tolist(), task.action_high.tolist(), choices_of(task))
    return task.observation_dim, box, task.features, task.horizon


class MixtureCollector:
    """A collector for each task, side by side."""

    def __init__(self, parts: Sequence[Collector]) -> None:
        self._parts = parts

    def collect(self, policy: Arrays, steps: int, rollout: int) -> Chunk:
        return join_chunks([part.collect(policy, steps, rollout) for part in self._parts])

    def episodes(
        self, policy: Arrays, count: int, deterministic: bool, seed: Sequence[int]
    ) -> list[Trajectory]:
        """The tasks in turn, so that any number of episodes is about all alike."""
        each = -(-count // len(self._parts))
        runs = [
            part.episodes(policy, each, deterministic, (*seed, k))
            for k, part in enumerate(self._parts)
        ]
        return list(chain.from_iterable(zip(*runs, strict=True)))[:count]

    def save(self) -> dict[str, NDArray[Any]]:
        parts = enumerate(self._parts)
        return {f"task{k}/{name}": np.asarray(a) for k, p in parts for name, a in p.save().items()}

    def restore(self, saved: Arrays) -> None:
        for k, part in enumerate(self._parts):
            mark = f"task{k}/"
            own = {n.removeprefix(mark): a for n, a in saved.items() if n.startswith(mark)}
            part.restore(own)

    def close(self) -> None:
        for part in self._parts:
            part.close()
