"""PyBullet's AntBulletEnv-v0, with batched calls, in worker processes.

The environment of the paper's single-task experiments, through `pybullet_envs_gymnasium` (the
extra `ringfence[bullet]`). Resets are the environment's own code; steps ask Bullet for all
joints and links at once instead of one by one, which gives the same numbers nearly twice as
fast. Bullet gains nothing from threads, so copies run in processes, each with its own policy,
which send back whole chunks. Copies come in groups of fixed size, each acting as one batch, so
that the number of processes changes no bit of the result.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput, RingfenceError, SolverFailed
from ringfence.objects import Array, Feature, Trajectory
from ringfence.worlds.continuous import ContinuousWorld
from ringfence.worlds.sim.rollouts import (
    Arrays,
    Chunk,
    Collector,
    CollectorSpec,
    ContinuousTask,
    LocalCollector,
    Step,
    join_chunks,
)

FEATURES = (Feature("x", "m"), Feature("y", "m"), Feature("speed", "m/s"))

_JOINTS = tuple(f"{part}_{leg}" for leg in range(1, 5) for part in ("hip", "ankle"))
#: The observation's numbers, after the step: features where a task has `full_state`.
OBSERVED = tuple(
    Feature(name, "1")
    for name in (
        *("height", "bearing_sin", "bearing_cos", "v_x", "v_y", "v_z", "roll", "pitch"),
        *(f"{joint}{kind}" for joint in _JOINTS for kind in ("", "_rate")),
        *(f"contact_{foot}" for foot in range(1, 5)),
    )
)

NU, OBSERVATION = 8, 28
DT = 0.0165
#: The robot's body in a fresh simulation, and AntBulletEnv's constants.
TORQUE = 2.5 * 100.0
ALIVE_HEIGHT = 0.26
JOINT_LIMIT = 0.99
TARGET = 1e3
ELECTRICITY_COST, STALL_COST, LIMIT_COST = -2.0, -0.1, -0.1
#: Copies that act together, whatever the number of processes.
GROUP = 8


@dataclass(frozen=True)
class Config:
    """PyBullet's Ant: one task, without arguments; features x, y (m) and speed (m/s).

    full_state: the observation's numbers are features, too; truth: an inequality, where it is
    known; reports compare with it, nothing learns from it.
    """

    kind: Literal["ant-bullet"] = "ant-bullet"
    full_state: bool = False
    truth: str = ""


def make(config: Config) -> ContinuousWorld:
    def no_other(spec: Mapping[str, Any]) -> ContinuousTask:
        raise InvalidInput("PyBullet's Ant has one task; a new one needs another world")

    return ContinuousWorld(
        "ant-bullet",
        (AntBulletTask(full_state=config.full_state),),
        ("jax", "jaxlib", "optax", "pybullet"),
        no_other,
        raw_in="features",  # the paper's
    )


@dataclass(frozen=True)
class AntBulletTask:
    """Walk along +x; episodes of 1000 steps of 0.0165 s. `workers` change speed, not results.

    With `full_state` the observation's 28 numbers (scaled as the environment does) are features.
    """

    full_state: bool = False
    workers: int = field(default=2, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InvalidInput(f"the Bullet Ant needs at least one worker, got {self.workers}")

    @property
    def name(self) -> str:
        return "ant-bullet"

    @property
    def features(self) -> tuple[Feature, ...]:
        return FEATURES + OBSERVED if self.full_state else FEATURES

    @property
    def horizon(self) -> int:
        return 1000

    @property
    def observation_dim(self) -> int:
        return OBSERVATION

    @property
    def action_low(self) -> Array:
        return -np.ones(NU)

    @property
    def action_high(self) -> Array:
        return np.ones(NU)

    def simulator(self, copies: int) -> BulletSimulator:
        return BulletSimulator(copies, self.full_state)

    def collector(self, spec: CollectorSpec) -> Collector:
        if spec.starts is not None:
            raise InvalidInput(
                "the Bullet Ant can't start at demonstrated states: its observations are "
                "clipped and do not determine them"
            )
        _pybullet()
        return WorkerCollector(self, spec)


def _pybullet() -> Any:
    try:
        with _silence():
            import pybullet
            import pybullet_envs_gymnasium  # noqa: F401
    except ImportError as error:
        raise InvalidInput(
            f"the Bullet Ant needs the extra 'bullet': pip install 'ringfence[bullet]' ({error})"
        ) from error
    return pybullet


# One Ant and many ------------------------------------------------------------------------------


class BulletAnt:
    """One AntBulletEnv-v0 with batched calls."""

    def __init__(self) -> None:
        self._pybullet = _pybullet()
        from pybullet_envs_gymnasium import gym_locomotion_envs as envs

        with _silence():
            self._env: Any = cast(Any, envs).AntBulletEnv()
            # The very first reset builds the scene and differs from all later ones (the floor
            # joins the body parts after it): spend it, so that a start depends on its seed alone.
            self._env.reset(seed=0)
        robot, self._client = self._env.robot, self._env._p._client
        self._body = int(robot.objects[0])
        self._joints = [j.jointIndex for j in self._env.ordered_joints]
        self._lower = np.array([j.lowerLimit for j in self._env.ordered_joints])
        self._upper = np.array([j.upperLimit for j in self._env.ordered_joints])
        parts = [(p.bodies[p.bodyIndex], p.bodyPartIndex) for p in self._env.parts.values()]
        self._links = [link for body, link in parts if body == self._body and link >= 0]
        # Row of each part in (base, links..., floor): the mean of parts is in the reward.
        rows = {(self._body, -1): 0, (0, -1): len(self._links) + 1}
        rows |= {(self._body, link): i + 1 for i, link in enumerate(self._links)}
        self._part_rows = [rows[part] for part in parts]
        self._floor = self._env._p.getBasePositionAndOrientation(0)[0]
        self._feet = {f.bodyPartIndex: i for i, f in enumerate(robot.feet)}
        self._contact = np.zeros(len(self._feet), np.float32)

    def reset(self, seed: int) -> NDArray[np.float32]:
        with _silence():
            observation, _ = self._env.reset(seed=seed)
        self._initial_z = self._env.robot.initial_z
        self._potential = self._env.potential
        self._xy = tuple(self._env.robot.body_real_xyz[:2])
        self._contact[:] = 0
        return np.asarray(observation, np.float32)

    def step(self, action: Array) -> tuple[NDArray[np.float32], float, tuple[float, ...], bool]:
        """-> observation [28], reward, (x, y, speed), terminated."""
        # Plain numpy reductions: with arrays this small, half of a step's time was in the
        # wrappers (mean, clip, norm). The numbers are bit for bit the environment's.
        bullet, client, body = self._pybullet, self._client, self._body
        bullet.setJointMotorControlArray(
            body,
            self._joints,
            bullet.TORQUE_CONTROL,
            forces=(TORQUE * np.minimum(np.maximum(action, -1), 1)).tolist(),
            physicsClientId=client,
        )
        bullet.stepSimulation(physicsClientId=client)
        joints = self._joint_state()
        position, orientation = bullet.getBasePositionAndOrientation(body, physicsClientId=client)
        links = bullet.getLinkStates(body, self._links, physicsClientId=client)
        rows = [position, *[link[0] for link in links], self._floor]
        xyz = np.array([rows[i] for i in self._part_rows]).ravel()
        x, y = _mean(xyz[0::3]), _mean(xyz[1::3])
        roll, pitch, yaw = bullet.getEulerFromQuaternion(orientation)
        bearing = np.arctan2(-y, TARGET - x) - yaw
        cos, sin = np.cos(-yaw), np.sin(-yaw)
        turn = np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])
        velocity = bullet.getBaseVelocity(body, physicsClientId=client)[0]
        vx, vy, vz = np.dot(turn, np.array(velocity))
        height = position[2] - self._initial_z
        state = np.empty(OBSERVATION, np.float32)
        state[:8] = (
            *(height, np.sin(bearing), np.cos(bearing)),
            *(0.3 * vx, 0.3 * vy, 0.3 * vz, roll, pitch),
        )
        state[8:24] = joints
        state[24:] = self._contact  # AntBulletEnv shows the contacts of the step before
        observation = np.minimum(np.maximum(state, -5), 5)
        self._feet_contacts()

        alive = 1.0 if observation[0] + self._initial_z > ALIVE_HEIGHT else -1.0
        to_target = np.array([-y, TARGET - x])
        potential = -np.sqrt(to_target.dot(to_target)) / DT
        progress = float(potential - self._potential)
        self._potential = potential
        at_limit = int(np.count_nonzero(np.abs(joints[0::2]) > JOINT_LIMIT))
        electricity = ELECTRICITY_COST * float(_mean(np.abs(action * joints[1::2])))
        electricity += STALL_COST * float(_mean(np.square(action)))
        reward = sum([alive, progress, electricity, float(LIMIT_COST * at_limit), 0.0])
        dx, dy = position[0] - self._xy[0], position[1] - self._xy[1]
        self._xy = position[:2]
        fallen = alive < 0 or not math.isfinite(float(np.add.reduce(observation)))
        return observation, float(reward), (*self._xy, math.hypot(dx, dy) / DT), fallen

    def close(self) -> None:
        self._env.close()

    def _joint_state(self) -> NDArray[np.float32]:
        """Position (scaled to -1..1) and speed of each joint, in turns [16]."""
        states = self._pybullet.getJointStates(
            self._body, self._joints, physicsClientId=self._client
        )
        out = np.empty(2 * len(states), np.float32)
        angles = np.array([s[0] for s in states])
        out[0::2] = 2 * (angles - self._lower) / (self._upper - self._lower) - 1.0
        out[1::2] = [0.1 * s[1] for s in states]
        return out

    def _feet_contacts(self) -> None:
        self._contact[:] = 0
        touching = self._pybullet.getContactPoints(self._body, 0, physicsClientId=self._client)
        for contact in touching:
            foot = self._feet.get(contact[3])
            if foot is not None and contact[4] == -1:
                self._contact[foot] = 1


def _mean(x: NDArray[Any]) -> Any:
    """x.mean() without its wrapper."""
    return np.add.reduce(x) / len(x)


class BulletSimulator:
    """Copies of the Bullet Ant in this process.

    Bullet's own saved states lose its caches between processes; a copy's state is saved as its
    start's seed and the actions since, and restored by replaying them: exact.
    """

    def __init__(self, copies: int, full_state: bool = False) -> None:
        self.copies, self._full_state = copies, full_state
        self._ants = [BulletAnt() for _ in range(copies)]
        self._seeds = np.zeros(copies, np.int64)
        self._actions: list[list[Array]] = [[] for _ in range(copies)]
        self._seen = np.zeros((copies, OBSERVATION))

    def reset(self, which: NDArray[np.intp], rngs: Sequence[np.random.Generator]) -> Array:
        for i, rng in zip(which, rngs, strict=True):
            self._begin(int(i), int(rng.integers(2**31)))
        return self._seen.copy()

    def place(self, which: NDArray[np.intp], states: Array) -> Array:
        if len(which):
            raise InvalidInput("the Bullet Ant can't start at given states")
        return self._seen.copy()

    def step(self, actions: Array) -> Step:
        results = []
        for i, ant in enumerate(self._ants):
            results.append(ant.step(actions[i]))
            self._actions[i].append(actions[i])
            self._seen[i] = results[-1][0]
        features = np.array([r[2] for r in results])
        return Step(
            self._seen.copy(),
            np.array([r[1] for r in results]),
            np.hstack([features, self._seen]) if self._full_state else features,
            np.array([r[3] for r in results]),
        )

    def save(self) -> dict[str, Array]:
        saved: dict[str, Array] = {"seeds": self._seeds.astype(np.float64)}
        for i, actions in enumerate(self._actions):
            saved[f"actions{i}"] = np.array(actions).reshape(-1, NU)
        return saved

    def restore(self, saved: Mapping[str, Array]) -> Array:
        for i, ant in enumerate(self._ants):
            self._begin(i, int(saved["seeds"][i]))
            for action in saved[f"actions{i}"]:
                self._seen[i] = ant.step(action)[0]
            self._actions[i] = list(saved[f"actions{i}"])
        return self._seen.copy()

    def close(self) -> None:
        for ant in self._ants:
            ant.close()

    def _begin(self, i: int, seed: int) -> None:
        self._seen[i] = self._ants[i].reset(seed)
        self._seeds[i] = seed
        self._actions[i] = []


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Bullet's C code greets on standard output and error; that is none of ours."""
    null, kept = os.open(os.devnull, os.O_WRONLY), {stream: os.dup(stream) for stream in (1, 2)}
    try:
        for stream in kept:
            os.dup2(null, stream)
        yield
    finally:
        for stream, copy in kept.items():
            os.dup2(copy, stream)
            os.close(copy)
        os.close(null)


# Workers ---------------------------------------------------------------------------------------


class WorkerCollector:
    """A collector over worker processes, each with groups of copies of its own."""

    def __init__(self, task: AntBulletTask, spec: CollectorSpec) -> None:
        if spec.copies % GROUP:
            raise InvalidInput(f"the Bullet Ant needs a multiple of {GROUP} copies: {spec.copies}")
        groups = np.arange(spec.copies // GROUP)
        self._groups, self._answered = len(groups), False
        self._pools = [
            ProcessPoolExecutor(1, get_context("spawn"), _begin, (task, spec, share.tolist()))
            for share in np.array_split(groups, min(task.workers, len(groups)))
        ]

    def collect(self, policy: Arrays, steps: int, rollout: int) -> Chunk:
        return join_chunks(self._ask_all(_collect, policy, steps, rollout))

    def episodes(
        self, policy: Arrays, count: int, deterministic: bool, seed: Sequence[int]
    ) -> list[Trajectory]:
        """As many groups of every worker as are needed; the number of workers changes nothing."""
        runs: list[Trajectory] = []
        while len(runs) < count:
            groups = np.arange(min(self._groups, -(-(count - len(runs)) // GROUP)))
            path = [*map(int, seed), len(runs)]
            shares = np.array_split(groups, len(self._pools))
            asked = [(policy, deterministic, path, share.tolist()) for share in shares]
            runs += [run for part in self._ask(_episodes, asked) for run in part]
        return runs[:count]

    def save(self) -> dict[str, NDArray[Any]]:
        return {name: array for part in self._ask_all(_save) for name, array in part.items()}

    def restore(self, saved: Arrays) -> None:
        self._ask_all(_restore, saved)

    def close(self) -> None:
        """At once: what a worker has that is worth keeping is in a checkpoint."""
        for pool in self._pools:
            for worker in list((pool._processes or {}).values()):
                worker.kill()
            pool.shutdown()
        self._pools = []

    def _ask_all(self, function: Callable[..., Any], *given: Any) -> list[Any]:
        return self._ask(function, [given] * len(self._pools))

    def _ask(self, function: Callable[..., Any], asked: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The same of each worker, with arguments of its own; their answers in order."""
        futures, answers = list[Future[Any]](), list[Any]()
        try:
            for pool, given in zip(self._pools, asked, strict=True):
                futures.append(pool.submit(function, *given))
            for future in futures:
                answers.append(future.result())
        except BrokenProcessPool as problem:
            n = len(answers) if len(futures) == len(self._pools) else len(futures)
            self.close()
            advice = "the rollout is lost; start again, or resume from the last checkpoint"
            if not self._answered:
                advice = (
                    "its first words are above. A worker imports the script that started it: "
                    "put what the script does under \"if __name__ == '__main__':\""
                )
            raise SolverFailed(f"Bullet worker {n} died: {advice}") from problem
        except RingfenceError as problem:
            self.close()
            raise SolverFailed(f"Bullet worker {len(answers)} failed: {problem}") from problem
        self._answered = True
        return answers


#: A worker's own groups of copies, by their number among all.
_groups: dict[int, LocalCollector] = {}


def _begin(task: AntBulletTask, spec: CollectorSpec, share: list[int]) -> None:
    """What a worker does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for g in share:
        simulator = task.simulator(GROUP)
        _groups[g] = LocalCollector(task, simulator, spec, first=g * GROUP, total=spec.copies)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _collect(policy: Arrays, steps: int, rollout: int) -> Chunk:
    return join_chunks([group.collect(policy, steps, rollout) for group in _groups.values()])


def _episodes(
    policy: Arrays, deterministic: bool, seed: Sequence[int], numbers: Sequence[int]
) -> list[Trajectory]:
    """Of as many groups as there are numbers, which they have among all episodes' groups."""
    return [
        run
        for group, n in zip(_groups.values(), numbers, strict=False)
        for run in group.episodes(policy, GROUP, deterministic, seed, first=n * GROUP)
    ]


def _save() -> dict[str, NDArray[Any]]:
    return {f"group{g}/{k}": v for g, group in _groups.items() for k, v in group.save().items()}


def _restore(saved: Arrays) -> None:
    for g, group in _groups.items():
        prefix = f"group{g}/"
        group.restore({k[len(prefix) :]: v for k, v in saved.items() if k.startswith(prefix)})
