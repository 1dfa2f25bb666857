"""Smaller conflicts: cells are dropped from a witness's set while a policy that is kept off them
still beats the demonstrators.

Which policies these are, somebody else finds out (`Retry`): by training under "keep off these
cells". Whatever comes back is judged by where it went, not by where it was told to go, so a
training that falls short costs time and nothing else. The search is for sets in which nothing more
can be dropped, part by part: half of the cells, the least visited ones first, then quarters, down
to single cells. It ends with a budget of trainings, so sizes stay upper bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from ringfence.analysis.evidence.moves import Mask
from ringfence.analysis.evidence.sampled import Conflict, SampledEvidence
from ringfence.analysis.evidence.witnesses import Tried


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
    asked: dict[tuple[str, tuple[int, ...]], int] = {}
    while solves > 0:
        wanted = list(islice(_round(evidence, asked), solves))
        if not wanted:
            break
        tried += retry(wanted)
        solves -= len(wanted)
        evidence = judge(tried)
    return evidence, tried


def _round(
    evidence: SampledEvidence, asked: dict[tuple[str, tuple[int, ...]], int]
) -> Iterator[Wanted]:
    """Of each task, the smallest conflict of which something is left to drop."""
    for k, statement in enumerate(evidence.statements):
        for conflict in evidence.conflicts:  # smallest first
            if conflict.task != statement.task:
                continue
            key = (conflict.task, conflict.cells)
            parts = drops(conflict)
            if asked.get(key, 0) < len(parts):
                without = parts[asked.get(key, 0)]
                asked[key] = asked.get(key, 0) + 1
                yield Wanted(k, _barred(evidence, conflict, without), conflict.witness)
                break


def drops(conflict: Conflict) -> list[frozenset[int]]:
    """What may be dropped from a conflict, in the order in which that is tried."""
    cells = [conflict.cells[n] for n in np.argsort(conflict.visits, kind="stable")]
    found: list[frozenset[int]] = []
    count = 2
    while len(cells) > 1:
        found += [frozenset(map(int, part)) for part in np.array_split(cells, count)]
        if count == len(cells):
            break
        count = min(2 * count, len(cells))
    return found


def _barred(evidence: SampledEvidence, conflict: Conflict, dropped: frozenset[int]) -> Mask:
    barred = ~evidence.allowed
    barred[list(conflict.cells)] = False
    barred[list(dropped)] = True
    return barred
