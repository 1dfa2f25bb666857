"""Demonstrations of continuous worlds whose truth is known: train an expert, roll it out.

The expert is constrained RL under the truth, with the limit on an episode's true cost that it is
said to have (runs/training.py trains it). This is the only place on the way to the game that reads
the truth, and it does so in the demonstrators' stead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.constraints.written import parse_constraint
from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Constraint, Demonstrations, TaskDemos, Trajectory
from ringfence.solvers.ppo import evaluate, seen_of
from ringfence.worlds.sim.rollouts import ContinuousTask

#: The third number of the demonstrations' seed path, after the seed and the task.
TRAIN, HELDOUT = 60, 61
#: Episodes rolled out in search of a saturated one: at most, and as long as none was found.
MOST_TRIES, FIRST_TRIES = 100, 30


@dataclass(frozen=True)
class Config:
    """How a demonstrator came about.

    delta: the limit on an episode's true cost; noise: the standard deviation of Gaussian noise on
    every action, in units of the action box; paths: episodes of each task to learn from; heldout:
    the same, held out; keep_saturated: keep only episodes whose mean true raw value lies at most
    this far below 0, as the published code does (None: keep all); seed: of their randomness.
    """

    delta: float = 20.0
    noise: float = 0.0
    paths: int = 20
    heldout: int = 10
    keep_saturated: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.paths < 1 or self.heldout < 1:
            raise InvalidInput("at least one training and one held-out demonstration are needed")
        for name in ("delta", "noise"):
            if not 0 <= getattr(self, name) < np.inf:
                raise InvalidInput(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.keep_saturated is not None and not self.keep_saturated > 0:
            raise InvalidInput(f"--keep-saturated must be above 0, got {self.keep_saturated}")


def truth_of(text: str, task: ContinuousTask) -> Constraint:
    if not text:
        raise InvalidInput(
            'demonstrators need a constraint to keep: give --truth, such as --truth "speed <= 0.75"'
        )
    return parse_constraint(text, task.features)


def with_noise(policy: Mapping[str, NDArray[Any]], noise: float) -> dict[str, NDArray[Any]]:
    """The policy with independent Gaussian noise added to its own: the variances add."""
    if "actor/sizes" in policy:
        raise InvalidInput("noise is added to actions in a box; this policy's are discrete")
    log_std = np.asarray(policy["actor/log_std"], np.float64)
    wide = 0.5 * np.log(np.exp(2 * log_std) + noise**2)
    return {**policy, "actor/log_std": wide.astype(np.float32)}


def roll_out(
    tasks: Sequence[ContinuousTask],
    truth: str,
    settings: Config,
    policies: Sequence[Mapping[str, NDArray[Any]]],
    provenance: Mapping[str, Any],
    say: Callable[[str], None] = lambda text: None,
    augment: bool = True,
) -> Demonstrations:
    """Training and held-out episodes of the experts, with where they come from.

    provenance: of the world; say: told how the search for saturated episodes goes, which can take
    minutes; augment: were they trained to see the truth's value.
    """
    if len(policies) != len(tasks):
        names = ", ".join(task.name for task in tasks)
        raise InvalidInput(f"{len(policies)} policies for {len(tasks)} tasks ({names}): one each")
    demos, tried, costs = [], [], dict[str, float]()
    for k, (task, policy) in enumerate(zip(tasks, policies, strict=True)):
        noisy = with_noise(policy, settings.noise) if settings.noise else dict(policy)
        check_policy(task, noisy)
        parts = []
        for stream, count in ((TRAIN, settings.paths), (HELDOUT, settings.heldout)):
            seed = (settings.seed, k, stream)
            c, keep = truth_of(truth, task), settings.keep_saturated
            raw = seen_of(c, augment)
            if keep is None:
                kept, rolled = evaluate(task, noisy, raw, count, seed), count
            else:
                roll = partial(evaluate, task, noisy, raw)
                kept, rolled = saturated_episodes(task.name, roll, c, keep, count, seed, say)
            parts.append(tuple(kept))
            tried.append(rolled)
        demos.append(TaskDemos(task.name, *parts))
        every = [t for part in parts for t in part]
        costs[task.name] = float(np.mean([c.cost(t.features).sum() for t in every]))
    origin = {
        **provenance,
        **asdict(settings),
        "filter": filter_name(settings),
        "episodes_rolled_out": sum(tried),
        "true_cost": costs,
    }
    return Demonstrations(tuple(demos), tasks[0].features, origin)


def filter_name(settings: Config) -> str:
    """What every table says that used such demonstrations."""
    tolerance = settings.keep_saturated
    return "none" if tolerance is None else f"keep-saturated {tolerance:g}"


def saturated_episodes(
    name: str,
    roll: Callable[[int, tuple[int, ...]], list[Trajectory]],
    truth: Constraint,
    tolerance: float,
    count: int,
    seed: tuple[int, ...],
    say: Callable[[str], None],
) -> tuple[list[Trajectory], int]:
    """`count` episodes that pass the filter, and how many were rolled out for them."""
    kept: list[Trajectory] = []
    batch, rolled = max(count, 16), 0
    while len(kept) < count and rolled < (MOST_TRIES if kept else FIRST_TRIES) * count:
        found = roll(batch, (*seed, rolled))
        rolled += batch
        kept += [t for t in found if is_saturated(t, truth, tolerance)]
        say(f"{name}: {len(kept)} of {rolled} episodes are saturated, {count} are wanted")
    if len(kept) < count:
        raise SolverFailed(
            f"{name}: only {len(kept)} of {rolled} episodes are saturated within {tolerance:g}, "
            f"{count} are wanted; widen --keep-saturated, leave it out, or train another expert"
        )
    return kept[:count], rolled


def is_saturated(t: Trajectory, truth: Constraint, tolerance: float) -> bool:
    """The published filter: the mean true raw value lies just below the limit."""
    return -tolerance <= float(truth.raw(t.features).mean()) <= 0


def check_policy(task: ContinuousTask, policy: Mapping[str, NDArray[Any]]) -> None:
    inputs, actions = task.observation_dim + 1, len(task.action_low)
    acts = policy.get("actor/log_std", policy.get("actor/sizes", np.zeros(0)))
    shape = (policy["actor/w0"].shape[0], len(acts))
    if shape != (inputs, actions):
        raise InvalidInput(
            f"the policy has {shape[0]} inputs and {shape[1]} actions, {task.name} needs "
            f"{inputs} and {actions}: it was trained on another world"
        )
