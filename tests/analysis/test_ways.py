"""Where only goals pay, fewest moves say what the dynamic programmes over all steps say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ringfence.analysis import evidence as ev
from ringfence.analysis.evidence import Group, conflicts, moves
from ringfence.analysis.evidence.moves import Case, Moves
from ringfence.experts.optimal import ExpertConfig, make_demonstrations
from ringfence.worlds.grid import random_map, read_map


def barriers(side: int, every: int) -> str:
    """Long walls with a gap at one end, by turns, and four goals between them."""
    letters = np.full((side, side), ".")
    for n, row in enumerate(range(every, side - 1, every)):
        letters[row] = "#"
        letters[row, -2 if n % 2 else 1] = "."
        letters[row - 1, side // 2 + n] = "G"
    letters[0, 0] = letters[-1, -1] = "S"
    return "\n".join("".join(line) for line in letters)


MAPS = {
    "barriers": barriers(18, 4),  # too large for a thorough search
    "small barriers": barriers(9, 3),
    "blocks": random_map(2, side=18, starts=2, goals=4),
    **{f"small blocks {seed}": random_map(seed, side=7) for seed in range(3)},
}


def by_steps(cases: Sequence[Case]) -> Moves:
    """The moves as if something else than goals paid, too."""
    return replace(moves.moves_of(cases), pay=None)


@pytest.fixture(params=MAPS.values(), ids=list(MAPS))
def groups(request: pytest.FixtureRequest) -> list[Group]:
    world = read_map(request.param)
    demos = make_demonstrations(world, ExpertConfig(paths=2, heldout=0))
    pairs = zip(world.tasks, demos.tasks, strict=True)
    return [g for task, d in pairs for g in ev.groups_of(task, d.train)]


def test_the_evidence_is_that_of_all_steps_to_the_byte(
    monkeypatch: pytest.MonkeyPatch, groups: list[Group]
) -> None:
    quick = ev.label(groups)
    monkeypatch.setattr(conflicts, "moves_of", by_steps)
    assert json.dumps(quick.to_json()) == json.dumps(ev.label(groups).to_json())
    assert quick.conflicts


def test_entries_and_paths_are_those_of_all_steps(groups: list[Group]) -> None:
    cases = [Case(g.task.mdp, g.start, g.mean + 1e-9) for g in groups]
    free = np.any([g.visitors > 0 for g in groups], axis=0)
    quick, slow = moves.moves_of(cases), by_steps(cases)
    closed = ~free & (np.random.default_rng(0).random(len(free)) < 0.1)
    mine, theirs = quick.tables(free, closed, 3), slow.tables(free, closed, 3)
    entries = quick.entries(*mine)
    np.testing.assert_array_equal(entries, slow.entries(*theirs))
    past = np.flatnonzero((entries > 0) & (entries < moves.NEVER))
    assert len(past)
    for node in map(int, past):
        before, after = quick.path(*mine, node, int(entries[node]), free)
        slow_before, slow_after = slow.path(*theirs, node, int(entries[node]), free)
        assert before == slow_before
        assert after == slow_after[: len(after)]
        assert set(slow_after[len(after) :]) <= {[quick.cell[node], *after][-1]}  # at the goal
