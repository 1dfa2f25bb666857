"""Experts of finite worlds whose truth is known: they make demonstrations, and exact behaviours.

This is the only place on the way to the game that reads a world's truth, and it does so in the
demonstrators' stead. What it hands on, paths and occupancies, holds no truth.

Each path has a random stream of its own, named by (seed; split, task, start, path): more paths
are the same paths and some more, and a task's paths don't depend on the other tasks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.objects import JSON, Array, Behaviour, Demonstrations, TaskDemos, Trajectory
from ringfence.solvers import soft
from ringfence.worlds.finite import FiniteTask, Policy, behaviour, occupancy, rollout
from ringfence.worlds.grid import GridWorld
from ringfence.worlds.world import World

Kind = Literal["soft", "deterministic"]
Split = Literal["train", "heldout"]

#: The first number of a stream's name. The choice of contaminated paths has its own streams.
STREAM = {"train": 0, "heldout": 1}
CHOICE = {"train": 2, "heldout": 3}


@dataclass(frozen=True)
class ExpertConfig:
    """How demonstrators behave, and how many paths they leave. The first paths of a larger set are
    a smaller set's, unless some are contaminated: these are drawn from among them all.

    paths: to learn from, of each task and start; heldout: the same, held out; temperature: of
    "soft", in units of reward; kind: "soft" is random among equals, "deterministic" takes the first
    of them; delta: the true cost an episode may have (a world with slip can't be walked at 0);
    noise: the chance that a step's action is uniformly random; contaminated: the share of paths,
    rounded to whole paths per start, whose maker ignored the constraint; seed: of their randomness.
    """

    paths: int = 10
    heldout: int = 5
    temperature: float = 0.05
    kind: Kind = "soft"
    delta: float = 0.0
    noise: float = 0.0
    contaminated: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        rules = {
            "paths": (self.paths >= 1, "at least 1"),
            "heldout": (self.heldout >= 0, "at least 0"),
            "temperature": (0 < self.temperature < np.inf, "positive"),
            "kind": (self.kind in ("soft", "deterministic"), "'soft' or 'deterministic'"),
            "delta": (0 <= self.delta < np.inf, "at least 0"),
            "noise": (0 <= self.noise <= 1, "in [0, 1]"),
            "contaminated": (0 <= self.contaminated < 1, "in [0, 1)"),
            "seed": (self.seed >= 0, "at least 0"),
        }
        for name, (holds, rule) in rules.items():
            if not holds:
                raise InvalidInput(f"experts: {name} must be {rule}, got {getattr(self, name)!r}")


DEFAULT = ExpertConfig()


def expert_policies(world: World, config: ExpertConfig = DEFAULT) -> Iterator[Array | soft.Plan]:
    """pi[t, s, a] of each task's expert under the truth, without noise, one at a time."""
    for task in finite_tasks(world):
        cost = np.repeat(true_cells(world).reshape(-1, 1), task.mdp.num_actions, axis=1)
        try:
            pi, _ = soft.respond(task.mdp, cost.astype(float), config.delta, _temperature(config))
        except InfeasibleLimit as error:
            raise InfeasibleLimit(
                f"experts of task {task.name!r}: {error}; raise the experts' delta, or lower slip"
            ) from error
        yield pi


def true_cells(world: World) -> NDArray[np.bool_]:
    """The truly forbidden cells, which the experts avoid."""
    if world.cells is None or world.cells.walls is None:
        raise InvalidInput(
            f"{world.name}: no forbidden cell is known here, so nobody knows what demonstrators "
            "avoid: give theirs (learn --demos), or mark the forbidden cells to have some made"
        )
    return world.cells.walls


def finite_tasks(world: World) -> Sequence[FiniteTask]:
    assert world.cells is not None
    return world.cells.tasks


def careless_policies(
    world: World, config: ExpertConfig = DEFAULT
) -> Iterator[Array | soft.Plan | None]:
    """pi[t, s, a] of each task's contaminated makers: reward only. None where there are none."""
    for task in finite_tasks(world):
        yield soft.best(task.mdp, _temperature(config)) if config.contaminated else None


def _temperature(config: ExpertConfig) -> float:
    return config.temperature if config.kind == "soft" else 0.0


def expert_behaviours(world: World, config: ExpertConfig = DEFAULT) -> list[Behaviour]:
    """What the demonstrators do, exactly: infinitely many paths of each task."""
    behaviours = []
    policies = (expert_policies(world, config), careless_policies(world, config))
    for task, careful, careless in zip(finite_tasks(world), *policies, strict=True):
        rho = _noisy_visits(task, careful, config)
        if careless is not None:
            share = config.contaminated
            rho = (1 - share) * rho + share * _noisy_visits(task, careless, config)
        behaviours.append(behaviour(task, rho))
    return behaviours


def _noisy_visits(task: FiniteTask, pi: Array | soft.Plan, config: ExpertConfig) -> Array:
    """rho[t, s, a] of a demonstrator whose steps are random now and then."""
    noisy = (1 - config.noise) * soft.whole(pi) + config.noise / task.mdp.num_actions
    return occupancy(task.mdp, noisy)


def from_each_start(
    world: World, tasks: Sequence[FiniteTask]
) -> Iterator[tuple[FiniteTask, int, Array]]:
    """The same experts by task and start: with the start's state and rho[t, s, a] from there."""
    wanted = {task.name: task for task in tasks}
    every = zip(finite_tasks(world), expert_policies(world), strict=True)
    for task, pi in ((wanted[t.name], pi) for t, pi in every if t.name in wanted):
        whole = soft.whole(pi)
        for state in np.flatnonzero(task.mdp.start):
            begin = np.zeros_like(task.mdp.start)
            begin[state] = 1.0
            yield task, int(state), occupancy(replace(task.mdp, start=begin), whole)


def make_demonstrations(
    world: World,
    config: ExpertConfig = DEFAULT,
    provenance: Mapping[str, JSON] | None = None,
) -> Demonstrations:
    """Sampled paths of each task: start by start, `paths` to train on and `heldout` apart.

    The provenance names world (without its walls), experts and versions; `provenance` adds to it.
    """
    policies = zip(expert_policies(world, config), careless_policies(world, config), strict=True)
    tasks = []
    for k, (task, makers) in enumerate(zip(finite_tasks(world), policies, strict=True)):
        train = tuple(_sample(task, makers, config, "train", k))
        tasks.append(
            TaskDemos(task.name, train, tuple(_sample(task, makers, config, "heldout", k)))
        )
    origin = {**_provenance(world, config), **(provenance or {})}
    return Demonstrations(tuple(tasks), world.features, origin)


def _sample(
    task: FiniteTask,
    makers: tuple[Policy, Policy | None],
    config: ExpertConfig,
    split: Split,
    k: int,
) -> Iterator[Trajectory]:
    """The k-th task's paths of one split, from every state that an episode can start in."""
    careful, careless = makers
    for i, start in enumerate(np.flatnonzero(task.mdp.start)):
        bad = contaminated_paths(config, split, k, i)
        for n in range(_count(config, split)):
            rng = _stream(config.seed, STREAM[split], k, i, n)
            pi = careless if n in bad and careless is not None else careful
            yield rollout(task, pi, int(start), rng, config.noise)


def contaminated_paths(config: ExpertConfig, split: Split, task: int, start: int) -> set[int]:
    """Which of the paths from a task's start-th start have a maker who ignored the constraint."""
    total = _count(config, split)
    order = _stream(config.seed, CHOICE[split], task, start).permutation(total)
    return {int(n) for n in order[: round(config.contaminated * total)]}


def _count(config: ExpertConfig, split: Split) -> int:
    return config.paths if split == "train" else config.heldout


def _stream(seed: int, *name: int) -> np.random.Generator:
    """The random stream of a name. A spawn key, because entropy (1,) and (1, 0) are the same."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=name))


def world_provenance(world: World) -> dict[str, JSON]:
    """The world without what it forbids."""
    if not isinstance(world, GridWorld):
        return {"kind": "tables", "name": world.name}
    return {
        "kind": "grid",
        "shape": list(world.shape),
        "starts": [list(cell) for cell in world.starts],
        "goals": [list(cell) for cell in world.goals],
        "horizon": world.horizon,
        "slip": world.slip,
        "reward": world.reward,
    }


def _provenance(world: World, config: ExpertConfig) -> dict[str, JSON]:
    python = ".".join(map(str, sys.version_info[:3]))
    return {
        "world": world_provenance(world),
        "experts": asdict(config),
        "versions": {
            "python": python,
            **{name: version(name) for name in ("ringfence", "numpy", "minari")},
        },
    }
