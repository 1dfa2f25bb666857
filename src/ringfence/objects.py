"""The few objects that pass between worlds, demonstrations, solvers and the game.

Everything here is immutable data over numpy arrays. What a policy did on a task reaches
the game as a `Behaviour`: transitions' features with the number of times an episode visits
each. Sampled episodes and exact occupancy measures are then one thing, and

    J(pi, c) = E[sum_t c(phi_t)] = sum_n visits[n] * c(features[n]).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Feature:
    """One named input of a constraint, with its unit ("speed", "m/s")."""

    name: str
    unit: str


@dataclass(frozen=True, eq=False)
class Trajectory:
    """One episode.

    observations [T+1, o], actions [T, a], rewards [T], features [T, d];
    `terminated` tells an episode that ended by itself from one that was cut at its horizon.
    seed: of the environment's reset, where it is known, so that the episode can be replayed.
    """

    observations: Array
    actions: Array
    rewards: Array
    features: Array
    terminated: bool
    seed: int | None = None

    def __len__(self) -> int:
        return len(self.rewards)


@dataclass(frozen=True, eq=False)
class Behaviour:
    """What one policy does in an episode of one task.

    features [n, d]: distinct transitions' features; visits [n] >= 0: how often an episode
    meets each in expectation; reward: the expected return; reward_se: its standard error
    (0 where it is exact); length: expected steps of an episode; episodes: how many were
    sampled (None: exact).
    """

    features: Array
    visits: Array
    reward: float
    reward_se: float
    length: float
    episodes: int | None


class Constraint(Protocol):
    """A function of features. `cost` is what a limit is put on; `raw` is before activation."""

    @property
    def features(self) -> tuple[Feature, ...]: ...

    def raw(self, phi: ArrayLike) -> Array:
        """phi [n, d] -> [n], positive where the constraint is violated."""
        ...

    def activate(self, raw: Array) -> Array:
        """The activated value of raw values, >= 0 for every learned class."""
        ...

    def cost(self, phi: ArrayLike) -> Array:
        """phi [n, d] -> [n]: activate(raw(phi))."""
        ...

    def describe(self) -> str:
        """The constraint in words."""
        ...


class Task(Protocol):
    """A name, an episode length and named features. A task has no cost channel."""

    @property
    def name(self) -> str: ...

    @property
    def features(self) -> tuple[Feature, ...]: ...

    @property
    def horizon(self) -> int | None: ...


@dataclass(frozen=True, eq=False)
class Solution:
    """A policy player's answer: the policy's arrays, its multiplier and what it does.

    succeeded: the behaviour without the episodes that failed at the task, where the constraint
    player is not to see these (None: it sees all).
    """

    policy: Mapping[str, NDArray[np.generic]]
    lam: float
    behaviour: Behaviour
    env_steps: int
    succeeded: Behaviour | None = None

    @property
    def shown(self) -> Behaviour:
        """What the constraint player sees of it."""
        return self.behaviour if self.succeeded is None else self.succeeded


#: The arrays that a learning solver begins from.
Start = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True, eq=False)
class Problem:
    """One constrained RL problem: maximise the task's reward subject to J(pi, c) <= delta.

    `start` is what a learning solver begins from (None for exact solvers); `seed` is the
    path of integers from which its randomness is drawn.
    """

    task: Task
    constraint: Constraint
    delta: float
    start: Start | None
    seed: tuple[int, ...]


#: Solves several independent problems: in this process, in workers or out of a ledger.
SolveAll = Callable[[Sequence[Problem]], Sequence[Solution]]


def J(pi: Behaviour, c: Constraint) -> float:
    """The expected cost of an episode, J(pi, c)."""
    return float(pi.visits @ c.cost(pi.features))


def widened(t: Trajectory, width: int) -> Array:
    """An episode's features, with what each step led to where `width` has that among them."""
    if t.features.shape[1] == width:
        return t.features
    return np.hstack([t.features, t.observations[1:]])


def behaviour_of(trajectories: Sequence[Trajectory]) -> Behaviour:
    """The empirical behaviour of sampled episodes, each with the same weight."""
    if not trajectories:
        raise ValueError("a behaviour needs at least one trajectory")
    n = len(trajectories)
    points = np.concatenate([t.features for t in trajectories])
    features, count = np.unique(points, axis=0, return_counts=True)
    returns = np.array([t.rewards.sum() for t in trajectories])
    return Behaviour(
        features=features,
        visits=count / n,
        reward=float(returns.mean()),
        reward_se=float(returns.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0,
        length=float(np.mean([len(t) for t in trajectories])),
        episodes=n,
    )
