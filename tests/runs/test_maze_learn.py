"""A small maze for the Ant, played on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ringfence.demos import dataset as demonstrations
from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.objects import Demonstrations, TaskDemos, Trajectory
from ringfence.report import page
from ringfence.runs import maze as mazes
from ringfence.runs import maze_learn, maze_transfer
from ringfence.runs.config import (
    DemosConfig,
    GameConfig,
    NetworkConfig,
    RunConfig,
    SolverConfig,
)
from ringfence.runs.worlds import make_maze, world_config
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import read_map

MAP = "S#0\n..1\n"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunConfig, Demonstrations]:
    file = tmp_path_factory.mktemp("map") / "small.txt"
    file.write_text(MAP)
    world = world_config(f"ant-maze:{file}", horizon=400)
    demos = mazes.make_demonstrations(make_maze(world), mazes.MazeExperts(2, 1, seed=3))
    config = RunConfig(
        command="ringfence learn",
        seed=3,
        world=world,
        demos=DemosConfig(demonstrations.content_hash(demos)),
        game=GameConfig(constraint_class="mlp", iterations=2, epsilon=maze_learn.PLAY_ON),
        solver=SolverConfig("planner", episodes=2),
        network=NetworkConfig((32, 32), 1e-2, 0.0, steps=400, batch=64, tolerance=0.5, spread=1.0),
    )
    return config, demos


@pytest.fixture(scope="module")
def played(
    small: tuple[RunConfig, Demonstrations], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    run = tmp_path_factory.mktemp("runs") / "small"
    maze_learn.create(run, *small)
    maze_learn.drive(run, lambda event: None)
    return run


def test_experts_keep_off_the_walls_and_arrive(
    small: tuple[RunConfig, Demonstrations],
) -> None:
    config, demos = small
    maze = make_maze(config.world)
    assert [len(d.train) for d in demos.tasks] == [2, 2]
    assert [len(d.heldout) for d in demos.tasks] == [1, 1]
    assert mazes.check(demos, maze) == []
    for d in demos.tasks:
        for _, t in d.labelled:
            assert not maze.truth.violates(t.features).any()


def test_the_wall_is_learned(played: Path) -> None:
    """The learner of c_1 = 0 walks through it; the experts never do."""
    rows = json.loads((played / "summary.json").read_bytes())["iterations"]
    assert rows[0]["constraint"]["forbidden"] == 0
    assert rows[0]["learner_true_cost_mean"] > 5
    assert rows[0]["expert_true_cost_mean"] == 0
    assert rows[0]["updated"]["iou"] == 1
    assert rows[1]["learner_true_cost_mean"] == 0
    assert rows[1]["violations"] == []
    assert rows[0]["violations"][0]["where"].startswith("(0,1)")
    for row in rows:
        assert max(row["expert_cost"]) <= 0.5
        assert row["episodes"]["arrived"] == 4


def test_an_unchanged_plan_is_walked_once_and_said_so(played: Path) -> None:
    """Goal 1 is below the wall: its best moves change with the flag, but not from iteration 2."""
    rows = json.loads((played / "summary.json").read_bytes())["iterations"]
    assert rows[0]["reused"] == [None, None]
    for row in rows[1:]:
        for k, walked_in in enumerate(row["reused"]):
            same = row["ledger"][k] == rows[0]["ledger"][k]
            assert (walked_in == 1) == same


def test_a_stopped_run_resumes_to_the_same_bytes(
    played: Path, small: tuple[RunConfig, Demonstrations], tmp_path: Path
) -> None:
    run = tmp_path / "again"
    maze_learn.create(run, *small)

    def stop(event: dict[str, object]) -> None:
        if event["event"] == "iteration":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        maze_learn.drive(run, stop)
    maze_learn.drive(run, lambda event: None)
    files = [p.relative_to(played) for p in played.rglob("*") if p.is_file()]
    for name in files:
        if name.name in ("metrics.jsonl", "timing.json", ".lock") or name.parts[0] == "demos":
            continue
        assert (run / name).read_bytes() == (played / name).read_bytes(), name


def test_the_page_shows_ants_that_walk(played: Path) -> None:
    text = page.write(played).read_text()
    assert text.count('class="walking"') == 2
    assert text.count("<animate ") == 2 * 2 * 2  # two iterations, two tasks from one start, x and y
    assert "evidence" in text


def with_path(demos: Demonstrations, xy: np.ndarray, task: str) -> Demonstrations:
    """The demonstrations with one more trajectory along xy, under the name `task`."""
    like = demos.tasks[0].train[0]
    n = len(xy) - 1
    t = Trajectory(
        np.hstack([xy, np.zeros((n + 1, like.observations.shape[1] - 2))]),
        np.zeros((n, like.actions.shape[1])),
        np.zeros(n),
        xy[1:],
        True,
    )
    return Demonstrations((TaskDemos(task, (t,), (t,)),), demos.features, {})


def test_a_demonstration_that_crosses_a_claimed_wall_is_flagged(
    small: tuple[RunConfig, Demonstrations],
) -> None:
    config, demos = small
    straight = np.linspace([-4.0, 2.0], [4.0, 2.0], 30)
    findings = mazes.check(with_path(demos, straight, "goal (0,2)"), make_maze(config.world))
    assert [f.severity for f in findings] == ["warning", "warning"]
    assert "it crosses a claimed wall: (0,1)" in findings[0].message
    assert "m deep" in findings[0].message


def test_an_unknown_task_is_an_error(
    small: tuple[RunConfig, Demonstrations], tmp_path: Path
) -> None:
    config, demos = small
    other = with_path(demos, np.linspace([-4.0, 2.0], [-4.0, -2.0], 9), "goal (7,7)")
    with pytest.raises(InvalidInput, match=r"goal \(7,7\)"):
        maze_learn.create(tmp_path / "run", config, other)
    assert not (tmp_path / "run").exists()


def test_a_new_start_is_called_covered_and_walked_safely(played: Path, tmp_path: Path) -> None:
    said: list[str] = []
    answer = maze_transfer.from_run(
        played, (0, 2), (1, 0), "avoid", 0, tmp_path / "out", said.append
    )
    assert said == [
        "goal (0,2) from (1, 0): covered, it can be done within cells that demonstrators walked"
    ]
    assert answer["covered"]
    assert answer["success"] == 1
    assert answer["true_cost"] == 0
    assert (tmp_path / "out" / "path.png").stat().st_size > 2000


def test_a_goal_in_a_wall_is_refused(played: Path, tmp_path: Path) -> None:
    with pytest.raises(InfeasibleLimit, match="the goal lies in a wall"):
        maze_transfer.from_run(played, (0, 1), (1, 0), "allow", 0, tmp_path / "out", print)
    with pytest.raises(InvalidInput, match="outside the map"):
        maze_transfer.from_run(played, (5, 1), (1, 0), "allow", 0, tmp_path / "out", print)
    assert not (tmp_path / "out").exists()


def test_depth_is_the_distance_to_the_nearest_free_cell() -> None:
    truth = AntMaze(read_map("S.###\n....0\n")).truth
    assert mazes.depth(truth, np.array([[4.0, 1.5]])) == pytest.approx(1.5)  # above a free row
    assert mazes.depth(truth, np.array([[-1.0, 2.0]])) == pytest.approx(1.0)  # right of (0,1)
    assert mazes.depth(truth, np.array([[0.0, -4.5]])) == pytest.approx(0.5)  # below the map
