"""From the configuration of a continuous world to its tasks and, for reports, its truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np

from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.demos.dataset import TaskDemos
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Feature, J
from ringfence.runs.control_config import ControlWorld, FeatureConfig, TaskConfig
from ringfence.worlds.ant import AntTask
from ringfence.worlds.ant_bullet import AntBulletTask
from ringfence.worlds.gym import GymTask
from ringfence.worlds.named import Named, find
from ringfence.worlds.sim.rollouts import ContinuousTask


def make_tasks(world: ControlWorld) -> tuple[ContinuousTask, ...]:
    """The world's tasks, in order; a world that names none has one."""
    if world.kind == "gym":
        return tuple(_gym_task(world, t) for t in world.tasks or (TaskConfig(world.env),))
    for name in ("env", "features", "feature_function"):
        if getattr(world, name):
            raise InvalidInput(f'[world] {name} is for kind = "gym", not {world.kind!r}')
    if world.kind == "ant-bullet":
        if world.tasks or world.kwargs or world.steps:
            raise InvalidInput("[world] the Bullet Ant has one task and no arguments")
        return (AntBulletTask(full_state=world.full_state),)
    return tuple(_ant_task(world, t) for t in world.tasks or (TaskConfig("ant"),))


def _ant_task(world: ControlWorld, task: TaskConfig) -> AntTask:
    """The Ant's only argument is the direction it is paid for."""
    given = {**world.kwargs, **task.kwargs}
    direction = given.pop("direction", (1.0, 0.0))
    if given or task.reward or task.wrapper or len(direction) != 2:
        raise InvalidInput("[world] the Ant's tasks differ in kwargs = { direction = [x, y] } only")
    x, y = map(float, direction)
    ant = AntTask((x, y), full_state=world.full_state)
    return replace(ant, horizon=world.steps) if world.steps else ant


def _gym_task(world: ControlWorld, task: TaskConfig) -> GymTask:
    if not world.env:
        raise InvalidInput('[world] kind = "gym" needs env, an id or "module:function"')
    if not (world.features or world.full_state):
        raise InvalidInput("[world] features: declare at least one, or full_state = true")
    if world.full_state and world.feature_function:
        raise InvalidInput("[world] full_state and feature_function don't go together")
    function = function_named(world.feature_function)
    made = GymTask(
        world.env,
        tuple(Feature(f.name, f.unit) for f in world.features) or (Feature("obs_0", "1"),),
        function,
        world.steps,
        {**world.kwargs, **task.kwargs},
        dict([_source(f) for f in world.features]) if function is None else {},
        function_named(task.reward),
        task.name,
        function_named(task.wrapper),
    )
    if not world.full_state:
        return made
    seen: dict[str, str | int] = {f"obs_{n}": n for n in range(made.observation_dim)}
    declared = tuple(Feature(f.name, f.unit) for f in world.features)
    every = (*declared, *(Feature(name, "1") for name in seen))
    return replace(made, features=every, sources={**made.sources, **seen})


def _source(f: FeatureConfig) -> tuple[str, str | int]:
    """Where a feature's value comes from: a column of the observation or a key of info."""
    if f.info is not None and f.column is not None:
        raise InvalidInput(f"[world] feature {f.name!r}: give info or column, not both")
    return f.name, f.column if f.column is not None else f.info or f.name


def function_named(name: str) -> Named | None:
    """The user's function, found now rather than in the middle of a training."""
    if not name:
        return None
    find(name)
    return Named(name)


def start_states(task: ContinuousTask, demos: TaskDemos) -> Array:
    """States that the demonstrations reached, [n, s], to begin episodes from."""
    if not isinstance(task, AntTask):
        raise InvalidInput(
            f"[ppo] start_share: {task.name}'s episodes can't begin at demonstrated states; "
            "only MuJoCo's Ant can"
        )
    return np.concatenate([task.states_of(t) for t in demos.train])


def world_versions(world: ControlWorld) -> dict[str, str]:
    """Of everything whose numbers reach a result on this world."""
    simulator = {"ant": "mujoco", "ant-bullet": "pybullet", "gym": "gymnasium"}[world.kind]
    names = ["ringfence", "numpy", "jax", "jaxlib", "optax", simulator]
    # Many of Gymnasium's environments are MuJoCo's, whose steps differ between versions.
    if world.kind == "gym" and find_spec("mujoco") is not None:
        names.append("mujoco")
    return {name: version(name) for name in names}


# The truth -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Truth:
    """The constraint that the demonstrators kept, where it is known: for report columns only."""

    c: LinearConstraint | None

    def raw(self, pi: Behaviour) -> float | None:
        """The signed sum of the true raw value over an episode."""
        return None if self.c is None else float(pi.visits @ self.c.raw(pi.features))

    def cost(self, pi: Behaviour) -> float | None:
        """The sum of the true activated cost over an episode."""
        return None if self.c is None else J(pi, self.c)


def make_truth(world: ControlWorld, features: tuple[Feature, ...]) -> Truth:
    return Truth(parse_inequality(world.truth, features) if world.truth else None)
