"""The Ant's maze as a world: walls that cost, cells under the floor, walks against the walls."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ringfence.constraints.linear import LinearConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import (
    Array,
    Behaviour,
    Demonstrations,
    Feature,
    Solution,
    TaskDemos,
    Trajectory,
)
from ringfence.worlds.ant_maze import (
    AntMaze,
    Config,
    MazeTruth,
    ant_maze_config,
    crossing,
    depth,
    ends,
    in_walls,
    make,
    paths,
)
from ringfence.worlds.grid import read_map
from ringfence.worlds.sim.floor import ARRIVED, FEATURES, LATE

MAP = ("S#0", "..1")
MAZE = make(Config(MAP, horizon=400))
WALL = np.linspace([-4.0, 2.0], [4.0, 2.0], 30)  # straight from the start to goal 0
AROUND = np.array([[-4.0, 2.0], [-4.0, -2.0], [0.0, -2.0], [4.0, -2.0], [4.0, 2.0]])


def walked(xy: Array) -> Trajectory:
    seen = np.hstack([xy, np.zeros((len(xy), 27))])
    n = len(xy) - 1
    return Trajectory(seen, np.zeros((n, 8)), np.zeros(n), xy[1:], terminated=True)


def demos(xy: Array, task: str = "goal (0,2)") -> Demonstrations:
    return Demonstrations((TaskDemos(task, (walked(xy),), (walked(xy),)),), FEATURES, {})


def planned(*ways: Array, outcome: int = ARRIVED) -> Solution:
    """A planner's solution that walked these ways."""
    policy = {
        "xy": np.concatenate(ways),
        "length": np.array([len(w) for w in ways]),
        "outcome": np.full(len(ways), outcome),
        "crossed": np.array([0] * (len(ways) - 1) + [2]),
    }
    pi = Behaviour(policy["xy"], np.ones(len(policy["xy"])), 0.0, 0.0, 0.0, len(ways))
    return Solution(policy, 0.0, pi, env_steps=0)


def test_a_wall_and_what_is_outside_cost_1_per_step() -> None:
    points = np.array([[0.0, 2.0], [0.0, -2.0], [0.0, 9.0]])
    assert MAZE.truth.violates(points).tolist() == [True, False, True]
    pi = Behaviour(points, np.array([2.0, 5.0, 0.5]), 0.0, 0.0, 7.5, 1)
    assert MAZE.truth.true_cost(pi) == MAZE.truth.true_raw(pi) == 2.5


def test_depth_is_the_distance_to_the_nearest_free_cell() -> None:
    truth = AntMaze(read_map("S.###\n....0\n")).truth
    assert depth(truth, np.array([[4.0, 1.5]])) == pytest.approx(1.5)  # above a free row
    assert depth(truth, np.array([[-1.0, 2.0]])) == pytest.approx(1.0)  # right of (0,1)
    assert depth(truth, np.array([[0.0, -4.5]])) == pytest.approx(0.5)  # below the map


def test_a_crossing_is_said_with_its_cells_and_its_depth() -> None:
    assert crossing(MAZE.truth, AROUND) == ""
    assert crossing(MAZE.truth, WALL).startswith("(0,1) ")
    assert crossing(MAZE.truth, WALL).endswith("m deep")


def test_cells_are_those_of_the_grid_below() -> None:
    """Features to states, walks to paths of cells with their return on the grid, a constraint to
    the cells that a planner would go around."""
    cells = MAZE.cells
    assert cells.shape == (2, 3)
    assert cells.index(np.array([[-4.0, 2.0], [4.0, -2.0], [9.0, 9.0]])).tolist() == [0, 5, -1]
    assert cells.path is not None
    states, earned = cells.path(walked(AROUND))
    assert states.tolist() == [0, 3, 4, 5, 2]
    assert earned == MAZE.grid.horizon - 4
    right = LinearConstraint(FEATURES, np.array([1.0, 0.0]), 2.0)  # x <= 2 m
    assert cells.forbidden(right).tolist() == [[False, False, True]] * 2
    assert [task.name for task in cells.tasks] == [task.name for task in MAZE.tasks]


def test_what_crosses_a_claimed_wall_or_ends_elsewhere_is_a_warning() -> None:
    found = MAZE.check(demos(WALL))
    assert [f.severity for f in found] == ["warning", "warning"]
    assert "it crosses a claimed wall: (0,1)" in found[0].message
    assert "m deep" in found[0].message
    assert MAZE.check(demos(AROUND)) == []
    (short, _) = MAZE.check(demos(AROUND[:-1]))
    assert short.message == "it does not end in the goal's (0, 2)"


def test_an_unknown_task_and_other_features_are_errors() -> None:
    (found,) = MAZE.check(demos(AROUND, "goal (7,7)"))
    assert (found.severity, found.where) == ("error", "task 'goal (7,7)'")
    other = Demonstrations(demos(AROUND).tasks, (Feature("u", "m"), Feature("v", "m")), {})
    (found,) = MAZE.check(other)
    assert found.message == "u, v; the Ant's maze has x and y"


def test_a_new_task_is_a_goal_and_a_start() -> None:
    task = MAZE.new_task({"goal": (1, 0), "start": (1, 2)})
    assert (task.name, task.starts, task.horizon) == ("goal (1,0)", ((1, 2),), 400)
    with pytest.raises(InvalidInput, match="--goal, --start; 'start' is missing"):
        MAZE.new_task({"goal": (1, 0)})
    with pytest.raises(InvalidInput, match="outside the map"):
        MAZE.new_task({"goal": (5, 0), "start": (1, 2)})


def test_the_restricted_class_has_a_fit_of_its_own() -> None:
    usual, papers = (MAZE.defaults({"player": {"restricted": r}})["player"] for r in (True, False))
    assert usual["tolerance"] == 0.5
    assert "tolerance" not in papers
    assert MAZE.defaults({}) == MAZE.defaults({"player": {"restricted": True}})


def test_columns_say_how_episodes_ended_and_which_were_in_a_wall() -> None:
    names = ["goal (0,2)"]
    row = MAZE.columns(names, [planned(AROUND, WALL)])
    assert row["episodes"] == {"arrived": 2, "fell": 0, "late": 0, "dead_ends": 1}
    (found,) = row["violations"]
    assert (found["task"], found["episode"]) == ("goal (0,2)", 1)
    assert found["steps"] == int(MAZE.truth.violates(WALL).sum())
    assert ends([planned(AROUND, outcome=LATE)])["late"] == 1
    assert in_walls(MAZE.truth, names, [planned(AROUND)]) == []


def test_a_map_without_walls_knows_no_violations() -> None:
    open_floor = AntMaze(read_map("S.0\n"))
    assert not open_floor.truth.known
    assert open_floor.columns(["goal (0,2)"], [planned(WALL)])["violations"] is None


def test_solutions_that_did_not_walk_have_no_columns() -> None:
    pi = Behaviour(np.zeros((1, 2)), np.ones(1), 0.0, 0.0, 1.0, None)
    assert MAZE.columns(["goal (0,2)"], [Solution({}, 0.0, pi, 0)]) == {}


def test_a_solutions_positions_come_apart_by_episode() -> None:
    found = paths(planned(AROUND, WALL))
    np.testing.assert_array_equal(found[0], AROUND)
    np.testing.assert_array_equal(found[1], WALL)


def test_the_floor_is_drawn_from_above() -> None:
    (view,) = MAZE.views()
    assert (view["kind"], view["columns"], view["shape"]) == ("floor", [0, 1], [2, 3])
    assert view["walls"] == [[0, 1, 0], [0, 0, 0]]


def test_a_word_of_the_command_line_names_the_map(tmp_path: Path) -> None:
    file = tmp_path / "small.txt"
    file.write_text("\n".join(MAP))
    table = ant_maze_config(f"ant-maze:{file}", horizon=40, slip=None)
    assert (table["name"], table["horizon"]) == ("ant-maze-small", 40)
    assert tuple(table["map"]) == MAP
    assert ant_maze_config("ant-maze")["name"] == "ant-maze"
    with pytest.raises(InvalidInput, match="horizon must be at least 1"):
        make(Config(MAP, horizon=0))


def test_the_truth_is_the_maps_walls() -> None:
    assert isinstance(MAZE.truth, MazeTruth)
    assert MAZE.truth.walls.tolist() == [[False, True, False], [False, False, False]]
