"""What worlds with real-valued observations and actions have in common: Ants, Gymnasium's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ringfence.errors import InvalidInput
from ringfence.objects import (
    Array,
    Demonstrations,
    Feature,
    Finding,
    Solution,
    TaskDemos,
    Trajectory,
)
from ringfence.worlds.sim.rollouts import ContinuousTask
from ringfence.worlds.world import Cells, Tables, Truth, Unknown, View

#: Where an iteration of the game differs from a single solve: it begins at a cloned policy, so it
#: needs fewer steps; and its limit is what the experts use, so the learner shall use it, too.
ITERATION: dict[str, Any] = {
    "env_steps": 200_000,
    "evaluation_episodes": 16,
    "test_episodes": 0,
    "margin": 0.0,
    "checkpoint_every": 20,
}

#: A network's fit in the game of several tasks. Of rates 3e-4 (constant), 1e-3 and 2e-3 (falling)
#: the one that had to be lowered least for the demonstrators (a point among obstacles).
PLACES: dict[str, Any] = {"places": True, "learning_rate": 1e-3, "final_rate": 0.03}

MOST_AXES = 3  # of a table over cells


@dataclass(frozen=True)
class TaskConfig:
    """A task of the world: its own arguments for the environment's maker, its own reward.

    name: in reports and demonstrations; kwargs: for the maker, over the world's; reward:
    "module:function" of (observations, actions, next observations) -> [N] (empty: the
    environment's own); wrapper: "module:function" of an environment, around which it puts a
    gymnasium.Wrapper.
    """

    name: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    reward: str = ""
    wrapper: str = ""


@dataclass(frozen=True, eq=False)
class ContinuousWorld:
    """Tasks for a learning solver.

    solver: its settings in a game where they differ from every world's; make_task: a task from a
    TaskConfig's table; raw_in: of a game ("features" where published numbers are compared with).
    """

    name: str
    tasks: tuple[ContinuousTask, ...]
    packages: tuple[str, ...]
    make_task: Callable[[Mapping[str, Any]], ContinuousTask]
    solver: Mapping[str, Any] = field(default_factory=dict)
    raw_in: str = "range"
    experts: ClassVar[str] = "trained"
    cells: ClassVar[Cells | None] = None
    truth: ClassVar[Truth] = Unknown()

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.tasks[0].features

    def check(self, demos: Demonstrations) -> list[Finding]:
        """Shapes and numbers are the tasks', and lengths those of whole episodes."""
        tasks = {task.name: task for task in self.tasks}
        single = len(self.tasks) == 1 == len(demos.tasks)
        findings = []
        for d in demos.tasks:
            task = self.tasks[0] if single else tasks.get(d.task)
            if task is None:
                known = ", ".join(tasks)
                message = f"this world has no such task; there are: {known}"
                findings.append(Finding("error", f"task {d.task!r}", message))
                continue
            findings.append(length_finding(task, d))
        return findings

    def new_task(self, spec: Mapping[str, Any]) -> ContinuousTask:
        return self.make_task(spec)

    def defaults(self, given: Tables) -> Tables:
        """The single-task game, unless several tasks are given, with PPO from a clone; over classes
        that assume no form of the constraint."""
        single = len(self.tasks) == 1
        # A budget is stated in the units of a cost, so in those of the features.
        stated = bool(given.get("player", {}).get("expert_budget"))
        usual = {
            "constraint": "table" if len(self.features) <= MOST_AXES else "mlp",
            "method": "icl" if single else "mt-icl",
        }
        chosen = {**usual, **given.get("game", {})}
        player: dict[str, Any] = {}
        if chosen["method"] == "mt-icl":
            if str(chosen["constraint"]).strip().startswith("table"):
                player = {"kind": "patches"}
            elif chosen["constraint"] == "mlp":
                player = {"kind": "regression", "network": PLACES}
        return {
            "player": player,
            "game": {
                **usual,
                "raw_in": "features" if stated else self.raw_in,
                "iterations": 10,
                "extra": 0 if single else 5,  # one task's trained demonstrators are rarely the best
                "epsilon": -1.0,
                "buffer": 20.0,
                "anneal": 10.0,
            },
            "opening": {"kind": "clone"},
            "solver": {"kind": "ppo", **ITERATION, **self.solver},
        }

    def views(self) -> list[View]:
        """From above where there are x and y; and each feature along a line."""
        names = [f.name for f in self.features]
        plane = [names.index(n) for n in ("x", "y") if n in names]
        planes: list[View] = [{"kind": "plane", "columns": plane}] if len(plane) == 2 else []
        return [*planes, *({"kind": "line", "columns": [k]} for k in range(len(names)))]

    def columns(self, tasks: Sequence[str], solutions: Sequence[Solution]) -> dict[str, Any]:
        return {}


def is_continuous(task: Any) -> bool:
    """Is it a task whose episodes are simulated, many at once, for a learning solver?"""
    return hasattr(task, "collector")


def length_finding(task: ContinuousTask, d: TaskDemos) -> Finding:
    """Episodes that neither ended by themselves nor reached the horizon."""
    labelled = d.labelled
    cut = [n for n, (_, t) in enumerate(labelled) if len(t) < task.horizon and not t.terminated]
    steps, where = [len(t) for _, t in labelled], f"lengths of {d.task!r}"
    if not cut:
        ended = sum(t.terminated for _, t in labelled)
        word = f"{min(steps)} to {max(steps)} steps, {ended} episodes ended by themselves"
        return Finding("ok", where, word)
    return Finding(
        "warning",
        where,
        f"{len(cut)} of {len(steps)} episodes stop before {task.horizon} steps without having "
        f"ended (first: {labelled[cut[0]][0]}); an episode's cost is a sum over its steps, so cut "
        "logs look safer than they are: set [world] steps, or drop them",
    )


def check_shapes(task: ContinuousTask, label: str, episode: Any) -> None:
    """Of a trajectory or log: widths are the task's, numbers finite, actions in the box."""
    T = len(episode)
    for name, want in (
        ("observations", (T + 1, task.observation_dim)),
        ("actions", (T, len(task.action_low))),
        ("rewards", (T,)),
        ("features", (T, len(task.features))),
    ):
        values = getattr(episode, name)
        if values is None:
            continue
        if np.asarray(values).dtype.kind not in "fiub" or np.shape(values) != want:
            raise InvalidInput(
                f"{label}: {name} have shape {np.shape(values)} of {np.asarray(values).dtype}, "
                f"{task.name!r} needs numbers of shape {want}: not demonstrations of this world"
            )
        if not np.isfinite(values).all():
            at = tuple(map(int, np.argwhere(~np.isfinite(values))[0]))
            raise InvalidInput(
                f"{label}: {name} are not finite at index {at}; repair or drop the episode"
            )
    if task.horizon < T:
        raise InvalidInput(
            f"{label}: {T} steps, but episodes of {task.name!r} have at most {task.horizon}; "
            "set [world] steps, or split the log into episodes"
        )
    require_in_box(task, label, np.asarray(episode.actions))


def require_in_box(task: ContinuousTask, label: str, actions: Array) -> None:
    slack = 1e-5 * (task.action_high - task.action_low)
    outside = (actions < task.action_low - slack) | (actions > task.action_high + slack)
    if outside.any():
        t, a = map(int, np.argwhere(outside)[0])
        raise InvalidInput(
            f"{label}: action {a} is {actions[t, a]:g} at step {t}, outside its box "
            f"{task.action_low[a]:g} to {task.action_high[a]:g}; record the action that was applied"
        )


def check_units(task: ContinuousTask, features: Sequence[Feature]) -> None:
    """Features that have a name in common with the task's have its unit."""
    units = {f.name: f.unit for f in task.features}
    for f in features:
        if f.unit != units.get(f.name, f.unit):
            raise InvalidInput(
                f"the demonstrations have {f.name!r} in {f.unit}, task {task.name!r} in "
                f"{units[f.name]}; convert them, or correct the unit"
            )


def demonstrated_states(task: ContinuousTask, train: Sequence[Trajectory]) -> Array:
    """States that the demonstrations reached, [n, s], to begin episodes from."""
    states_of = getattr(task, "states_of", None)
    if states_of is None:
        raise InvalidInput(
            f"[solver] start_share: {task.name}'s episodes can't begin at demonstrated states; "
            "only MuJoCo's Ant can"
        )
    return np.concatenate([states_of(t) for t in train])
