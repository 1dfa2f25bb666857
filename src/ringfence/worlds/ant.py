"""MuJoCo's Ant, many at once.

The dynamics, observation, reward and termination are Gymnasium's Ant-v5 with
`include_cfrc_ext_in_observation=False, contact_cost_weight=0`, stepped by `mujoco.batch` in C
threads: bit for bit the same numbers at any number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import mujoco
import mujoco.batch
import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Feature, Trajectory
from ringfence.worlds.continuous import ContinuousWorld, TaskConfig
from ringfence.worlds.sim.rollouts import (
    Collector,
    CollectorSpec,
    GroupedCollector,
    LocalCollector,
    Step,
)

FEATURES = (Feature("x", "m"), Feature("y", "m"), Feature("speed", "m/s"))

_JOINTS = tuple(f"{part}_{leg}" for leg in range(1, 5) for part in ("hip", "ankle"))
#: The observation's numbers, after the step: features where a task has `full_state`.
OBSERVED = (
    Feature("z", "m"),
    *(Feature(name, "1") for name in ("q_w", "q_x", "q_y", "q_z")),
    *(Feature(name, "rad") for name in _JOINTS),
    *(Feature(f"v_{axis}", "m/s") for axis in "xyz"),
    *(Feature(f"turn_{axis}", "rad/s") for axis in "xyz"),
    *(Feature(f"{name}_rate", "rad/s") for name in _JOINTS),
)

FRAME_SKIP = 5
CONTROL_COST = 0.5
SURVIVAL_REWARD = 1.0
HEALTHY_Z = (0.2, 1.0)
RESET_NOISE = 0.1
TORSO = 1
#: Nearer than this to its goal an Ant's speed towards it fades (m): the direction has no meaning.
NEAR = 0.1
#: Ants that act together in one thread, whatever the number of threads.
GROUP = 32
NQ, NV, NU = 15, 14, 8
#: Numbers of the body's observation, and what is seen behind them where there is a goal.
BODY = NQ - 2 + NV
WAY_LEFT = (Feature("x_left", "m"), Feature("y_left", "m"))


@cache
def model() -> mujoco.MjModel:
    """Gymnasium's Ant, read from its own file (rendering packages are not needed for that)."""
    spec = find_spec("gymnasium")
    if spec is None or spec.origin is None:
        raise InvalidInput("the Ant's model is part of gymnasium, which is not installed")
    return mujoco.MjModel.from_xml_path(
        str(Path(spec.origin).parent / "envs" / "mujoco" / "assets" / "ant.xml")
    )


@dataclass(frozen=True)
class Config:
    """MuJoCo's Ant, with the features x, y (m) and speed (m/s).

    kwargs: direction = [x, y], the way in which it is paid for walking, or goal = [x, y] (m), which
    it then sees; steps: of an episode (None: 1000); full_state: the observation's numbers are
    features, too; tasks: each with kwargs of its own (empty: one); truth: an inequality, where it
    is known; reports compare with it, nothing learns from it.
    """

    kind: Literal["ant"] = "ant"
    kwargs: dict[str, Any] = field(default_factory=dict)
    steps: int | None = None
    full_state: bool = False
    tasks: tuple[TaskConfig, ...] = ()
    truth: str = ""


def make(config: Config) -> ContinuousWorld:
    tasks = tuple(_task(config, t) for t in config.tasks or (TaskConfig("ant"),))
    return ContinuousWorld(
        "ant",
        tasks,
        ("jax", "jaxlib", "optax", "mujoco"),
        lambda spec: _task(config, TaskConfig(**{"name": "new", **spec})),
        raw_in="features",  # the paper's
    )


def _task(config: Config, task: TaskConfig) -> AntTask:
    """The Ant's only argument is what it is paid for: a direction or a goal."""
    given = {**config.kwargs, **task.kwargs}
    direction, goal = given.pop("direction", None), given.pop("goal", None)
    vectors = [v for v in (direction, goal) if v is not None]
    paid = len(vectors) <= 1 and all(len(v) == 2 for v in vectors)
    if given or task.reward or task.wrapper or not paid:
        raise InvalidInput(
            "[world] the Ant's tasks differ in kwargs only, { direction = [x, y] } or "
            "{ goal = [x, y] }"
        )
    label = task.name if config.tasks else ""
    ant = AntTask(full_state=config.full_state, label=label)
    if direction is not None:
        ant = replace(ant, direction=(float(direction[0]), float(direction[1])))
    if goal is not None:
        ant = replace(ant, goal=(float(goal[0]), float(goal[1])))
    return replace(ant, horizon=config.steps) if config.steps else ant


@dataclass(frozen=True)
class AntTask:
    """Walk along `direction` (a unit vector in the plane) for `horizon` steps of 0.05 s, or go to
    `goal` (m) and stay there.

    Towards a goal it is paid, beside its speed in that direction, 1 per step for each metre that
    it is nearer than the origin is: where it ends up counts in every step, so that it comes as near
    as it may. The way that is left, (x, y) in m, is then seen behind the observation's 27 numbers.
    With `full_state` the observation's 27 numbers are features, too. `threads` are the
    simulator's; the results do not depend on them. label: its name, where it has been given one.
    """

    direction: tuple[float, float] = (1.0, 0.0)
    horizon: int = 1000
    full_state: bool = False
    threads: int = field(default=2, compare=False, repr=False)
    label: str = field(default="", repr=False)
    goal: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.goal is not None and not (np.isfinite(self.goal).all() and any(self.goal)):
            raise InvalidInput(f"the Ant's goal must be away from the origin, got {self.goal}")
        if abs(float(np.hypot(*self.direction)) - 1) > 1e-9:
            raise InvalidInput(f"the Ant's direction must have length 1, got {self.direction}")
        if self.threads < 1:
            raise InvalidInput(f"the Ant needs at least one thread, got {self.threads}")

    @property
    def name(self) -> str:
        if self.label:
            return self.label
        if self.goal is not None:
            return f"ant to ({self.goal[0]:.4g}, {self.goal[1]:.4g})"
        if self.direction == (1.0, 0.0):
            return "ant"
        return f"ant({self.direction[0]:.4g}, {self.direction[1]:.4g})"

    @property
    def features(self) -> tuple[Feature, ...]:
        if not self.full_state:
            return FEATURES
        return FEATURES + OBSERVED + (WAY_LEFT if self.goal is not None else ())

    @property
    def observation_dim(self) -> int:
        return BODY if self.goal is None else BODY + len(WAY_LEFT)

    @property
    def action_low(self) -> Array:
        return -np.ones(NU)

    @property
    def action_high(self) -> Array:
        return np.ones(NU)

    def simulator(self, copies: int) -> AntSimulator:
        return AntSimulator(self, copies, self.threads)

    def collector(self, spec: CollectorSpec) -> Collector:
        groups = [
            LocalCollector(
                self,
                AntSimulator(self, min(GROUP, spec.copies - first), threads=1),
                spec,
                first,
                spec.copies,
            )
            for first in range(0, spec.copies, GROUP)
        ]
        return GroupedCollector(groups, self.threads)

    def states_of(self, trajectory: Trajectory) -> Array:
        """The states that a trajectory reached, [T, 29], to start episodes from.

        The observation has all of (qpos, qvel) but x and y, which are features of the
        transition into that state.
        """
        xy, seen = trajectory.features[:, :2], trajectory.observations[1:]
        if seen.shape[1] != self.observation_dim or trajectory.features.shape[1] < len(FEATURES):
            raise InvalidInput(
                f"these demonstrations are not {self.name}'s: observations "
                f"{trajectory.observations.shape}, features {trajectory.features.shape}"
            )
        return np.hstack([xy, seen[:, :BODY]])


class AntSimulator:
    """`copies` Ants that step together. A step never resets: `reset` and `place` do."""

    def __init__(self, task: AntTask, copies: int, threads: int = 1) -> None:
        self.copies = copies
        self._direction, self._full_state = np.array(task.direction), task.full_state
        self._goal = None if task.goal is None else np.array(task.goal)
        self._dt = model().opt.timestep * FRAME_SKIP
        self._batch = mujoco.batch.Batch(model(), copies, threads)
        self._qpos, self._qvel = self._batch.bind("qpos"), self._batch.bind("qvel")
        # qpos and qvel lie side by side in a state's row.
        at = int((self._qpos.ctypes.data - self._batch.state.ctypes.data) // 8)
        self._state = self._batch.state[:, at : at + NQ + NV]
        assert np.shares_memory(self._state[:, NQ:], self._qvel)
        self._ctrl, self._xpos = self._batch.bind("ctrl"), self._batch.bind("xpos")
        # Where the torso was after the last step. Ant-v5 takes velocities from xpos, which
        # lags qpos by a part of a substep; it is no part of MuJoCo's state, so it is kept here.
        self._xy = np.zeros((copies, 2))

    def reset(self, which: NDArray[np.intp], rngs: Sequence[np.random.Generator]) -> Array:
        """Ant-v5's random start for the copies `which`, one generator each -> [copies, 27]."""
        init = model().qpos0
        states = [
            np.concatenate(
                [
                    init + rng.uniform(-RESET_NOISE, RESET_NOISE, NQ),
                    RESET_NOISE * rng.standard_normal(NV),
                ]
            )
            for rng in rngs
        ]
        return self.place(which, np.array(states).reshape(-1, NQ + NV))

    def place(self, which: NDArray[np.intp], states: Array) -> Array:
        """Put the copies `which` into states [n, 29] = (qpos, qvel) -> observations of all."""
        if len(which):
            self._batch.reset(which, stage=mujoco.mjtStage.mjSTAGE_NONE.value)
            self._qpos[which], self._qvel[which] = states[:, :NQ], states[:, NQ:]
            self._batch.forward(which)
            self._xy[which] = self._xpos[which, TORSO, :2]
        return self._observe()

    def step(self, actions: Array, which: NDArray[np.intp] | None = None) -> Step:
        """actions [copies, 8] -> what the step led to, before any reset.

        With `which` only those copies are stepped; the others' rows mean nothing.
        """
        self._ctrl[:] = actions
        self._batch.step(which, nstep=FRAME_SKIP)
        xy = self._xpos[:, TORSO, :2].copy()
        velocity = (xy - self._xy) / self._dt
        self._xy = xy
        z = self._qpos[:, 2]
        healthy = np.isfinite(self._state).all(axis=1) & (z >= HEALTHY_Z[0]) & (z <= HEALTHY_Z[1])
        forward = self._paid(xy, velocity)
        control = CONTROL_COST * np.square(actions).sum(axis=1)
        features = np.empty((self.copies, len(FEATURES)))
        features[:, :2] = self._qpos[:, :2]
        np.hypot(velocity[:, 0], velocity[:, 1], out=features[:, 2])
        rewards = forward + SURVIVAL_REWARD * healthy - control
        seen = self._observe()
        if self._full_state:
            features = np.hstack([features, seen])
        return Step(seen, rewards, features, ~healthy)

    def _paid(self, xy: Array, velocity: Array) -> Array:
        """For where an Ant is and how fast it goes there, [copies]."""
        if self._goal is None:
            return np.asarray(velocity @ self._direction)
        left = self._goal - xy
        away = np.linalg.norm(left, axis=1)
        towards = (velocity * left).sum(axis=1) / np.maximum(away, NEAR)
        return np.asarray(towards + np.linalg.norm(self._goal) - away)

    def save(self) -> dict[str, Array]:
        """Everything that the next step depends on."""
        return {"state": self._batch.state.copy(), "xy": self._xy.copy()}

    def restore(self, saved: Mapping[str, Array]) -> Array:
        """Back to a saved state -> observations [copies, 27]."""
        self._batch.state[:] = saved["state"]
        self._xy = saved["xy"].copy()
        return self._observe()

    def close(self) -> None:
        pass

    def _observe(self) -> Array:
        body = np.array(self._state[:, 2:], np.float64)
        return body if self._goal is None else np.hstack([body, self._goal - self._qpos[:, :2]])
