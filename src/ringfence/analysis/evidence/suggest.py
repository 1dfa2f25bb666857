"""Which demonstration to ask for next: the start and goal that would settle most unknown cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from ringfence.analysis.evidence.moves import Index, Mask
from ringfence.analysis.evidence.relate import flat
from ringfence.analysis.evidence.result import Evidence
from ringfence.errors import InvalidInput
from ringfence.objects import Array
from ringfence.solvers import soft
from ringfence.worlds.finite import NEGLIGIBLE_VISITS, FiniteMDP, FiniteTask

#: Paths are drawn at random among equals, nearly: the temperature relative to the task's rewards.
TEMPERATURE = 0.02
#: A cell is listed for a suggestion if the demonstration would visit it with this probability.
LIKELY = 0.5


@dataclass(frozen=True)
class Suggestion:
    """A demonstration of `task` from `start`: score is how many unknown cells its paths are
    expected to pass if they are free; `cells` are those they would pass more likely than not."""

    task: str
    start: int
    score: float
    cells: tuple[int, ...]


def next_demonstrations(
    evidence: Evidence,
    candidates: Sequence[FiniteTask],
    forbidden: Mask | None = None,
    paths: int = 10,
) -> list[Suggestion]:
    """Demonstrations worth asking for, the best first, without those that would settle nothing.

    The candidates are tasks, one per goal, from any allowed cell. Be optimistic: suppose that
    every unknown cell is free, and let `paths` optimal paths be drawn at random among equals. If
    they pass an unknown cell, it is allowed. If they make a detour instead, something they would
    have passed is forbidden, and the cells of that conflict are no longer unknown either. Not
    passed are proven cells and, among the implicated ones, those that `forbidden` has (a learned
    constraint; without one, all).
    """
    if paths < 1:
        raise InvalidInput(f"paths must be at least 1, got {paths}")
    blocked = evidence.implicated if forbidden is None else flat(evidence, forbidden)
    free = ~(evidence.proven | (evidence.implicated & blocked))
    found = []
    starts = np.flatnonzero(evidence.allowed)
    for task in candidates:
        if task.mdp.num_states != len(free):
            raise InvalidInput(f"task {task.name!r}: the evidence is about {len(free)} other cells")
        seen = 1 - (1 - visiting(task.mdp, free, starts)) ** paths
        seen[:, ~evidence.unknown] = 0.0
        for start, chance in zip(starts, seen, strict=True):
            if chance.sum() > NEGLIGIBLE_VISITS:
                cells = tuple(int(x) for x in np.flatnonzero(chance > LIKELY))
                found.append(Suggestion(task.name, int(start), float(chance.sum()), cells))
    return sorted(found, key=lambda s: -s.score)


def visiting(mdp: FiniteMDP, free: Mask, starts: Index) -> Array:
    """How likely an optimal path within the free cells passes each cell, p[start, cell].

    Random among equals. It is the expected number of times that the path comes into the cell, at
    most 1: optimal paths don't come back. 0 for starts from which there is no way to a goal.
    """
    if mdp.horizon is None:
        raise InvalidInput("suggestions need tasks with a finite horizon")
    S, A = mdp.reward.shape
    inside = np.repeat(free[:, None], A, axis=1)
    spread = float(mdp.reward.max() - mdp.reward.min())
    pi, _ = soft.plan(mdp, mdp.reward, TEMPERATURE * (spread or 1.0), inside)
    at = np.eye(S)[:, starts]
    entered = at.copy()
    for t in range(mdp.horizon - 1):
        choice = csr_array(
            (pi[t].ravel(), np.arange(S * A), np.arange(0, S * A + 1, A)), (S, S * A)
        )
        onward = (choice @ mdp.transition).T  # [s', s]
        entered += onward @ at - onward.diagonal()[:, None] * at
        at = onward @ at
    goal = (mdp.reward == mdp.reward.max()).astype(np.float64)
    reached = soft.plan(mdp, goal, 0.0, inside)[1][0, starts] > 0
    return np.where(reached[:, None], np.minimum(entered.T, 1.0), 0.0)
