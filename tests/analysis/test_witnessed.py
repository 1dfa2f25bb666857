"""Labels over cells of continuous features: what they claim is true, over random worlds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crossing_world import FEATURES, STEPS, kept_off, nowhere, random_crossing, truly_forbidden
from ringfence.analysis.evidence.sampled import SampledEvidence
from ringfence.analysis.evidence.witnessed import label, minimal
from ringfence.analysis.evidence.witnesses import Shown, Tried
from ringfence.constraints.cell_grid import Grid, around
from ringfence.errors import InvalidInput
from ringfence.objects import Trajectory

UNIT = Grid((0, 1), np.zeros(2), np.ones(2), (4, 4))


def walk(*points: tuple[float, float], pays: float = 1.0) -> Trajectory:
    """An episode through these points, of which each step pays as much."""
    at = np.array(points)
    n = len(at)
    return Trajectory(np.zeros((n + 1, 1)), np.zeros((n, 1)), np.full(n, pays), at, False)


def evidence(
    demos: list[Trajectory], *tried: Trajectory, slack: float = 0.0, budget: float | None = 0.0
) -> SampledEvidence:
    """Of five times each demonstration, and of policies that always do one walk."""
    group = Shown("task", len(demos[0]), demos * 5)
    policies = [Tried(0, f"w{n}", [t, t]) for n, t in enumerate(tried)]
    return label(UNIT, FEATURES, [group], policies, slack=slack, budget=budget)


LOW = walk((0.5, 0.5), (1.5, 0.5), (2.5, 0.5))


def test_a_witness_that_left_the_visited_cells_once_proves_that_cell() -> None:
    better = walk((0.5, 0.5), (1.5, 1.5), (2.5, 0.5), pays=2.0)
    found = evidence([LOW], better)
    (cell,) = np.flatnonzero(found.proven)
    assert np.unravel_index(cell, UNIT.shape) == (1, 1)
    assert found.counts() == {"allowed": 3, "proven": 1, "implicated": 0, "unknown": 12}
    assert found.conflicts[0].visits == (1.0,)
    assert "x 1 to 2 m x y 1 to 2 m is proven forbidden: on task, w0 earns at least 6" in found.why(
        int(cell)
    )


def test_more_cells_are_implicated_and_a_smaller_set_takes_the_larger_ones_place() -> None:
    wide = walk((0.5, 1.5), (1.5, 1.5), (2.5, 1.5), pays=2.0)
    found = evidence([LOW], wide)
    assert found.counts()["implicated"] == 3
    assert set(found.m[found.implicated]) == {3}
    narrow = walk((0.5, 1.5), (1.5, 1.5), (2.5, 0.5), pays=2.0)
    both = evidence([LOW], wide, narrow)
    assert len(both.conflicts) == 1
    assert both.counts()["implicated"] == 2
    assert len(minimal([*found.conflicts, *both.conflicts])) == 1


def test_who_earns_no_more_shows_nothing() -> None:
    assert not evidence([LOW], walk((0.5, 1.5), (1.5, 1.5), (2.5, 1.5))).conflicts
    better = walk((0.5, 1.5), (1.5, 1.5), (2.5, 1.5), pays=1.04)
    assert evidence([LOW], better).conflicts
    assert not evidence([LOW], better, slack=0.05).conflicts


def test_a_visited_cell_joins_the_set_where_the_witness_was_far_from_demonstrated_steps() -> None:
    corner = walk((0.5, 0.5), (1.5, 1.5), (2.95, 0.95), pays=2.0)
    found = evidence([walk((0.5, 0.5), (1.5, 0.5), (2.05, 0.05))], corner)
    assert not found.proven.any()
    (conflict,) = found.conflicts
    assert [np.unravel_index(c, UNIT.shape) for c in conflict.cells] == [(1, 1), (2, 0)]
    assert [np.unravel_index(c, UNIT.shape) for c in conflict.border] == [(2, 0)]
    assert found.allowed[conflict.border[0]]


def test_nothing_is_proven_by_a_witness_as_near_as_one_that_wins_where_demonstrators_were() -> None:
    one_cell = walk((0.5, 0.7), (1.5, 1.5), (2.5, 0.5), pays=2.0)
    assert evidence([LOW], one_cell).counts()["proven"] == 1
    none = walk((0.5, 0.7), (1.5, 0.5), (2.5, 0.5), pays=2.0)  # as near, at most, as 0.2 of a cell
    found = evidence([LOW], one_cell, none)
    assert not found.proven.any()
    (conflict,) = found.conflicts
    assert conflict.cells == conflict.border
    assert "too coarse" in found.doubts[0]


def begun(start: float, *points: tuple[float, float], pays: float = 1.0) -> Trajectory:
    """A walk of which the first observation is `start`."""
    episode = walk(*points, pays=pays)
    return replace(episode, observations=episode.observations + start)


def test_a_start_alone_proves_a_cell_that_the_witness_s_other_episodes_hide() -> None:
    group = Shown("task", 3, [begun(s, (0.5, 0.5), (1.5, 0.5), (2.5, 0.5)) for s in (1, 2, 3) * 3])
    wide = ((0.5, 1.5), (1.5, 1.5), (2.5, 1.5))
    once = begun(3, (0.5, 0.5), (1.5, 1.5), (2.5, 0.5), pays=1.1)
    tried = Tried(0, "w", [*(begun(s, *wide) for s in (1, 1, 2, 2, 2)), once, once])
    found = label(UNIT, FEATURES, [group], [tried])
    (conflict,) = found.conflicts
    assert conflict.start == (3.0,)
    assert found.counts()["proven"] == 1
    assert "from one of its starts, w earns" in found.explain(conflict)
    assert any("start by start" in text for text in found.sentences())
    budget = label(UNIT, FEATURES, [group], [tried], budget=1.0)
    assert not budget.conflicts  # of one start alone demonstrators may have spent more


def test_a_conflict_within_visited_cells_says_that_they_are_too_coarse() -> None:
    corner = walk((0.5, 0.5), (1.5, 0.5), (2.95, 0.95), pays=2.0)
    found = evidence([walk((0.5, 0.5), (1.5, 0.5), (2.05, 0.05))], corner)
    assert found.counts()["implicated"] == 0
    assert "too coarse" in found.doubts[0]


def test_a_witness_that_was_nowhere_new_is_a_doubt_and_its_task_proves_nothing() -> None:
    new = walk((0.5, 0.5), (1.5, 1.5), (2.5, 0.5), pays=2.0)
    same = walk((0.5, 0.5), (1.5, 0.5), (2.5, 0.5), pays=2.0)
    found = evidence([LOW], new, same)
    assert not found.conflicts
    assert "lacks a feature" in found.doubts[0]
    assert found.counts()["unknown"] == 13


def test_of_demonstrators_with_a_budget_nothing_is_proven_and_conflicts_are_inequalities() -> None:
    better = walk((0.5, 0.5), (1.5, 1.5), (1.6, 1.5), pays=2.0)
    for budget, words in ((3.0, "more than 3."), (None, "more than their budget")):
        found = evidence([LOW], better, budget=budget)
        (conflict,) = found.conflicts
        assert not found.proven.any()
        assert conflict.visits == (1.0, 2.0)  # of all cells where it was, visited ones, too
        assert words in found.explain(conflict)
        assert "is visited" in found.why(int(np.flatnonzero(found.allowed)[0]))


def test_a_task_that_does_not_testify_shows_nothing_and_raises_no_doubt() -> None:
    group = Shown("task", 3, [LOW] * 4)  # too few
    same = Tried(0, "same", [walk((0.5, 0.5), (1.5, 0.5), (2.5, 0.5), pays=2.0)] * 2)
    new = Tried(0, "new", [walk((0.5, 0.5), (1.5, 1.5), (2.5, 0.5), pays=2.0)] * 2)
    found = label(UNIT, FEATURES, [group], [same, new])
    assert not found.conflicts
    assert not found.doubts


def test_a_slack_of_everything_is_refused() -> None:
    with pytest.raises(InvalidInput, match="slack"):
        evidence([LOW], slack=1.0)


# Over random worlds ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0.25, 0.5])
@pytest.mark.parametrize(
    ("lost", "noise", "slack"),
    [(0.0, 0.0, 0.01), (0.05, 0.0, 0.05), (0.1, 0.0, 0.1), (0.0, 1.0, 0.01)],
)
def test_no_proven_cell_is_free_and_every_conflict_holds_a_forbidden_point(
    size: float, lost: float, noise: float, slack: float
) -> None:
    conflicts = 0
    for seed in range(8):
        world, rng = random_crossing(seed, noise), np.random.default_rng(seed)
        demos = world.episodes(world.forbidden, 20, (seed, 1), lost)
        grid = around(np.concatenate([t.features for t in demos]), (0, 1), [size, size])
        tried = [
            Tried(0, name, world.episodes(barred, 12, (seed, 2)))
            for name, barred in (("free", nowhere), ("honest", world.forbidden))
        ]
        for n in range(5):  # whatever they keep off, visited cells, too
            off = rng.random(int(np.prod(grid.shape))) < rng.uniform(0.1, 0.9)
            fresh = world.episodes(kept_off(grid, off), 12, (seed, 3, n))
            tried.append(Tried(0, f"{n}", fresh))
        found = label(grid, FEATURES, [Shown("cross", STEPS, demos)], tried, slack=slack)
        bad = truly_forbidden(grid, world)
        assert not (found.proven & ~bad).any()
        assert all(bad[list(c.cells)].any() for c in found.conflicts)
        conflicts += len(found.conflicts)
    assert conflicts > 0
