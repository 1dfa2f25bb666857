"""Whole games that take some milliseconds, to be played hundreds of times: do intervals cover?

road     finite, one task: speeds in steps of 0.1 m/s, paid for speed; exact experts and learners
hill     finite, three tasks that pay for low places; the limit is a least height
cruise   continuous, one task: a speed that sways around the one that is set; the best setting is
         found from the expected cost
line     continuous, one task: a walk over a plane, paid for keeping low; the limit is a slope

The demonstrators of a data set use a share of their budget that is drawn for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from ringfence.analysis.played import Played
from ringfence.analysis.saturation import USED_UP
from ringfence.constraints.family import Family, make_family
from ringfence.constraints.written import parse_constraint
from ringfence.game import Rules, play
from ringfence.objects import (
    Array,
    Constraint,
    Feature,
    NotHere,
    Problem,
    Solution,
    Task,
    TaskDemos,
    Trajectory,
    behaviour_of,
)
from ringfence.players.payoff import PayoffPlayer
from ringfence.selection import select
from ringfence.solvers.soft import SoftSolver
from ringfence.worlds.finite import FiniteTask, rollout, whole_policy
from ringfence.worlds.tables import table_world

EPISODES, HELDOUT = 20, 5
#: Of their budget, that the demonstrators of a data set use.
SHARES = tuple(np.linspace(USED_UP, 1.0, 6))
ITERATIONS = 8


@dataclass(frozen=True, eq=False)
class SmallWorld:
    """text: the class; truth: the constraint, with its `true` parameter; budget: of the
    demonstrators, per episode; solve: a problem; episodes: of a solution on a task."""

    name: str
    text: str
    truth: str
    true: float
    budget: float
    tasks: tuple[Task, ...]
    solve: Callable[[Problem], Solution]
    episodes: Callable[[Task, Solution, int, np.random.Generator], list[Trajectory]]

    @cached_property
    def family(self) -> Family:
        return make_family(self.text, (), self.tasks[0].features, None, None)

    @property
    def player(self) -> PayoffPlayer:
        assert self.family.form is not None
        return PayoffPlayer(self.family.form, float(self.tasks[0].horizon or 0), self.budget)

    @cache  # noqa: B019 (worlds are few, and live as long as the process)
    def expert(self, k: int, share: float) -> Solution:
        """The best of a task under the truth within a share of the budget."""
        c, task = parse_constraint(self.truth, self.tasks[0].features), self.tasks[k]
        return self.solve(Problem(task, c, share * self.budget, None, (0, 0, k)))

    def demonstrations(self, rng: np.random.Generator) -> list[TaskDemos]:
        """Episodes of experts who use a share of their budget."""
        share = float(rng.choice(SHARES))
        found = []
        for k, task in enumerate(self.tasks):
            expert = self.expert(k, share)
            shown = self.episodes(task, expert, EPISODES + HELDOUT, rng)
            found.append(TaskDemos(task.name, tuple(shown[:EPISODES]), tuple(shown[EPISODES:])))
        return found


def played(world: SmallWorld, seed: int, resamples: int) -> Played:
    """A data set and its game."""
    demos = world.demonstrations(np.random.default_rng(seed))
    experts, heldout = ([behaviour_of(getattr(d, s)) for d in demos] for s in ("train", "heldout"))
    player, rules = world.player, Rules(ITERATIONS, multi_task=len(world.tasks) > 1)
    records = list(
        play(world.tasks, experts, lambda ps: [world.solve(p) for p in ps], player, rules, seed)
    )
    return Played(
        world.family, player, False, demos, experts, heldout, records, [],
        select(records, experts, heldout), NotHere("no cells"), None, resamples, seed,
    )  # fmt: skip


# Finite ------------------------------------------------------------------------------------------


def of_tables(
    name: str, text: str, truth: str, true: float, budget: float, tasks: Sequence[FiniteTask]
) -> SmallWorld:
    def episodes(
        task: Any, solution: Solution, count: int, rng: np.random.Generator
    ) -> list[Trajectory]:
        pi = whole_policy(task.mdp, solution.policy)
        (start,) = np.flatnonzero(task.mdp.start)
        return [rollout(task, pi, int(start), rng) for _ in range(count)]

    return SmallWorld(name, text, truth, true, budget, tuple(tasks), SoftSolver(), episodes)


def road() -> SmallWorld:
    """Slower, the same or faster by a step, which succeeds in 8 of 10 cases."""
    S, slip = 13, 0.2
    P = np.zeros((S, 3, S))
    for s in range(S):
        for a in range(3):
            for move, chance in ((a - 1, 1 - slip), (0, slip / 2), (int(a != 0) or -1, slip / 2)):
                P[s, a, min(max(s + move, 0), S - 1)] += chance
    speed = 0.1 * np.arange(S)
    made = table_world(
        P,
        {"road": speed},
        3,
        horizon=30,
        features=(Feature("speed", "m/s"),),
        values=speed[:, None],
    )
    return of_tables("road", "speed <= ?", "speed <= 0.62", 0.62, 1.0, made.tasks)


def hill() -> SmallWorld:
    """A ring of places; a move to the side succeeds in 9 of 10 cases, staying always."""
    S, slip = 24, 0.1
    P, place = np.zeros((S, 3, S)), np.arange(S)
    P[place, 1, place] = 1.0
    for a, move in ((0, -1), (2, 1)):
        P[place, a, (place + move) % S] = 1 - slip
        P[place, a, place] += slip
    height = 2 + np.cos(2 * np.pi * place / S) + 0.3 * np.cos(6 * np.pi * place / S + 1)
    rewards = {
        f"valley {k}": np.exp(-0.5 * ((place - 12 - shift) / 3) ** 2)
        for k, shift in enumerate((-3, 0, 3))
    }
    made = table_world(
        P, rewards, 0, horizon=24, features=(Feature("height", "m"),), values=height[:, None]
    )
    return of_tables("hill", "height >= ?", "height >= 1.35", 1.35, 1.5, made.tasks)


# Continuous --------------------------------------------------------------------------------------


#: (setting, sway [.., T]) -> features [.., T, d] and rewards [.., T]
Steps = Callable[[float, Array], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class SettingTask:
    """A task in which one number is set for the whole episode, the larger the better; around it the
    steps sway, normally, each with a memory of the last."""

    name: str
    features: tuple[Feature, ...]
    horizon: int
    noise: float
    memory: float
    steps: Steps

    def sway(self, count: int, rng: np.random.Generator) -> Array:
        """[count, T], stationary."""
        z = rng.normal(size=(count, self.horizon))
        for t in range(1, self.horizon):
            z[:, t] = self.memory * z[:, t - 1] + np.sqrt(1 - self.memory**2) * z[:, t]
        return np.asarray(self.noise * z)

    def episodes(self, setting: float, count: int, rng: np.random.Generator) -> list[Trajectory]:
        nothing = np.zeros((self.horizon + 1, 1))
        pairs = zip(*self.steps(setting, self.sway(count, rng)), strict=True)
        return [Trajectory(nothing, nothing[1:], reward, phi, False) for phi, reward in pairs]

    @cached_property
    def usual(self) -> Array:
        """Sways [n, T], from whose mean an expected cost is found."""
        return self.sway(MANY, np.random.default_rng(0))


#: Episodes of an expected cost, and the largest setting that is tried.
MANY, MOST = 100, 3.0


def best_setting(task: SettingTask, c: Constraint, delta: float) -> float:
    """The largest setting whose expected cost is within the limit, by bisection."""

    def cost(setting: float) -> float:
        phi = task.steps(setting, task.usual)[0]
        return float(c.cost(phi.reshape(-1, phi.shape[-1])).sum() / MANY)

    low, high = -MOST, MOST
    if cost(high) <= delta:
        return high
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(middle) <= delta else (low, middle)
    return low


def of_setting(task: SettingTask, text: str, truth: str, true: float, budget: float) -> SmallWorld:
    def solve(problem: Problem) -> Solution:
        setting = best_setting(task, problem.constraint, problem.delta)
        watched = task.episodes(setting, 10, np.random.default_rng(problem.seed))
        return Solution({"setting": np.array([setting])}, 0.0, behaviour_of(watched), 0)

    def episodes(
        task: Any, solution: Solution, count: int, rng: np.random.Generator
    ) -> list[Trajectory]:
        return task.episodes(float(solution.policy["setting"][0]), count, rng)  # type: ignore[no-any-return]

    return SmallWorld(task.name, text, truth, true, budget, (task,), solve, episodes)


def cruise() -> SmallWorld:
    def steps(setting: float, sway: Array) -> tuple[Array, Array]:
        speed = setting + sway
        return speed[..., None], speed

    task = SettingTask("cruise", (Feature("speed", "m/s"),), 100, 0.1, 0.7, steps)
    return of_setting(task, "speed <= ?", "speed <= 0.75", 0.75, 2.0)


def line() -> SmallWorld:
    def steps(setting: float, sway: Array) -> tuple[Array, Array]:
        x = np.broadcast_to(np.linspace(0.5, 2.5, sway.shape[-1]), sway.shape)
        y = sway - setting * x
        return np.stack([x, y], axis=-1), -y

    plane = (Feature("x", "m"), Feature("y", "m"))
    task = SettingTask("line", plane, 100, 0.15, 0.5, steps)
    return of_setting(task, "? x - y <= 0", "0.5 x - y <= 0", 0.5, 2.0)


WORLDS: dict[str, Callable[[], SmallWorld]] = {
    "road": road,
    "hill": hill,
    "cruise": cruise,
    "line": line,
}
