from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence.constraints.linear import LinearConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import maze, read_map
from ringfence.worlds.sim.floor import (
    CELL,
    FEATURES,
    LATTICE,
    NOISE,
    Layout,
    cell_means,
    flag,
    reward,
)


def test_the_papers_coordinates() -> None:
    """x = -18 + 4 col, y = 18 - 4 row."""
    layout = Layout((10, 10))
    cells = np.argwhere(np.ones((10, 10)))
    xy = layout.centre(cells)
    np.testing.assert_allclose(xy[:, 0], -18 + 4 * cells[:, 1])
    np.testing.assert_allclose(xy[:, 1], 18 - 4 * cells[:, 0])


@given(st.integers(1, 12), st.integers(1, 12), st.floats(-0.49, 0.49), st.floats(-0.49, 0.49))
def test_a_point_is_in_the_cell_it_was_placed_in(
    rows: int, cols: int, dx: float, dy: float
) -> None:
    layout = Layout((rows, cols))
    cells = np.argwhere(np.ones((rows, cols)))
    points = layout.centre(cells) + CELL * np.array([dx, dy])
    np.testing.assert_array_equal(layout.cell(points), cells)
    assert layout.inside(cells).all()


def test_outside_is_outside() -> None:
    layout = Layout((10, 10))
    outside = np.array([[-20.1, 0.0], [20.1, 0.0], [0.0, 20.1], [0.0, -20.1]])
    assert not layout.inside(layout.cell(outside)).any()


def test_steps_in_a_wall_or_outside_are_counted() -> None:
    truth = AntMaze(maze()).truth
    free, wall, outside = [-18.0, 18.0], [-10.0, 18.0], [0.0, 30.0]
    pi = Behaviour(np.array([free, wall, outside]), np.array([5.0, 2.0, 1.0]), 0, 0, 8, 1)
    assert truth.true_cost(pi) == 3.0
    np.testing.assert_array_equal(truth.violates(pi.features), [False, True, True])


def test_a_path_as_cells_counts_each_stay_once() -> None:
    xy = np.array([[-18.0, 18.0], [-17.0, 18.0], [-15.0, 18.0], [-14.0, 18.0], [-18.0, 18.0]])
    assert Layout((10, 10)).cell_path(xy).tolist() == [[0, 0], [0, 1], [0, 0]]


def test_start_and_goal_are_off_by_at_most_a_quarter_of_a_cell() -> None:
    task = AntMaze(maze()).tasks[3]
    places = [task.places((9, 0), np.random.default_rng(n)) for n in range(200)]
    off = np.array([[a - [-18, -18], b - [18, 6]] for a, b in places])
    assert np.abs(off).max() <= NOISE * CELL
    assert np.abs(off).max() > 0.9 * NOISE * CELL


def test_reward_falls_with_distance() -> None:
    goal = np.zeros((3, 2))
    np.testing.assert_allclose(
        reward(np.array([[0, 0], [0, 1], [3, 4]]), goal), np.exp([0, -1, -5])
    )


def test_a_task_outside_the_map_is_refused() -> None:
    world = AntMaze(maze())
    with pytest.raises(InvalidInput, match=r"goal \(10, 0\): outside the map of 10 x 10"):
        world.task((10, 0))
    with pytest.raises(InvalidInput, match=r"start \(0, -1\)"):
        world.task((0, 9), ((0, -1),))


def test_a_map_that_shuts_a_goal_in_is_refused() -> None:
    with pytest.raises(InvalidInput, match="can't be reached"):
        AntMaze(read_map("S.#0\n..##"))


def test_layout_goal_and_reward_are_the_published_benchmarks() -> None:
    robotics = pytest.importorskip("gymnasium_robotics.envs.maze.ant_maze_v5")
    env = robotics.AntMazeEnv(
        maze_map=[[0] * 10 for _ in range(10)], reward_type="dense", continuing_task=False
    )
    layout = Layout((10, 10))
    for cell in np.argwhere(np.ones((10, 10))):
        np.testing.assert_allclose(env.maze.cell_rowcol_to_xy(cell), layout.centre(cell))
        np.testing.assert_array_equal(
            env.maze.cell_xy_to_rowcol(layout.centre(cell)), layout.cell(layout.centre(cell))
        )
    env.reset(seed=0, options={"goal_cell": np.array([3, 9]), "reset_cell": np.array([9, 0])})
    assert np.abs(env.goal - layout.centre((3, 9))).max() <= NOISE * CELL
    here = np.array([17.0, 5.0])
    assert env.compute_reward(here, env.goal, {}) == pytest.approx(float(reward(here, env.goal)))
    near, far = env.goal + np.array([[0.44, 0.0], [0.51, 0.0]])
    # Its own goal radius is 0.45 m in code and 0.5 m in its documentation; the paper's is 0.5.
    assert env.compute_terminated(near, env.goal, {})
    assert not env.compute_terminated(far, env.goal, {})
    env.close()


def test_cells_are_averaged_over_points_of_the_cell() -> None:
    """x <= 0 on a 1 x 2 map: the left cell costs nothing, the right one E log(1 + U(0, 4))."""
    c = LinearConstraint(FEATURES, np.array([1.0, 0.0]), 0.0)
    means = cell_means(c, Layout((1, 2)))
    exact = (5 * np.log(5) - 4) / 4
    np.testing.assert_allclose(means, [[0.0, exact]], atol=1e-3)
    np.testing.assert_array_equal(flag(c, Layout((1, 2))), [[False, True]])


def test_a_finer_lattice_changes_nothing() -> None:
    """On a constraint that turns in the middle of cells: 40 times the points, the same flags."""
    layout = Layout((10, 10))
    c = LinearConstraint(FEATURES, np.array([0.37, 0.81]), 1.3)
    coarse, fine = cell_means(c, layout), cell_means(c, layout, 6 * LATTICE)
    assert np.abs(coarse - fine).max() < 2e-3
    np.testing.assert_array_equal(coarse > 0.5, fine > 0.5)
