"""Smaller conflicts by policies that do without some cells, within a budget."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crossing_world import FEATURES, STEPS, nowhere, random_crossing
from ringfence.analysis.evidence.narrowing import Wanted, drops, narrowed
from ringfence.analysis.evidence.sampled import Conflict, SampledEvidence, cells_of
from ringfence.analysis.evidence.witnessed import label
from ringfence.analysis.evidence.witnesses import Shown, Tried
from ringfence.constraints.cell_grid import around


def test_parts_are_dropped_from_halves_to_single_cells_the_least_visited_first() -> None:
    visits = (4.0, 1.0, 3.0, 2.0)
    conflict = Conflict((10, 11, 12, 13), (), visits, "t", "w", 0, 0, np.zeros((1, 2)))
    halves = [{11, 13}, {10, 12}]
    assert [set(part) for part in drops(conflict)] == [*halves, {11}, {13}, {12}, {10}]
    single = Conflict((10,), (), (1.0,), "t", "w", 0, 0, np.zeros((1, 2)))
    assert drops(single) == []


def smallest(solves: int) -> tuple[int, int, list[Wanted]]:
    """The smallest conflict after so many more policies, how many there were, what was asked."""
    world = random_crossing(0)
    demos = world.episodes(world.forbidden, 10, 1)
    grid = around(np.concatenate([t.features for t in demos]), (0, 1), [0.5, 0.5])
    asked: list[Wanted] = []

    def judge(tried: Sequence[Tried]) -> SampledEvidence:
        return label(grid, FEATURES, [Shown("cross", STEPS, demos)], tried, slack=0.01)

    def retry(wanted: Sequence[Wanted]) -> list[Tried]:
        asked.extend(wanted)
        return [
            Tried(
                0,
                f"policy {len(asked)}",
                world.episodes(lambda at, b=w.barred: b[cells_of(grid, at)], 8, len(asked)),
            )
            for w in wanted
        ]

    free = Tried(0, "free", world.episodes(nowhere, 8, 2))
    found, tried = narrowed(judge, [free], retry, solves)
    return len(found.conflicts[0].cells), len(tried), asked


def test_a_budget_of_policies_makes_conflicts_smaller_and_is_kept() -> None:
    before, one, _ = smallest(0)
    after, many, asked = smallest(12)
    assert one == 1
    assert len(asked) == many - 1 <= 12
    assert 0 < after < before
    assert all(w.task == 0 and w.barred.any() for w in asked)


def test_nothing_is_asked_where_nothing_can_be_dropped() -> None:
    world = random_crossing(0)
    demos = world.episodes(world.forbidden, 10, 1)
    grid = around(np.concatenate([t.features for t in demos]), (0, 1), [0.5, 0.5])

    def judge(tried: Sequence[Tried]) -> SampledEvidence:
        return label(grid, FEATURES, [Shown("cross", STEPS, demos)], tried)

    def never(wanted: Sequence[Wanted]) -> list[Tried]:
        raise AssertionError(wanted)

    same = Tried(0, "as good", world.episodes(world.forbidden, 8, 5))
    assert not narrowed(judge, [same], never, 5)[0].conflicts
