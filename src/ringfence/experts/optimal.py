"""Experts of finite worlds whose truth is known: they make demonstrations, and exact behaviours.

This is the only place on the way to the game that reads a world's truth, and it does so in the
demonstrators' stead. What it hands on, paths and occupancies, holds no truth. Here too are the
checks of demonstrations against a finite world's tasks, which need no truth either.

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

from ringfence.analysis.evidence import Group, exact_group
from ringfence.demos import checks as demo_checks
from ringfence.demos.checks import Finding
from ringfence.demos.dataset import JSON, Demonstrations, TaskDemos
from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.objects import Array, Behaviour, Trajectory
from ringfence.solvers import soft
from ringfence.worlds.finite import FiniteMDP, FiniteTask, behaviour, occupancy, rollout
from ringfence.worlds.grid import GridWorld

Kind = Literal["soft", "deterministic"]
Split = Literal["train", "heldout"]

#: The first number of a stream's name. The choice of contaminated paths has its own streams.
STREAM = {"train": 0, "heldout": 1}
CHOICE = {"train": 2, "heldout": 3}

#: Rewards and features that differ by less are the same: they went through a file or a sum.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class ExpertConfig:
    """How demonstrators behave, and how many paths they leave from each start of each task.

    kind: "soft" is random among equals (entropy-regularised at `temperature`, in units of
    reward), "deterministic" takes the first of them. delta: the true cost an episode may have; a
    world with slip can't be walked at 0. noise: the chance that a step's action is uniformly
    random. contaminated: the share of paths, rounded to whole paths per start, whose maker
    ignored the constraint. The first paths of a larger set are a smaller set's, unless it is
    contaminated: which paths are is drawn from among them all.
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


def expert_policies(world: GridWorld, config: ExpertConfig = DEFAULT) -> list[Array]:
    """pi[t, s, a] of each task's expert under the truth, without noise."""
    policies = []
    for task in world.tasks:
        cost = np.repeat(world.truth.walls.reshape(-1, 1), task.mdp.num_actions, axis=1)
        try:
            pi, _ = soft.solve(task.mdp, cost.astype(float), config.delta, _temperature(config))
        except InfeasibleLimit as error:
            raise InfeasibleLimit(
                f"experts of task {task.name!r}: {error}; raise the experts' delta, or lower slip"
            ) from error
        policies.append(pi)
    return policies


def careless_policies(world: GridWorld, config: ExpertConfig = DEFAULT) -> list[Array]:
    """pi[t, s, a] of each task's contaminated makers: reward only."""
    temperature = _temperature(config)
    return [soft.plan(task.mdp, task.mdp.reward, temperature)[0] for task in world.tasks]


def _temperature(config: ExpertConfig) -> float:
    return config.temperature if config.kind == "soft" else 0.0


def expert_behaviours(world: GridWorld, config: ExpertConfig = DEFAULT) -> list[Behaviour]:
    """What the demonstrators do, exactly: infinitely many paths of each task."""
    behaviours = []
    policies = (expert_policies(world, config), careless_policies(world, config))
    for task, careful, careless in zip(world.tasks, *policies, strict=True):
        rho, rho_careless = (
            occupancy(task.mdp, (1 - config.noise) * pi + config.noise / task.mdp.num_actions)
            for pi in (careful, careless)
        )
        share = config.contaminated
        behaviours.append(behaviour(task, (1 - share) * rho + share * rho_careless))
    return behaviours


def exact_groups(world: GridWorld, tasks: Sequence[FiniteTask]) -> tuple[Group, ...]:
    """The same experts by task and start, as evidence wants them."""
    by_name = dict(zip((task.name for task in world.tasks), expert_policies(world), strict=True))
    groups = []
    for task in tasks:
        for state in np.flatnonzero(task.mdp.start):
            begin = np.zeros_like(task.mdp.start)
            begin[state] = 1.0
            rho = occupancy(replace(task.mdp, start=begin), by_name[task.name])
            groups.append(exact_group(task, int(state), rho))
    return tuple(groups)


def make_demonstrations(
    world: GridWorld,
    config: ExpertConfig = DEFAULT,
    provenance: Mapping[str, JSON] | None = None,
) -> Demonstrations:
    """Sampled paths of each task: start by start, `paths` to train on and `heldout` apart.

    The provenance names world (without its walls), experts and versions; `provenance` adds to it.
    """
    policies = zip(expert_policies(world, config), careless_policies(world, config), strict=True)
    tasks = []
    for k, (task, makers) in enumerate(zip(world.tasks, policies, strict=True)):
        train = tuple(_sample(task, makers, config, "train", k))
        tasks.append(
            TaskDemos(task.name, train, tuple(_sample(task, makers, config, "heldout", k)))
        )
    origin = {**_provenance(world, config), **(provenance or {})}
    return Demonstrations(tuple(tasks), world.tasks[0].features, origin)


def _sample(
    task: FiniteTask, makers: tuple[Array, Array], config: ExpertConfig, split: Split, k: int
) -> Iterator[Trajectory]:
    """The k-th task's paths of one split, from every state that an episode can start in."""
    careful, careless = makers
    for i, start in enumerate(np.flatnonzero(task.mdp.start)):
        bad = contaminated_paths(config, split, k, i)
        for n in range(_count(config, split)):
            rng = _stream(config.seed, STREAM[split], k, i, n)
            pi = careless if n in bad else careful
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


def _provenance(world: GridWorld, config: ExpertConfig) -> dict[str, JSON]:
    python = ".".join(map(str, sys.version_info[:3]))
    return {
        "world": {
            "kind": "grid",
            "shape": list(world.shape),
            "starts": [list(cell) for cell in world.starts],
            "goals": [list(cell) for cell in world.goals],
            "horizon": world.horizon,
            "slip": world.slip,
            "reward": world.reward,
        },
        "experts": asdict(config),
        "versions": {
            "python": python,
            **{name: version(name) for name in ("ringfence", "numpy", "minari")},
        },
    }


# ----------------------------------------------------------------------------------- checks


def check(demos: Demonstrations, tasks: Sequence[FiniteTask]) -> list[Finding]:
    """Everything that speaks against demonstrations of these tasks. Needs no truth.

    An error means that the world can't have produced them as they are.
    """
    known = {task.name: task for task in tasks}
    findings = []
    for given in demos.tasks:
        label = f"task {given.task!r}"
        if given.task not in known:
            names = ", ".join(known)
            message = f"the world has no such task; rename or drop it (there are: {names})"
            findings.append(Finding("error", label, message))
        elif demos.features != known[given.task].features:
            pair = (demos, known[given.task])
            theirs, ours = ([(f.name, f.unit) for f in x.features] for x in pair)
            message = f"its features are {theirs}, the world's {ours}; make them the same"
            findings.append(Finding("error", label, message))
        else:
            for where, trajectory in given.labelled:
                findings += _against_task(trajectory, known[given.task], where)
    return [*findings, *demo_checks.check(demos), *_coverage(demos, tasks)]


def _against_task(t: Trajectory, task: FiniteTask, where: str) -> Iterator[Finding]:
    """The ways in which one trajectory contradicts the task."""
    mdp = task.mdp
    indices = _indices(t, mdp)
    if isinstance(indices, str):
        yield Finding("error", where, indices)
        return
    states, actions = indices
    if mdp.start[states[0]] == 0:
        starts = ", ".join(map(str, np.flatnonzero(mdp.start)))
        message = f"it starts in state {states[0]}, where no episode of the task does ({starts})"
        yield Finding("error", where, f"{message}; drop it or add the start to the world")
    if mdp.horizon is not None and len(t) > mdp.horizon:
        message = f"it has {len(t)} steps, the task's horizon is {mdp.horizon}"
        yield Finding("error", where, f"{message}; cut it there or raise the horizon")
    elif mdp.horizon is not None and len(t) < mdp.horizon and not t.terminated:
        message = f"it stops after {len(t)} of {mdp.horizon} steps without having ended"
        yield Finding("warning", where, f"{message}: its return and cost are not an episode's")
    yield from _impossible(states, actions, t.terminated, mdp, where)
    visited = (states[:-1], actions)
    yield from _differs(t.rewards[:, None], mdp.reward[visited][:, None], "reward", where)
    yield from _differs(t.features, task.phi[visited], "features", where)


def _indices(t: Trajectory, mdp: FiniteMDP) -> tuple[NDArray[np.intp], NDArray[np.intp]] | str:
    """States [T+1] and actions [T] as indices, or what is wrong with them."""
    found = []
    for name, values, count in (
        ("observation", t.observations, mdp.num_states),
        ("action", t.actions, mdp.num_actions),
    ):
        if values.shape[1] != 1:
            return f"an {name} has {values.shape[1]} numbers; a finite world's is one index"
        column = values[:, 0]
        wrong = np.flatnonzero((column != np.floor(column)) | (column < 0) | (column >= count))
        if len(wrong):
            at = int(wrong[0])
            return f"step {at}: {name} {column[at]:g} is no index below {count}; repair or drop it"
        found.append(column.astype(np.intp))
    return found[0], found[1]


def _impossible(
    states: NDArray[np.intp],
    actions: NDArray[np.intp],
    terminated: bool,
    mdp: FiniteMDP,
    where: str,
) -> Iterator[Finding]:
    """Steps of probability 0. An episode that ended by itself has no state after its last."""
    P, steps = mdp.transition, len(actions) - terminated
    wrong = []
    for step in range(steps):
        pair = states[step] * mdp.num_actions + actions[step]
        row = slice(P.indptr[pair], P.indptr[pair + 1])
        if not P.data[row][P.indices[row] == states[step + 1]].sum() > 0:
            wrong.append(step)
    if wrong:
        at = wrong[0]
        yield Finding(
            "error",
            where,
            f"step {at}: action {actions[at]} can't lead from state {states[at]} to state "
            f"{states[at + 1]}; {len(wrong)} of {steps} steps are impossible in this world: were "
            "they recorded in another one?",
        )


def _differs(given: Array, computed: Array, name: str, where: str) -> Iterator[Finding]:
    """Rows [T, n] that are not what the task computes for its states and actions."""
    wrong = np.flatnonzero((np.abs(given - computed) > TOLERANCE * (1 + np.abs(computed))).any(1))
    if len(wrong):
        at = int(wrong[0])
        theirs, ours = (", ".join(f"{x:g}" for x in rows[at]) for rows in (given, computed))
        yield Finding(
            "error",
            where,
            f"step {at}: the recorded {name} ({theirs}) differs from the world's ({ours}), in "
            f"{len(wrong)} of {len(given)} steps; recompute it from states and actions",
        )


def _coverage(demos: Demonstrations, tasks: Sequence[FiniteTask]) -> Iterator[Finding]:
    """How many of the world's cells the training trajectories visit."""
    cells = {tuple(point) for task in tasks for point in task.points[0]}
    seen = {tuple(row) for task in demos.tasks for t in task.train for row in t.features}
    count, total = len(cells & seen), len(cells)
    if total:
        yield Finding(
            "note",
            "all tasks",
            f"the training trajectories visit {count} of {total} cells ({count / total:.0%}); "
            "nothing was shown of the others",
        )
