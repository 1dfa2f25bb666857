from __future__ import annotations

import numpy as np
import pytest

from ringfence.bench.maze import open_environment, routes, walk_alone
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import maze, read_map
from ringfence.worlds.sim.ant_walk import walk


def test_every_task_and_start_has_its_routes() -> None:
    world = AntMaze(maze())
    groups = routes(world, episodes=2, seed=0)
    assert [len(group) for group in groups] == [4] * 10
    for group, task in zip(groups, world.tasks, strict=True):
        for w in group:
            assert tuple(world.layout.cell(w.goal)) == task.goal
            assert not world.truth.violates(w.corners).any()


def test_the_peer_walks_the_same_walk() -> None:
    """One Ant in the published environment takes as many steps as ours, to the goal."""
    pytest.importorskip("gymnasium_robotics")
    world = AntMaze(read_map("S.0\n"))
    (group,) = routes(world, episodes=1, seed=0)
    env = open_environment(world)
    steps = walk_alone(env, group[0], 300)
    env.close()
    (ours,) = walk(group, 300)
    assert len(ours.trajectory) == pytest.approx(steps, abs=5)
    assert np.linalg.norm(ours.trajectory.features[-1] - group[0].goal) <= 0.5
