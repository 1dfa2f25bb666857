"""Between a task's simulator and PPO: what a policy sees, whole episodes, a rollout as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint, Problem, Trajectory
from ringfence.solvers.scaling import normalised
from ringfence.worlds.sim.rollouts import Arrays, Chunk, CollectorSpec, ContinuousTask
from ringfence.worlds.sim.task_checks import check_task


def checked(problem: Problem, start_share: float = 0.0) -> ContinuousTask:
    """The problem's task, if PPO can solve it; start_share: of episodes at demonstrated states."""
    task = continuous(problem)
    check_task(task, problem.constraint.features)
    if not np.isfinite(problem.delta):
        raise InvalidInput(f"PPO: the limit must be finite, got {problem.delta}")
    if start_share > 0 and problem.states is None:
        raise InvalidInput("PPO: start_share needs states from demonstrations (problem.states)")
    return task


def continuous(problem: Problem) -> ContinuousTask:
    """The problem's task, if its episodes are simulated many at once."""
    if not hasattr(problem.task, "collector"):
        raise InvalidInput(
            f"task {problem.task.name!r} has no simulator: PPO can't solve it (finite "
            "worlds: the solver 'soft')"
        )
    return cast(ContinuousTask, problem.task)


def seen_of(c: Constraint, augment: bool) -> Callable[[Array], Array]:
    """What a policy sees of the constraint, [n, d] -> [n]: its value, or nothing."""
    return c.raw if augment else no_augmentation


def no_augmentation(phi: Array) -> Array:
    """What a policy without a constraint sees of it. Not a lambda: Bullet's workers get it by name.

    [n, d] -> [n].
    """
    return np.zeros(len(phi))


def evaluate(
    task: ContinuousTask,
    policy: Mapping[str, NDArray[Any]],
    raw: Callable[[Array], Array],
    episodes: int,
    seed: tuple[int, ...],
    deterministic: bool = False,
) -> list[Trajectory]:
    """Whole episodes of a saved policy, e.g. as demonstrations."""
    copies = min(64, -(-episodes // 8) * 8)  # a simulator may want whole groups
    collector = task.collector(CollectorSpec(copies, raw, seed))
    try:
        return collector.episodes(policy, episodes, deterministic, seed)
    finally:
        collector.close()


def prepare(chunk: Chunk, costs: Array, policy: Arrays, horizon: int) -> dict[str, Any]:
    """A chunk as an update takes it: float32, inputs normalised as when they were acted on.

    x [T, N, o + 1], last_x [N, o + 1]: the inputs, and those after the last step; final_at
    [m, 2] = (t, n), final_x [m, o + 1]: where episodes were cut, and what would have been seen
    next; signals [T, N, 1 + k]: reward and costs [T, N, k]; actions, log_probs, terminated,
    truncated [T, N, ..].
    """
    scaled = partial(normalised, mean=policy["norm/mean"], std=policy["norm/std"])
    T, N = chunk.rewards.shape
    # The most episodes that the horizon can cut in T steps: a fixed shape, compiled once. An
    # environment that cuts its own may need more.
    room, cuts = N * (T // horizon + 1), len(chunk.final_at)
    while room < cuts:
        room *= 2
    spare = ((0, room - cuts), (0, 0))
    return {
        "x": scaled(chunk.inputs),
        "last_x": scaled(chunk.last_inputs),
        "final_x": np.pad(scaled(chunk.final_inputs), spare),
        "final_at": np.pad(chunk.final_at, spare, constant_values=T),  # beyond the end: ignored
        "actions": chunk.actions,
        "log_probs": chunk.log_probs,
        "signals": np.concatenate([chunk.rewards[..., None], costs], axis=-1).astype(np.float32),
        "terminated": chunk.terminated,
        "truncated": chunk.truncated,
    }
