"""Demonstrations against a finite world's tasks: can the world have produced them? No truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ringfence.objects import Array, Demonstrations, Finding, Trajectory
from ringfence.worlds.finite import FiniteMDP, FiniteTask

#: Rewards and features that differ by less are the same: they went through a file or a sum.
TOLERANCE = 1e-9


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
    return [*findings, *_coverage(demos, tasks)]


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
