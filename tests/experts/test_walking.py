"""The Ant's experts walk: to the goal, around the walls, each on a stream of its own."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.demos.dataset import content_hash
from ringfence.errors import InvalidInput
from ringfence.experts.walking import Config, make_demonstrations
from ringfence.objects import Demonstrations
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import read_map

MAZE = AntMaze(read_map("S#0\n..1\n"), horizon=400)


@pytest.fixture(scope="module")
def demos() -> Demonstrations:
    return make_demonstrations(MAZE, Config(paths=2, heldout=1, seed=3))


def test_experts_keep_off_the_walls_and_arrive(demos: Demonstrations) -> None:
    assert [len(d.train) for d in demos.tasks] == [2, 2]
    assert [len(d.heldout) for d in demos.tasks] == [1, 1]
    assert MAZE.check(demos) == []
    for d in demos.tasks:
        for _, t in d.labelled:
            assert t.terminated
            assert not MAZE.truth.violates(t.features).any()


def test_the_provenance_counts_who_arrived_and_names_no_wall(demos: Demonstrations) -> None:
    said = demos.provenance
    assert said["episodes"] == {"arrived": 6, "fell": 0, "late": 0}
    assert (said["paths_per_start"], said["heldout_per_start"], said["seed"]) == (2, 1, 3)
    assert "map" not in said


def test_more_paths_are_the_same_paths_and_some_more(demos: Demonstrations) -> None:
    """A path's start and goal are its own: which others walk beside it doesn't move them."""
    more = make_demonstrations(MAZE, Config(paths=3, heldout=0, seed=3), threads=1)
    for few, many in zip(demos.tasks, more.tasks, strict=True):
        for a, b in zip(few.train, many.train[:2], strict=True):
            np.testing.assert_array_equal(a.observations[0], b.observations[0])


def test_the_seed_decides_and_threads_do_not(demos: Demonstrations) -> None:
    again = make_demonstrations(MAZE, Config(paths=2, heldout=1, seed=3), threads=1)
    other = make_demonstrations(MAZE, Config(paths=2, heldout=1, seed=4))
    assert content_hash(again) == content_hash(demos) != content_hash(other)


def test_a_map_without_walls_has_no_experts() -> None:
    with pytest.raises(InvalidInput, match="its truth is unknown, bring demonstrations"):
        make_demonstrations(AntMaze(read_map("S.0\n")), Config())


@pytest.mark.parametrize("change", [{"paths": 0}, {"heldout": -1}, {"seed": -1}])
def test_impossible_experts_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match="at least 1 path, 0 held-out ones and seed 0"):
        Config(**change)
