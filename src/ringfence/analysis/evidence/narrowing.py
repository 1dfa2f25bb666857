"""Smaller conflicts: cells are dropped from a witness's set while a policy that is kept off them
still beats the demonstrators.

Which policies these are, somebody else finds out (`Retry`): by training under "keep off these
cells". Whatever comes back is judged by where it went, not by where it was told to go, so a
training that falls short costs time and nothing else. The search is for sets in which nothing more
can be dropped, part by part: half of the cells, the least visited ones first, then all but a
quarter, a quarter, and so on down to single cells; once a set is small, for others beside it. It
ends with a budget of trainings, so sizes stay upper bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ringfence.analysis.evidence.moves import Mask
from ringfence.analysis.evidence.sampled import Conflict, SampledEvidence
from ringfence.analysis.evidence.witnesses import Tried

#: A conflict of at most so many cells is small.
FEW = 5


@dataclass(frozen=True, eq=False)
class Wanted:
    """A policy for the task of that number that doesn't enter the barred cells [S]; after: the
    witness that shall do without them."""

    task: int
    barred: Mask
    after: str


Retry = Callable[[Sequence[Wanted]], Sequence[Tried]]
Judge = Callable[[Sequence[Tried]], SampledEvidence]


def narrowed(
    judge: Judge, tried: Sequence[Tried], retry: Retry, solves: int
) -> tuple[SampledEvidence, list[Tried]]:
    """The evidence after at most so many more policies, in rounds of one per task, and all that
    were tried."""
    tried, evidence = list(tried), judge(tried)
    asked = set[tuple[int, bytes]]()
    while solves > 0:
        nexts = (_next(evidence, k, asked) for k in range(len(evidence.statements)))
        wanted = list(islice((want for want in nexts if want is not None), solves))
        if not wanted:
            break
        tried += retry(wanted)
        solves -= len(wanted)
        evidence = judge(tried)
    return evidence, tried


def _next(evidence: SampledEvidence, k: int, asked: set[tuple[int, bytes]]) -> Wanted | None:
    """What to ask for a task next, which wasn't asked before: a policy that is in no small conflict
    (it shows others), then a part of a larger one, then of a small one."""
    own = [c for c in evidence.conflicts if c.task == evidence.statements[k].task]
    small, large = ([c for c in own if (len(c.cells) <= FEW) == few] for few in (True, False))
    known = [cell for c in small for cell in c.cells]
    options = [(own[-1], _mask(evidence, known))] if known else []
    options += [(c, _barred(evidence, c, part)) for c in (*large, *small) for part in drops(c)]
    for conflict, barred in options:
        key = (k, barred.tobytes())
        if key not in asked:
            asked.add(key)
            return Wanted(k, barred, conflict.witness)
    return None


def drops(conflict: Conflict) -> list[frozenset[int]]:
    """What may be dropped from a conflict, in the order in which that is tried."""
    cells = [conflict.cells[n] for n in np.argsort(conflict.visits, kind="stable")]
    every, found = frozenset(cells), list[frozenset[int]]()
    count = 2
    while len(cells) > 1:
        parts = [frozenset(map(int, part)) for part in np.array_split(cells, count)]
        if count > 2:
            found += [every - part for part in reversed(parts)]
        found += parts
        if count == len(cells):
            break
        count = min(2 * count, len(cells))
    return list(dict.fromkeys(found))


def _barred(evidence: SampledEvidence, conflict: Conflict, dropped: frozenset[int]) -> Mask:
    """All unvisited cells but those of the conflict that are kept."""
    kept = _mask(evidence, sorted(set(conflict.cells) - dropped))
    return (~evidence.allowed & ~kept) | _mask(evidence, sorted(dropped))


def _mask(evidence: SampledEvidence, cells: Sequence[int]) -> Mask:
    mask = np.zeros(len(evidence.labels), np.bool_)
    mask[list(cells)] = True
    return mask
