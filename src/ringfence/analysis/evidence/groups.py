"""Demonstrations of one task from one start: what evidence compares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringfence.analysis.evidence.moves import Index, is_certain
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Trajectory
from ringfence.worlds.finite import NEGLIGIBLE_VISITS, FiniteMDP, FiniteTask

#: Rewards that differ by less were recorded in the same task.
SAME_REWARD = 1e-6


@dataclass(frozen=True, eq=False)
class Group:
    """The experts of one task from one start.

    visitors [S]: how many of the paths were in each cell, s_0..s_{T-1} (inf where it is known
    exactly that some are); returns [n]: what each path earned; rounding: by how much the returns
    may be too small because of how they were computed.
    """

    task: FiniteTask
    start: int
    visitors: Array
    returns: Array
    rounding: float = 0.0

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def exact(self) -> bool:
        """Whether the experts are known exactly, not from sampled paths."""
        return bool(np.isinf(self.visitors).any())

    @property
    def mean(self) -> float:
        """J_E: the mean return. It is the policy that is taken to be optimal, and one lucky path
        among slow ones does not make it so. Optimal experts' paths all earn the same, unless
        there is chance in the world, and then only the mean says anything."""
        return float(self.returns.mean())

    @property
    def standard_error(self) -> float:
        n = len(self.returns)
        return float(self.returns.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0

    @property
    def certain(self) -> bool:
        """Whether the task has no chance in it."""
        return is_certain(self.task.mdp)


def groups_of(task: FiniteTask, trajectories: Sequence[Trajectory]) -> list[Group]:
    """The trajectories of one task, by the state they start in.

    observations[:, 0] are state indices. The last observation, after the horizon, is nowhere.
    """
    return group_paths(
        task,
        [
            _read(task, t, f"task {task.name!r}, trajectory {number}")
            for number, t in enumerate(trajectories)
        ],
    )


def group_paths(task: FiniteTask, paths: Sequence[tuple[Index, float]]) -> list[Group]:
    """Paths of one task, each the states [n] that it visits and its return, by where they start."""
    by_start: dict[int, list[tuple[Index, float]]] = {}
    for states, earned in paths:
        by_start.setdefault(int(states[0]), []).append((states, earned))
    groups = []
    for start in sorted(by_start):
        visitors = np.zeros(task.mdp.num_states)
        for states, _ in by_start[start]:
            visitors[np.unique(states)] += 1
        returns = np.array([earned for _, earned in by_start[start]])
        groups.append(Group(task, start, visitors, returns))
    return groups


def exact_group(task: FiniteTask, start: int, rho: Array) -> Group:
    """The experts whose occupancy measure from `start` is rho[t, s, a]: endlessly many paths.

    A soft-optimal policy has every path with some probability. Cells visited less than once in a
    million episodes are not counted, and the return may be short by as much.
    """
    mdp = task.mdp
    _check_state(start, mdp, f"task {task.name!r}, exact experts: start")
    if rho.shape != (_horizon(task), *mdp.reward.shape):
        raise InvalidInput(f"task {task.name!r}: rho has shape {rho.shape}, not [T, S, A]")
    visited = rho.sum(axis=(0, 2)) > NEGLIGIBLE_VISITS
    earned = float((rho * mdp.reward).sum())
    spread = float(mdp.reward.max() - mdp.reward.min())
    rounding = NEGLIGIBLE_VISITS * len(rho) * spread
    return Group(task, int(start), np.where(visited, np.inf, 0.0), np.array([earned]), rounding)


def _horizon(task: FiniteTask) -> int:
    if task.horizon is None:
        raise InvalidInput(f"task {task.name!r} has no horizon: evidence needs a finite one")
    return task.horizon


def _read(task: FiniteTask, trajectory: Trajectory, where: str) -> tuple[Index, float]:
    """The states s_0..s_{T-1} and the return of a trajectory that the task can have produced."""
    mdp, horizon, steps = task.mdp, _horizon(task), len(trajectory)
    if not steps or steps > horizon or (steps < horizon and not trajectory.terminated):
        raise InvalidInput(
            f"{where}: it has {steps} steps, the task's episodes {horizon}; its return can't be "
            "compared, give whole episodes"
        )
    states = _indices(trajectory.observations, mdp.num_states, steps + 1, f"{where}: state")
    actions = _indices(trajectory.actions, mdp.num_actions, steps, f"{where}: action")
    pairs = states[:-1] * mdp.num_actions + actions
    # An episode that ended by itself has no state after its last step.
    made = steps - trajectory.terminated
    chance = mdp.transition[pairs[:made]].toarray()[np.arange(made), states[1 : made + 1]]
    impossible = np.flatnonzero(chance <= 0)
    if len(impossible):
        t = int(impossible[0])
        raise InvalidInput(
            f"{where}, step {t}: action {actions[t]} can't lead from state {states[t]} to "
            f"{states[t + 1]}; were they recorded in this world?"
        )
    rewards = mdp.reward[states[:-1], actions]
    if np.abs(rewards - trajectory.rewards).max() > SAME_REWARD:
        t = int(np.abs(rewards - trajectory.rewards).argmax())
        raise InvalidInput(
            f"{where}, step {t}: it was paid {trajectory.rewards[t]:g}, the task pays "
            f"{rewards[t]:g}; is it another task's?"
        )
    return states[:-1], float(rewards.sum())


def _indices(values: Array, count: int, length: int, where: str) -> Index:
    """A column of `length` numbers below `count` as indices."""
    if values.ndim != 2 or values.shape[0] != length or values.shape[1] < 1:
        raise InvalidInput(f"{where}: expected [{length}, 1] indices, got shape {values.shape}")
    column = values[:, 0]
    inside = (column >= 0) & (column < count) & (column == np.floor(column))
    if not inside.all():
        t = int(np.flatnonzero(~inside)[0])
        raise InvalidInput(
            f"{where} {column[t]:g} at step {t} is none of 0..{count - 1}: it leaves the map"
        )
    return column.astype(np.intp)


def _check_state(state: int, mdp: FiniteMDP, where: str) -> None:
    if not 0 <= state < mdp.num_states:
        raise InvalidInput(f"{where} {state} is none of the states 0..{mdp.num_states - 1}")
