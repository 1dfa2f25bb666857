"""Evidence in use: whether a new task is covered, and how a learned constraint relates to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ringfence.analysis.evidence.conflicts import best_returns
from ringfence.analysis.evidence.groups import Group
from ringfence.analysis.evidence.moves import Case, Mask
from ringfence.analysis.evidence.result import Conflict, Evidence, Standing
from ringfence.errors import InvalidInput
from ringfence.solvers import soft
from ringfence.worlds.finite import FiniteTask


def covered(evidence: Evidence, task: FiniteTask, start: int) -> bool:
    """Whether the task can be done from `start` within allowed cells.

    Done means: some policy that is never outside the allowed cells collects the task's largest
    reward of a step (reaches its goal) before the horizon, with a probability above 0.
    """
    S = len(evidence.labels)
    if task.mdp.num_states != S or not 0 <= start < S or task.horizon is None:
        raise InvalidInput(
            f"task {task.name!r} from state {start}: the evidence is about {S} cells and needs a "
            f"task with as many states ({task.mdp.num_states}) and a finite horizon"
        )
    best = (task.mdp.reward == task.mdp.reward.max()).astype(np.float64)
    inside = np.repeat(evidence.allowed[:, None], task.mdp.num_actions, axis=1)
    return bool(soft.values(task.mdp, best, inside)[0, start] > 0)


@dataclass(frozen=True)
class Relation:
    """A learned constraint against the labels, as cells.

    contradicted: forbidden although a demonstrator was there; confirmed: forbidden and proven;
    implicated, unknown: forbidden, but a choice of the learner's; missed: proven but not
    forbidden. unexplained: known conflict sets of which no cell is forbidden. beaten: the groups
    that could be beaten where the constraint lets one go, None if that was not asked for.
    """

    contradicted: tuple[int, ...]
    confirmed: tuple[int, ...]
    implicated: tuple[int, ...]
    unknown: tuple[int, ...]
    missed: tuple[int, ...]
    unexplained: tuple[Conflict, ...]
    beaten: tuple[Standing, ...] | None
    sentences: tuple[str, ...]

    @property
    def choices(self) -> tuple[int, ...]:
        """The forbidden cells that the demonstrations do not prove to be forbidden."""
        return tuple(sorted((*self.implicated, *self.unknown)))


def relate(evidence: Evidence, forbidden: Mask, groups: Sequence[Group] = ()) -> Relation:
    """How a constraint that forbids these cells, [S] or in the grid's shape, stands to the labels.

    The evidence lists one smallest conflict set per cell, not all of them. Given the `groups` it
    was made from, this also checks in full whether the constraint explains what they did.
    """
    forbidden = flat(evidence, forbidden)
    unexplained = tuple(c for c in evidence.conflicts if not forbidden[list(c.cells)].any())
    beaten = _beaten(evidence, forbidden, groups) if groups else None
    parts = {
        "contradicted": _cells(forbidden & evidence.allowed),
        "confirmed": _cells(forbidden & evidence.proven),
        "implicated": _cells(forbidden & evidence.implicated),
        "unknown": _cells(forbidden & evidence.unknown),
        "missed": _cells(~forbidden & evidence.proven),
    }
    said = (*_on_cells(evidence, parts), *_on_conflicts(evidence, unexplained, beaten))
    return Relation(**parts, unexplained=unexplained, beaten=beaten, sentences=said)


def flat(evidence: Evidence, forbidden: Mask) -> Mask:
    """A mask over the cells, [S] or in the grid's shape, as [S]."""
    if forbidden.shape not in (evidence.shape, evidence.labels.shape) or forbidden.dtype != bool:
        raise InvalidInput(
            f"forbidden: expected True or False for each of the cells {evidence.shape}, "
            f"got {forbidden.dtype} of shape {forbidden.shape}"
        )
    return forbidden.ravel()


def _beaten(evidence: Evidence, forbidden: Mask, groups: Sequence[Group]) -> tuple[Standing, ...]:
    """The testifying groups that a policy which keeps the constraint could beat."""
    if [(g.name, g.start) for g in groups] != [(s.task, s.start) for s in evidence.standings]:
        raise InvalidInput("relate: give the groups that the evidence was made from, in order")
    cases = [Case(g.task.mdp, g.start, np.inf) for g in groups]
    values = best_returns(cases, ~forbidden[None])[0]
    pairs = zip(evidence.standings, values, strict=True)
    return tuple(s for s, value in pairs if s.testifies and value > s.bar)


def _cells(mask: Mask) -> tuple[int, ...]:
    return tuple(int(x) for x in np.flatnonzero(mask))


def _on_cells(evidence: Evidence, parts: dict[str, tuple[int, ...]]) -> Iterable[str]:
    words = {
        "contradicted": "forbidden although a demonstrator was there: a contradiction",
        "confirmed": "forbidden and proven to be",
        "implicated": "forbidden by the learner's choice among cells that can't all be allowed",
        "unknown": "forbidden by the learner's choice: no demonstration speaks for or against",
        "missed": "proven forbidden but not forbidden by the constraint",
    }
    for part, cells in parts.items():
        if cells:
            yield f"{_count(len(cells), 'cell')} {words[part]}: {evidence.names(cells)}."


def _on_conflicts(
    evidence: Evidence, unexplained: Sequence[Conflict], beaten: Sequence[Standing] | None
) -> Iterable[str]:
    for conflict in unexplained:
        yield f"Unexplained, nothing of it is forbidden: {evidence.explain(conflict)}"
    if beaten:
        whom = "; ".join(f"{s.task} from {evidence.name(s.start)}" for s in beaten)
        yield (
            f"The constraint does not explain {_count(len(beaten), 'group')} of demonstrations: "
            f"under it they could be beaten ({whom})."
        )
    elif beaten is not None and not unexplained:
        yield "Under the constraint no group of demonstrations that testifies could be beaten."


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
