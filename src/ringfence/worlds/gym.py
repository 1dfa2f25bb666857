"""Anyone's Gymnasium environment, with a box of actions or with choices, as a task.

The environment is named by its registered id or by "module:function" (a function that makes
one). Its features are declared: a key of the environment's `info`, a column of the observation,
or a function of the transition. Copies run in Gymnasium's own SyncVectorEnv.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FlattenObservation
from numpy.typing import NDArray

from ringfence.errors import InvalidInput, RingfenceError, SolverFailed
from ringfence.objects import Array, Feature
from ringfence.worlds.continuous import ContinuousWorld, TaskConfig
from ringfence.worlds.named import Named, blame, find
from ringfence.worlds.patience import waiting_for
from ringfence.worlds.sim.rollouts import Collector, CollectorSpec, LocalCollector, Step
from ringfence.worlds.sim.shapes import Shaped
from ringfence.worlds.sim.sources import FeatureReader, TransitionFeatures

#: A box with so many axes (height, width, colours) is an image.
IMAGE_AXES = 3

#: (observations [N, o], actions [N, a], next observations [N, o]) -> rewards [N]
TransitionReward = Callable[[Array, Array, Array], Array]


@dataclass(frozen=True)
class FeatureConfig:
    """A constraint's input.

    name, unit: as people read them; info: the key of the environment's `info` that holds its value
    (None: its name); column: of the observation that the step led to, in the place of info.
    """

    name: str
    unit: str = "1"
    info: str | None = None
    column: int | None = None

    def source(self) -> str | int:
        if self.info is not None and self.column is not None:
            raise InvalidInput(f"[world] feature {self.name!r}: give info or column, not both")
        return self.column if self.column is not None else self.info or self.name


@dataclass(frozen=True)
class GymTaskConfig(TaskConfig):
    """A task of the world: its own environment, arguments for its maker, reward.

    name: in reports and demonstrations; kwargs: for the maker, over the world's; reward:
    "module:function" of (observations, actions, next observations) -> [N] (empty: the
    environment's own); wrapper: "module:function" of an environment, around which it puts a
    gymnasium.Wrapper; env: in the place of the world's (empty: that).
    """

    env: str = ""


@dataclass(frozen=True)
class Config:
    """Any environment of Gymnasium's form with flat boxes.

    env: its registered id, or "module:function" that makes it; kwargs: for its maker; steps: of an
    episode (None: as registered); features: what the constraint may look at; feature_function:
    "module:function" of (observations, actions, next observations) -> [N, d], in the place of the
    features' sources; full_state: the observation's numbers are features, too; tasks: that differ
    in their rewards, goals or starts (empty: one, as the environment is); truth: an inequality,
    where it is known; reports compare with it, nothing learns from it.
    """

    env: str
    kind: Literal["gym"] = "gym"
    kwargs: dict[str, Any] = field(default_factory=dict)
    steps: int | None = None
    features: tuple[FeatureConfig, ...] = ()
    feature_function: str = ""
    full_state: bool = False
    tasks: tuple[GymTaskConfig, ...] = ()
    truth: str = ""


def make(config: Config) -> ContinuousWorld:
    # Many of Gymnasium's environments are MuJoCo's, whose steps differ between versions.
    simulator = ("mujoco",) if find_spec("mujoco") is not None else ()
    return ContinuousWorld(
        config.env,
        tuple(make_task(config, t) for t in config.tasks or (GymTaskConfig(config.env),)),
        ("jax", "jaxlib", "optax", "gymnasium", *simulator),
        lambda spec: make_task(config, GymTaskConfig(**{"name": config.env, **spec})),
    )


def make_task(config: Config, task: GymTaskConfig) -> GymTask:
    if not (config.features or config.full_state):
        raise InvalidInput(
            "[world] features: declare at least one (--feature NAME:UNIT for a key of info, "
            "--feature NAME:UNIT=COLUMN for a column of the observation), or full_state = true"
        )
    if config.full_state and config.feature_function:
        raise InvalidInput("[world] full_state and feature_function don't go together")
    function = function_named(config.feature_function)
    made = GymTask(
        task.env or config.env,
        tuple(Feature(f.name, f.unit) for f in config.features) or (Feature("obs_0", "1"),),
        function,
        config.steps,
        {**config.kwargs, **task.kwargs},
        {f.name: f.source() for f in config.features} if function is None else {},
        function_named(task.reward),
        task.name,
        function_named(task.wrapper),
    )
    if made.horizon < 1:
        raise InvalidInput(f"an episode must have at least one step, got {made.horizon}")
    if not config.full_state:
        return made
    seen: dict[str, str | int] = {f"obs_{n}": n for n in range(made.observation_dim)}
    declared = tuple(Feature(f.name, f.unit) for f in config.features)
    every = (*declared, *(Feature(name, "1") for name in seen))
    return replace(made, features=every, sources={**made.sources, **seen})


def function_named(name: str) -> Named | None:
    """The user's function, found now rather than in the middle of a training."""
    if not name:
        return None
    find(name)
    return Named(name)


@dataclass(frozen=True)
class GymTask:
    """A Gymnasium environment as a task.

    features: names and units; a feature's value is info[name] after the step, unless `sources`
    names another key or a column of the observation, or `transition` computes all of them.
    steps: of an episode, by default the registered limit. kwargs: for the environment's maker.
    reward: in the place of the environment's own. wrapper: put around each environment. maker: a
    function that makes the environment, where it can't be named. A saved state is the start's seed
    and the actions since: exact for any environment whose steps depend on nothing else. Functions
    that are `Named` keep the task's repr the same in every process, which a killed solve needs to
    go on.
    """

    env: str
    features: tuple[Feature, ...]
    transition: TransitionFeatures | None = None
    steps: int | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str | int] = field(default_factory=dict)
    reward: TransitionReward | None = None
    label: str = ""
    wrapper: Callable[[Any], Any] | None = None
    maker: Callable[..., Any] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        space = self._spaces[1]
        flat = isinstance(space, Box | MultiDiscrete) and len(space.shape) == 1
        if not (flat or isinstance(space, Discrete)):
            raise InvalidInput(
                f"{self.env}: actions must be a flat Box, Discrete or MultiDiscrete, got {space}; "
                "put a wrapper around it that takes one of these (tasks = [{ name = .., wrapper = "
                '"module:function" }])'
            )
        if not np.isfinite([self.action_low, self.action_high]).all():
            raise InvalidInput(
                f"{self.env}: the box of actions must be bounded, got {space}; put a wrapper "
                "around it that bounds them, such as gymnasium.wrappers.RescaleAction"
            )
        if not self.features:
            raise InvalidInput(f"{self.env}: declare at least one feature for the constraint")
        for name, place in self.sources.items():
            if isinstance(place, int) and not 0 <= place < self.observation_dim:
                raise InvalidInput(
                    f"{self.env}: feature {name!r} is column {place} of the observation, which "
                    f"has columns 0 to {self.observation_dim - 1}"
                )

    @property
    def name(self) -> str:
        return self.label or self.env

    @property
    def horizon(self) -> int:
        limit = self.steps or self._spaces[2]
        if limit is None:
            raise InvalidInput(
                f"{self.env} has no registered episode length: give one (--horizon; in a file: "
                "steps; from Python: steps)"
            )
        return limit

    @property
    def observation_dim(self) -> int:
        return int(self._spaces[0].shape[0])

    @property
    def action_low(self) -> Array:
        space = self._spaces[1]
        return np.array(space.start if self.choices else space.low, np.float64, ndmin=1)

    @property
    def action_high(self) -> Array:
        if self.choices:
            return np.asarray(self.action_low + self.choices - 1.0)
        return np.asarray(self._spaces[1].high, np.float64)

    @property
    def choices(self) -> tuple[int, ...]:
        space = self._spaces[1]
        if isinstance(space, Discrete):
            return (int(space.n),)
        return tuple(map(int, space.nvec)) if isinstance(space, MultiDiscrete) else ()

    def given(self, actions: Array) -> NDArray[Any]:
        """Actions [n, a] as the environment takes them: of a Discrete space whole numbers [n]."""
        space = self._spaces[1]
        whole = np.rint(actions) if self.choices else actions
        return (whole[:, 0] if isinstance(space, Discrete) else whole).astype(space.dtype)

    def simulator(self, copies: int) -> GymSimulator:
        return GymSimulator(self, copies)

    def collector(self, spec: CollectorSpec) -> Collector:
        if spec.starts is not None:
            raise InvalidInput(f"{self.env}: a Gymnasium environment can't start at given states")
        return LocalCollector(self, self.simulator(spec.copies), spec)

    def make(self) -> gymnasium.Env[Any, Any]:
        """One environment, without a time limit of its own where Gymnasium added one."""
        try:
            with waiting_for(f"the maker of {self.env}"):
                made = self._maker()(**self.kwargs)
                made = made if self.wrapper is None else self.wrapper(made)
        except RingfenceError:
            raise
        except (Exception, SystemExit) as problem:  # anyone's code may raise anything
            module, dot, name = self.env.rpartition(".")
            hint = f"; a class of a module is written '{module}:{name}'" if dot else ""
            if isinstance(problem, gymnasium.error.NameNotFound) and not dot:
                hint = f"; one that your module registers is written 'module:{self.env}'"
            raise InvalidInput(
                f"can't make the environment {self.env!r}: {blame(problem)}{hint}"
            ) from problem
        if not isinstance(made, gymnasium.Env):
            raise InvalidInput(
                f"{self.env!r} made {type(made).__name__}, not a gymnasium.Env; for an old gym "
                "environment use Gymnasium's compatibility wrapper"
            )
        return flattened(made, self.env)

    def _maker(self) -> Callable[..., Any]:
        """ "module:function", unless Gymnasium knows the name ("module:Id-v0" counts)."""
        if self.maker is not None:
            return self.maker
        known = self.env in gymnasium.registry or "-v" in self.env.partition(":")[2]
        if ":" in self.env and not known:
            return find(self.env)
        return partial(gymnasium.make, self.env, max_episode_steps=-1)

    @cached_property
    def _spaces(self) -> tuple[Any, Any, int | None]:
        """Observation space, action space and the registered limit of steps."""
        env = self.make()
        env.close()
        registered = gymnasium.registry.get(self.env.rpartition(":")[2])
        limit = registered.max_episode_steps if registered is not None else None
        return env.observation_space, env.action_space, limit


def flattened(env: gymnasium.Env[Any, Any], name: str) -> gymnasium.Env[Any, Any]:
    """The environment with one row of numbers as its observation.

    Dict and Tuple spaces (goal environments, too) become their parts one after the other, a Dict's
    in the order of its keys; a Discrete one becomes zeros and a one. An image is refused.
    """
    space = env.observation_space
    if isinstance(space, Box) and len(space.shape) == 1:
        return env
    parts = space.spaces.values() if isinstance(space, Dict) else getattr(space, "spaces", [space])
    if any(isinstance(part, Box) and len(part.shape) > IMAGE_AXES - 1 for part in parts):
        raise InvalidInput(
            f"{name}: its observation has an image ({space}), which the policy's network can't "
            "read; put a wrapper around it that gives positions or other numbers"
        )
    try:
        return FlattenObservation(env)
    except (NotImplementedError, ValueError, TypeError):
        raise InvalidInput(
            f"{name}: its observations can't be made one row of numbers, got {space}; put a "
            "wrapper around it that gives a flat Box"
        ) from None


@contextmanager
def anyones_code(what: str) -> Iterator[None]:
    """Anyone's code may raise anything, or not come back: one line that says where."""
    try:
        with waiting_for(what):
            yield
    except RingfenceError:
        raise
    except (Exception, SystemExit) as problem:
        raise SolverFailed(
            f"{what} failed: {blame(problem)}; once that is mended, a run goes on with "
            "'ringfence resume'"
        ) from problem


class GymSimulator:
    """Copies of a GymTask in one SyncVectorEnv that never resets by itself."""

    def __init__(self, task: GymTask, copies: int) -> None:
        self.copies, self._task = copies, task
        makers = [lambda: Shaped(task.make())] * copies
        self._envs = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.DISABLED)
        self._seeds = np.zeros(copies, np.int64)
        self._actions: list[list[Array]] = [[] for _ in range(copies)]
        self._seen = np.zeros((copies, task.observation_dim))
        self._ended = np.ones(copies, np.bool_)
        self._reader = FeatureReader(task.features, task.transition or task.sources, task.name)

    @property
    def seeds(self) -> NDArray[np.int64]:
        """With which each copy was last reset [N]."""
        return self._seeds.copy()

    def reset(self, which: NDArray[np.intp], rngs: Sequence[np.random.Generator]) -> Array:
        if len(which):
            self._seeds[which] = [int(r.integers(2**31)) for r in rngs]
            self._begin(which)
        return self._seen.copy()

    def place(self, which: NDArray[np.intp], states: Array) -> Array:
        if len(which):
            raise InvalidInput(f"{self._task.name}: can't start at given states")
        return self._seen.copy()

    def step(self, actions: Array) -> Step:
        self._begin(np.flatnonzero(self._ended))  # a copy that ended and wasn't reset starts over
        before = self._seen.copy()
        with anyones_code(f"a step of {self._task.name}"):
            seen, rewards, terminated, truncated, info = self._envs.step(self._task.given(actions))
        if np.shape(seen) != before.shape:
            raise SolverFailed(
                f"{self._task.name} returned observations of shape {np.shape(seen)}, "
                f"not {before.shape}"
            )
        self._seen = np.array(seen, np.float64)
        self._ended = terminated | truncated
        for past, action in zip(self._actions, actions, strict=True):
            past.append(action)
        every = np.ones(self.copies, np.bool_)
        features = self._reader.batch(before, actions, self._seen, info, every)
        rewards = self._rewards(before, actions, rewards)
        return Step(self._seen.copy(), rewards, features, terminated, truncated)

    def save(self) -> dict[str, Array]:
        saved: dict[str, Array] = {"seeds": self._seeds.astype(np.float64)}
        shape = (-1, len(self._task.action_low))
        for i, actions in enumerate(self._actions):
            saved[f"actions{i}"] = np.array(actions).reshape(shape)
        return saved

    def restore(self, saved: Mapping[str, Array]) -> Array:
        self._seeds = saved["seeds"].astype(np.int64)
        self._begin(np.arange(self.copies))
        for i, env in enumerate(self._envs.envs):
            with anyones_code(f"a step of {self._task.name}"):
                for action in self._task.given(saved[f"actions{i}"]):
                    self._seen[i] = env.step(action)[0]
            self._actions[i] = list(saved[f"actions{i}"])
        return self._seen.copy()

    def close(self) -> None:
        self._envs.close()

    def _begin(self, which: NDArray[np.intp]) -> None:
        if not len(which):
            return
        mask = np.zeros(self.copies, np.bool_)
        mask[which] = True
        seeds: list[int | None] = [int(s) for s in self._seeds]
        # Not the vector environment's joined observations: after `restore` they are stale.
        with anyones_code(f"a reset of {self._task.name}"):
            self._envs.reset(seed=seeds, options={"reset_mask": mask})
        for i in which:
            self._seen[i] = self._envs._env_obs[i]
            self._actions[i] = []
        self._ended[which] = False

    def _rewards(self, before: Array, actions: Array, own: Array) -> Array:
        if self._task.reward is None:
            return own.astype(np.float64)
        with anyones_code(f"the reward function of {self._task.name}"):
            rewards = np.asarray(self._task.reward(before, actions, self._seen), np.float64)
        if rewards.shape != (self.copies,):
            raise SolverFailed(
                f"the reward function of {self._task.name} returned shape {rewards.shape}, "
                f"not ({self.copies},)"
            )
        return rewards
