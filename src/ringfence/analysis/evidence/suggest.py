"""Which demonstration to ask for next: the start and goal that would settle most unknown cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from ringfence.analysis.evidence.moves import Index, Mask, is_goal_task, successors
from ringfence.analysis.evidence.relate import flat
from ringfence.analysis.evidence.result import Evidence
from ringfence.analysis.evidence.ways import moves_away
from ringfence.errors import InvalidInput
from ringfence.objects import Array
from ringfence.solvers import soft
from ringfence.worlds.finite import NEGLIGIBLE_VISITS, FiniteMDP, FiniteTask

#: Paths are drawn at random among equals, nearly: the temperature relative to the task's rewards.
TEMPERATURE = 0.02
#: On a large map starts (and goals), evenly spread, stand for all of them.
MOST_STARTS = 200
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
    constraint; without one, all). On a large map only MOST_STARTS starts are looked at.
    """
    if paths < 1:
        raise InvalidInput(f"paths must be at least 1, got {paths}")
    blocked = evidence.implicated if forbidden is None else flat(evidence, forbidden)
    free = ~(evidence.proven | (evidence.implicated & blocked))
    found = []
    starts = spread(np.flatnonzero(evidence.allowed), MOST_STARTS)
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


def spread(cells: Index, most: int) -> Index:
    """At most so many of the cells, evenly spread over their order."""
    chosen: Index = cells[np.linspace(0, len(cells) - 1, min(len(cells), most)).astype(int)]
    return chosen


def visiting(mdp: FiniteMDP, free: Mask, starts: Index) -> Array:
    """How likely an optimal path within the free cells passes each cell, p[start, cell].

    Random among equals. It is the expected number of times that the path comes into the cell, at
    most 1: optimal paths don't come back. 0 for starts from which there is no way to a goal.
    """
    if mdp.horizon is None:
        raise InvalidInput("suggestions need tasks with a finite horizon")
    if is_goal_task(mdp):
        return on_shortest_ways(mdp, free, starts)
    return on_optimal_ways(mdp, free, starts)


def on_shortest_ways(mdp: FiniteMDP, free: Mask, starts: Index) -> Array:
    """`visiting` where only goals pay: all shortest ways are equally likely.

    With n(s) ways from s to a goal, a way goes on from s to s' with probability n(s') / n(s), and
    into a cell from those one move farther away only.
    """
    assert mdp.horizon is not None
    S, to = mdp.num_states, successors(mdp)
    away = _moves_away(to, free & mdp.reward.any(axis=1), free)
    nearer = np.isfinite(away[:S, None]) & (away[to] == away[:S, None] - 1)
    farthest = int(away.max(where=np.isfinite(away), initial=0))
    layers = [np.flatnonzero(away[:S] == moves) for moves in range(farthest + 1)]
    ways = np.full(S + 1, -np.inf)  # log n: a large map has e^100 of them
    ways[layers[0]] = 0.0
    for layer in layers[1:]:
        onward = np.where(nearer[layer], ways[to[layer]], -np.inf)
        ways[layer] = np.logaddexp.reduce(onward, axis=1)
    source, action = np.nonzero(nearer)
    chance = np.exp(ways[to[source, action]] - ways[source])
    into = csr_array((chance, (to[source, action], source)), (S, S))
    p = np.zeros((S, len(starts)))
    p[starts, np.arange(len(starts))] = away[starts] < mdp.horizon
    for layer in reversed(layers[:-1]):
        p[layer] += into[layer] @ p
    return p.T


def _moves_away(to: Index, goal: Mask, free: Mask) -> Array:
    """The fewest moves from each cell to a goal within the free ones, [S + 1]; inf: no way."""
    S, A = to.shape
    into = csr_array((np.ones(S * A), (to.ravel(), np.repeat(np.arange(S), A))), (S + 1, S))

    def onward(front: Index) -> Index:
        return np.asarray(into[front].indices, dtype=np.intp)

    until = np.append(np.where(free, np.inf, -1.0), -1.0)
    return moves_away(onward, np.flatnonzero(goal), until)


def on_optimal_ways(mdp: FiniteMDP, free: Mask, starts: Index) -> Array:
    """`visiting` in general, step by step."""
    assert mdp.horizon is not None
    S, A = mdp.reward.shape
    inside = np.repeat(free[:, None], A, axis=1)
    span = float(mdp.reward.max() - mdp.reward.min())
    pi, _ = soft.plan(mdp, mdp.reward, TEMPERATURE * (span or 1.0), inside)
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
    reached = soft.values(mdp, goal, inside)[0, starts] > 0
    return np.where(reached[:, None], np.minimum(entered.T, 1.0), 0.0)
