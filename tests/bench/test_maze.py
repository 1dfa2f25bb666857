from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ringfence.bench import maze as bench
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


def test_an_iteration_is_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walks, the fit of the world's own player, the flags: of a small maze, one episode each."""
    monkeypatch.setattr(bench, "EPISODES", 1)
    world = AntMaze(read_map("S.0\n"), horizon=150)
    player = bench.default_player(world)
    assert (player.steps, player.tolerance, player.T) == (6_000, 0.5, 150.0)
    monkeypatch.setattr(bench, "default_player", lambda _: replace(player, steps=20))
    split = bench.one_iteration(world, threads=1)
    parts = [split[name] for name in ("walk", "fit", "discretise")]
    assert min(parts) > 0
    assert split["iteration"] == pytest.approx(sum(parts))


def test_without_the_peer_its_figures_are_null(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "open_environment", lambda world: None)
    monkeypatch.setattr(bench, "ROUNDS", 1)
    monkeypatch.setattr(bench, "EPISODES", 1)
    monkeypatch.setattr(bench, "one_iteration", lambda *_: {"iteration": 1.0})
    monkeypatch.setattr(bench, "maze", lambda: read_map("S.0\n..1\n"))
    said: list[str] = []
    numbers = bench.bench_maze(report=said.append)
    assert numbers["trajectories_over_gymnasium"] is None
    assert numbers["iteration_s"] == 1.0
    assert numbers["trajectories_per_s"] > 0
    assert "ringfence[peers]" in said[0]
