"""The few objects that pass between worlds, demonstrations, solvers and the game.

Everything here is immutable data over numpy arrays. What a policy did on a task reaches
the game as a `Behaviour`: transitions' features with the number of times an episode visits
each. Sampled episodes and exact occupancy measures are then one thing, and

    J(pi, c) = E[sum_t c(phi_t)] = sum_n visits[n] * c(features[n]).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ringfence.errors import InvalidInput

Array = NDArray[np.float64]
#: Of a feature's or task's name, and of a unit.
MOST_CHARACTERS = 200


@dataclass(frozen=True)
class Feature:
    """One named input of a constraint, with its unit ("speed", "m/s"): short printable words, as
    they go to terminals and pages."""

    name: str
    unit: str

    def __post_init__(self) -> None:
        for word in (self.name, self.unit):
            if type(word) is not str or not word.isprintable() or len(word) > MOST_CHARACTERS:
                raise InvalidInput(
                    f"{word!r:.60} is not a feature's name or unit: these are words of at most "
                    f"{MOST_CHARACTERS} printable characters"
                )


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
    player is not to see these (None: it sees all). pictured: features [t, d] of some episodes,
    thinned, for pictures.
    """

    policy: Mapping[str, NDArray[np.generic]]
    lam: float
    behaviour: Behaviour
    env_steps: int
    succeeded: Behaviour | None = None
    pictured: tuple[Array, ...] = ()

    @property
    def shown(self) -> Behaviour:
        """What the constraint player sees of it."""
        return self.behaviour if self.succeeded is None else self.succeeded


#: The arrays that a learning solver begins from.
Start = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True, eq=False)
class Problem:
    """One constrained RL problem: maximise the task's reward subject to J(pi, c) <= delta.

    deltas: where the constraint is several limits at once, the limit of each (empty: delta for
    each). `start` is what a learning solver begins from (None for exact solvers); `seed` is the
    path of integers from which its randomness is drawn. stop_reward: it may stop training where it
    earns this within the limit; states [n, s]: where some of its training episodes may begin;
    drop_failed: its failed episodes are not for the constraint player.
    """

    task: Task
    constraint: Constraint
    delta: float
    start: Start | None
    seed: tuple[int, ...]
    stop_reward: float | None = None
    states: Array | None = None
    drop_failed: bool = False
    deltas: tuple[float, ...] = ()


#: Solves several independent problems: in this process, in workers or out of a ledger.
SolveAll = Callable[[Sequence[Problem]], Sequence[Solution]]


def J(pi: Behaviour, c: Constraint) -> float:
    """The expected cost of an episode, J(pi, c)."""
    return float(pi.visits @ c.cost(pi.features))


#: Of an episode's steps that may cost anything at a limit of 0, at most: some 3% of the episodes
#: where one that breaks it does so for two of its 60 steps.
STEPS_BEYOND = 0.001


def excess(pi: Behaviour, c: Constraint, delta: float) -> float:
    """By how much a behaviour breaks its limit, > 0 if it does: of 0 by the share of its steps that
    cost anything, of others by its cost, in limits."""
    if delta > 0:
        return J(pi, c) / delta - 1.0
    beyond = float(pi.visits @ np.asarray(c.cost(pi.features) > 0)) / pi.length
    return beyond - STEPS_BEYOND


#: How often a difference of rewards may look sure and is not, at most, over all that are compared.
UNSURE = 0.025
#: Of the experts' reward: a soft-optimal learner strays, and loses a step, once in many million
#: episodes, while sampled experts never did.
REWARD_TOLERANCE = 1e-6


def earns(pi: Behaviour, reward: float, se: float, episodes: int | None = None, of: int = 1) -> int:
    """1: more than demonstrators with that mean return, -1: less, 0: neither is sure.

    episodes: whose mean it is (None: exact); of: how many learners are compared in all. By
    Student's distribution, as there may be few demonstrations, of which some began nearer to
    their goal.
    """
    from scipy.special import stdtrit  # not where a saved constraint is only loaded

    sampled = [n for n in (pi.episodes, episodes) if n is not None]
    freedom = max(1, min(sampled) - 1) if sampled else np.inf
    errors = float(-stdtrit(freedom, UNSURE / of))
    gained = pi.reward - reward
    sure = errors * float(np.hypot(pi.reward_se, se)) + REWARD_TOLERANCE * max(1.0, abs(reward))
    return int(gained > sure) - int(gained < -sure)


def telling(groups: Sequence[Sequence[Behaviour]], enough: Sequence[float]) -> NDArray[np.bool_]:
    """Which learners [n, K], group after group, show what demonstrators who earn `enough` [K] keep
    from: the first group, that nothing or little kept from anything, and of the others who earns
    what the demonstrators do, and no less than every learner of the task before it.

    The best under a constraint that the demonstrators keep earns at least what they do, so where
    one strays that earns less shows nothing; and where one strays that a constraint kept from
    earning what others did shows little.
    """
    earned = np.array([[pi.reward for pi in group] for group in groups])
    before = np.maximum.accumulate(np.vstack([enough, earned]), axis=0)[:-1]
    return np.asarray((earned >= before) | (np.arange(len(earned)) == 0)[:, None])


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


# What is said of things ---------------------------------------------------------------------------

Severity = Literal["error", "warning", "note", "ok"]


@dataclass(frozen=True)
class Finding:
    """What a check found. Errors make demonstrations unusable, warnings deserve a look."""

    severity: Severity
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.where}: {self.message}"


@dataclass(frozen=True)
class NotHere:
    """Why something that is offered everywhere can't be had here, in words."""

    reason: str


# Demonstrations -----------------------------------------------------------------------------------

JSON = dict[str, "JSON"] | list["JSON"] | str | int | float | bool | None
ARRAYS = ("observations", "actions", "rewards", "features")


@dataclass(frozen=True, eq=False)
class TaskDemos:
    """One task's trajectories, training and held-out. Their arrays are read-only copies.

    task: its name, a printable word or a few."""

    task: str
    train: tuple[Trajectory, ...]
    heldout: tuple[Trajectory, ...]

    def __post_init__(self) -> None:
        if not self.task.isprintable() or len(self.task) > MOST_CHARACTERS:
            raise InvalidInput(
                f"task {self.task!r:.60}: a name has at most {MOST_CHARACTERS} printable characters"
            )
        if not self.train:
            raise InvalidInput(f"task {self.task!r}: no training trajectories; give at least one")
        for split in ("train", "heldout"):
            every = enumerate(getattr(self, split))
            kept = tuple(sealed(t, where(self.task, split, n)) for n, t in every)
            object.__setattr__(self, split, kept)

    @property
    def labelled(self) -> list[tuple[str, Trajectory]]:
        """All trajectories, training first, each with what to call it in a message."""
        return [
            (where(self.task, split, n), trajectory)
            for split in ("train", "heldout")
            for n, trajectory in enumerate(getattr(self, split))
        ]


@dataclass(frozen=True, eq=False)
class Demonstrations:
    """Demonstrations of several tasks with the same features. Valid by construction.

    `provenance` says where they come from (world, seed, versions, noise, ...); nothing is
    computed from it.
    """

    tasks: tuple[TaskDemos, ...]
    features: tuple[Feature, ...]
    provenance: dict[str, JSON]

    def __post_init__(self) -> None:
        if not self.tasks:
            raise InvalidInput("demonstrations without a task; give at least one task")
        _unique([task.task for task in self.tasks], "task", "rename or merge them")
        _unique([feature.name for feature in self.features], "feature", "rename one")
        first = self.tasks[0].train[0]
        for label, trajectory in (pair for task in self.tasks for pair in task.labelled):
            check_widths(trajectory, label, first, self.features)
        try:
            copy = json.loads(json.dumps(self.provenance, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"provenance must be plain JSON: {error}") from error
        object.__setattr__(self, "provenance", copy)


def where(task: str, split: str, n: int) -> str:
    """What a trajectory is called in messages."""
    return f"task {task!r}, {'training' if split == 'train' else 'held-out'} trajectory {n}"


def sealed(t: Trajectory, label: str) -> Trajectory:
    """The trajectory with read-only arrays, after a check of its shapes and numbers."""
    obs, actions, rewards, features = (_numbers(getattr(t, name), name, label) for name in ARRAYS)
    T = rewards.size
    if rewards.ndim != 1 or T == 0:
        raise InvalidInput(
            f"{label}: rewards have shape {rewards.shape}; an episode has one reward per step "
            "and at least one step; drop empty episodes"
        )
    if obs.ndim != 2 or len(obs) != T + 1:
        raise InvalidInput(
            f"{label}: observations have shape {obs.shape}, but {T} rewards need ({T + 1}, o): "
            "the first observation and one after each step"
        )
    for name, values in (("actions", actions), ("features", features)):
        if values.ndim != 2 or len(values) != T:
            raise InvalidInput(
                f"{label}: {name} have shape {values.shape}, but {T} rewards need ({T}, n): "
                "one row per step"
            )
    ended, seed = flag(t.terminated, label), t.seed
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer)):
        raise InvalidInput(f"{label}: the reset's seed is {seed!r:.60}, not a whole number")
    return Trajectory(obs, actions, rewards, features, ended, None if seed is None else int(seed))


def flags(values: Any, label: str) -> NDArray[np.bool_]:
    """Ends of steps [T], as `flag` takes them."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise InvalidInput(f"{label}: its ends are not all True or False ({array.dtype})")
    return array.astype(np.bool_)


def flag(value: Any, label: str) -> bool:
    """Did an episode end by itself? True or False, or 1 or 0: NaN and "False" would count as
    true."""
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "biuf" or value not in (0, 1):
        raise InvalidInput(f"{label}: terminated is {value!r:.60}; give True or False")
    return bool(value)


def _numbers(values: Any, name: str, label: str) -> Array:
    """A read-only array of finite numbers, copied unless nobody else can change it."""
    try:
        if (kind := np.asarray(values).dtype).kind not in "fiub":  # text, too, would be converted
            raise ValueError(f"they are {kind}")
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{label}: {name} are not an array of numbers ({error})") from error
    if not np.isfinite(array).all():
        at = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
        raise InvalidInput(
            f"{label}: {name} hold {array[at]} at index {at}; repair or drop the trajectory"
        )
    as_given = array is values
    if as_given and array.flags.owndata and not array.flags.writeable:
        return array
    array = np.array(array, order="C")
    array.setflags(write=False)
    return array


def check_widths(t: Trajectory, label: str, first: Trajectory, features: Sequence[Feature]) -> None:
    if t.features.shape[1] != len(features) or not features:
        names = ", ".join(feature.name for feature in features) or "none"
        raise InvalidInput(
            f"{label}: {t.features.shape[1]} feature columns, but {len(features)} named features "
            f"({names}); give each column one name and unit"
        )
    for name in ("observations", "actions"):
        width, expected = getattr(t, name).shape[1], getattr(first, name).shape[1]
        if width != expected:
            raise InvalidInput(
                f"{label}: {name} have {width} columns, those of the first trajectory {expected}; "
                "all tasks share one observation and one action space"
            )


def _unique(names: Sequence[str], kind: str, fix: str) -> None:
    for name in names:
        if not name or names.count(name) > 1:
            problem = f"{names.count(name)} {kind}s have the name {name!r}" if name else "no name"
            raise InvalidInput(f"{kind} names must be distinct and not empty: {problem}; {fix}")
