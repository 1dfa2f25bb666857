"""Smaller conflicts by policies that do without some cells, within a budget."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from crossing_world import FEATURES, STEPS, kept_off, nowhere, random_crossing, truly_forbidden
from ringfence.analysis.evidence.narrowing import FEW, Wanted, drops, narrowed
from ringfence.analysis.evidence.sampled import Conflict, SampledEvidence
from ringfence.analysis.evidence.witnessed import label
from ringfence.analysis.evidence.witnesses import Shown, Tried
from ringfence.constraints.cell_grid import around


def test_parts_are_dropped_from_halves_to_single_cells_the_least_visited_first() -> None:
    visits = (4.0, 1.0, 3.0, 2.0)
    conflict = Conflict((10, 11, 12, 13), (), visits, "t", "w", 0, 0, np.zeros((1, 2)))
    halves, singles = [{11, 13}, {10, 12}], [{11}, {13}, {12}, {10}]
    all_but_one = [{11, 12, 13}, {10, 11, 13}, {10, 11, 12}, {10, 12, 13}]
    assert [set(part) for part in drops(conflict)] == [*halves, *all_but_one, *singles]
    single = Conflict((10,), (), (1.0,), "t", "w", 0, 0, np.zeros((1, 2)))
    assert drops(single) == []


def search(seed: int, solves: int) -> tuple[SampledEvidence, list[Wanted], NDArray[np.bool_]]:
    """The evidence about a random world after so many more policies, what was asked for, and the
    cells that hold a forbidden point."""
    world = random_crossing(seed)
    demos = world.episodes(world.forbidden, 20, (seed, 1))
    grid = around(np.concatenate([t.features for t in demos]), (0, 1), [0.5, 0.5])
    asked: list[Wanted] = []

    def judge(tried: Sequence[Tried]) -> SampledEvidence:
        return label(grid, FEATURES, [Shown("cross", STEPS, demos)], tried, slack=0.01)

    def retry(wanted: Sequence[Wanted]) -> list[Tried]:
        asked.extend(wanted)
        path = (seed, 3, len(asked))
        return [
            Tried(0, f"policy {len(asked)}", world.episodes(kept_off(grid, w.barred), 20, path))
            for w in wanted
        ]

    free = Tried(0, "free", world.episodes(nowhere, 20, (seed, 2)))
    found, tried = narrowed(judge, [free], retry, solves)
    assert len(tried) == 1 + len(asked)
    return found, asked, truly_forbidden(grid, world)


def test_a_budget_of_policies_makes_conflicts_smaller_and_is_kept() -> None:
    before, none, _ = search(0, 0)
    after, asked, _ = search(0, 12)
    assert not none
    assert 0 < len(asked) <= 12
    assert len(after.conflicts[0].cells) < len(before.conflicts[0].cells)
    assert all(w.task == 0 and w.barred.any() for w in asked)
    assert len({w.barred.tobytes() for w in asked}) == len(asked)


@pytest.mark.parametrize("seed", [100, 103, 104, 106, 109])
def test_a_search_for_smaller_sets_comes_upon_no_false_one(seed: int) -> None:
    found, _, bad = search(seed, 20)
    assert found.conflicts
    assert all(bad[list(c.cells)].any() for c in found.conflicts)
    assert not (found.proven & ~bad).any()


def test_once_a_set_is_small_others_are_looked_for_beside_it() -> None:
    found, asked, _ = search(109, 20)
    small = [set(c.cells) for c in found.conflicts if len(c.cells) <= FEW]
    assert len(small) > 1
    assert any(sum(map(w.barred.__getitem__, small[0])) == len(small[0]) for w in asked)


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
