from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ringfence.objects import behaviour_of
from ringfence.reproduce import run
from ringfence.reproduce.without_planner import at_goal, experts
from ringfence.solvers.planner import EXPERT
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import maze

SMALL = """
about = "a point that hardly learns"
kind = "point"
shown_like = "point-maze"

[variants.point]
like = "point-maze/point"
game.iterations = 1
demonstrations.paths = 1
player.network.steps = 50
solver = { env_steps = 512, copies = 8, steps = 32, minibatches = 2, passes = 1 }
"""


def test_experts_walk_around_the_walls_and_stay_at_the_goal() -> None:
    world = AntMaze(maze())
    shown = experts(world, 0, EXPERT, 1)
    assert [len(d) for d in shown] == [2] * 10
    for k, d in enumerate(shown):
        pi = behaviour_of(d)
        assert world.truth.true_cost(pi) == 0
        assert at_goal(world, k, pi) > 50


def test_from_nothing_to_a_table_and_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    out = run("small.toml", say=lambda line: None)
    summary = json.loads((out / "point" / "seed-0.json").read_text())
    assert summary["selected"] == 1
    (row,) = summary["rows"]
    assert f"| 1 | {row['iou']:.3g} | {row['true_cost']:.3g} |" in (out / "table.md").read_text()
    assert "select iteration 1." in (out / "table.md").read_text()
    assert np.shape(summary["positions"][0])[1] == 2
    assert (out / "maze.png").stat().st_size > 5_000
