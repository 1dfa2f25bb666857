"""Grid worlds: the map's letters, the dynamics, the built-in maze, and refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ringfence.constraints.table import TableConstraint
from ringfence.errors import InvalidInput
from ringfence.worlds.finite import behaviour, occupancy
from ringfence.worlds.grid import (
    MAZE,
    make,
    map_config,
    maze,
    random_map,
    read_map,
    safe_distances,
    scaled_maze,
)


def test_maze_is_the_papers() -> None:
    world = maze()
    walls = np.zeros((10, 10), dtype=bool)
    walls[0:6, 2:5] = True
    walls[4:10, 6:9] = True
    assert np.array_equal(world.truth.walls, walls)
    assert world.starts == ((0, 0), (9, 0))
    assert world.goals == tuple((k, 9) for k in range(10))
    assert world.horizon == 30
    longest = max(safe_distances(walls, s)[g] for s in world.starts for g in world.goals)
    assert longest == 24


def test_tasks_hold_no_truth() -> None:
    """A task of the maze and one of the same maze without walls are the same arrays."""
    bare = read_map(MAZE.replace("#", "."), horizon=30)
    for task, other in zip(maze().tasks, bare.tasks, strict=True):
        assert np.array_equal(task.mdp.transition.toarray(), other.mdp.transition.toarray())
        assert np.array_equal(task.mdp.reward, other.mdp.reward)
        assert np.array_equal(task.phi, other.phi)
    assert not bare.truth.known


def test_moves_stay_on_the_map_and_the_goal_absorbs() -> None:
    task = read_map("S.\n.0").tasks[0]
    P = task.mdp.transition.toarray().reshape(4, 5, 4)
    assert P[0].argmax(axis=1).tolist() == [0, 2, 0, 1, 0]  # up, down, left, right, stay
    assert (P[3, :, 3] == 1).all()
    assert task.mdp.reward[:, 0].tolist() == [0, 0, 0, 1]


def test_goal_pays_from_arrival_to_the_horizon() -> None:
    task = read_map("S.0", horizon=5).tasks[0]
    pi = np.zeros((5, 3, 5))
    pi[:, :, 3] = 1  # always right: two moves, then three steps at the goal
    seen = behaviour(task, occupancy(task.mdp, pi))
    assert seen.reward == 3
    assert dict(zip(seen.features[:, 1], seen.visits, strict=True)) == {0: 1, 1: 1, 2: 3}


def test_exp_distance_reward_is_one_at_the_goal() -> None:
    task = read_map("S..0", reward="exp-distance").tasks[0]
    assert np.allclose(task.mdp.reward[:, 0], np.exp([-3, -2, -1, 0]))


def test_slip_replaces_a_move_by_a_random_one() -> None:
    task = read_map("S..\n...\n..0", slip=0.5).tasks[0]
    row = task.mdp.transition.toarray()[4 * 5 + 3]  # from the middle, to the right
    assert row[5] == pytest.approx(0.5 + 0.1)
    assert row[[1, 3, 4, 7]] == pytest.approx([0.1] * 4)


def test_scaled_maze_keeps_the_layout() -> None:
    assert np.array_equal(scaled_maze(10).truth.walls, maze().truth.walls)
    world = scaled_maze(20)
    assert np.array_equal(world.truth.walls, np.kron(maze().truth.walls, np.ones((2, 2))) > 0)
    assert len(world.tasks) == 10
    assert world.starts == ((0, 0), (19, 0))
    assert all(scaled_maze(side).shape == (side, side) for side in (12, 13, 17))


@pytest.mark.parametrize("seed", range(20))
def test_random_map_connects_all_its_free_cells(seed: int) -> None:
    world = read_map(random_map(seed))
    reached = safe_distances(world.truth.walls, world.starts[0]) >= 0
    assert np.array_equal(reached, ~world.truth.walls)
    assert (len(world.starts), len(world.goals)) == (2, 4)
    assert random_map(seed) == random_map(seed) != random_map(seed + 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("S.\n...0", ["line 2", "4 cells", "line 1 has 2"]),
        ("..\n.0", ["no start", "'S'"]),
        ("S.\n..", ["no goal", "digit"]),
        ("S.\n?0", ["line 2", "unknown letter '?'"]),
        ("S#0", ["line 1", "goal '0' at (0, 2)", "can't be reached", "(0, 0)"]),
        ("S11", ["line 1", "goal '1' stands in 2 cells"]),
        ("", ["line 1", "empty"]),
    ],
)
def test_bad_map_is_refused_with_line_and_cause(text: str, words: list[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        read_map(text)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"horizon": 2}, "at least 3"),
        ({"horizon": 0}, "horizon"),
        ({"slip": 1.0}, "slip"),
        ({"slip": float("nan")}, "slip"),
        ({"reward": "gold"}, "reward"),
    ],
)
def test_bad_setting_is_refused(settings: dict, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        read_map("S.0", **settings)


# As a kind of world


def test_the_settings_make_the_map_again() -> None:
    for world in (maze(), read_map("S.#0\n....\n1..S", horizon=9, slip=0.1, reward="exp-distance")):
        assert world.settings is not None
        again = make(world.settings)
        assert (again.starts, again.goals, again.name) == (world.starts, world.goals, world.name)
        dynamics = ("horizon", "slip", "reward")
        assert all(getattr(again, name) == getattr(world, name) for name in dynamics)
        np.testing.assert_array_equal(again.truth.walls, world.truth.walls)
    backwards = replace(maze(), goals=maze().goals[::-1])
    assert backwards.settings is not None
    assert make(backwards.settings).goals == backwards.goals


def test_goals_that_no_map_can_order_have_no_settings() -> None:
    eleven = read_map("S\n" + "G\n" * 11)
    assert replace(eleven, goals=eleven.goals[::-1]).settings is None
    assert eleven.settings is not None


def test_cells_are_the_states_in_reading_order() -> None:
    world = read_map("S.#0\n....", horizon=9)
    cells = world.cells
    assert cells.index(np.array([[0.0, 3.0], [1.0, 0.0]])).tolist() == [3, 4]
    c = TableConstraint(world.features, np.eye(2, 4))
    np.testing.assert_array_equal(cells.forbidden(c), np.eye(2, 4, dtype=bool))
    np.testing.assert_array_equal(cells.walls, world.truth.walls)
    assert read_map("S.0").cells.walls is None
    assert cells.towards is not None
    task = cells.towards((1, 1), [(1, 3)])
    assert (task.name, int(task.mdp.start.argmax())) == ("goal (1,1)", 7)
    assert cells.towards((1, 1), None).mdp.start[0] == 1


def test_a_new_task_is_a_goal_and_a_start_on_the_map() -> None:
    world = read_map("S.#0\n....", horizon=9)
    task = world.new_task({"goal": [1, 1], "start": [1, 3]})
    assert (task.name, int(task.mdp.start.argmax())) == ("goal (1,1)", 7)
    with pytest.raises(InvalidInput, match=r"goal \(2, 0\): outside the map of 2 x 4 cells"):
        world.new_task({"goal": (2, 0), "start": (0, 0)})
    with pytest.raises(InvalidInput, match="'goal' is missing"):
        world.new_task({"start": (0, 0)})


def test_a_map_is_drawn_with_its_places() -> None:
    assert read_map("S.#0\n....", horizon=9).views() == [
        {
            "kind": "map",
            "columns": [0, 1],
            "shape": [2, 4],
            "starts": [[0, 0]],
            "goals": [[0, 3]],
            "walls": [[0, 0, 1, 0], [0, 0, 0, 0]],
        }
    ]
    assert read_map("S.0").views()[0]["walls"] is None


def test_a_word_names_the_maze_or_a_file(tmp_path: Path) -> None:
    assert map_config("maze")["horizon"] == 30
    file = tmp_path / "yard.txt"
    file.write_text("S.#0\n....\n")
    found = map_config(str(file), slip=0.1, horizon=None)
    assert (found["name"], found["map"], found["slip"]) == ("yard", ["S.#0", "...."], 0.1)
    assert found["horizon"] == read_map("S.#0\n....\n", slip=0.1).horizon
    with pytest.raises(InvalidInput, match="no such map file; give 'maze'"):
        map_config("mase")
    file.write_bytes(b"S.\xff0")
    with pytest.raises(InvalidInput, match="not a plain text map"):
        map_config(str(file))
    file.write_text("S..")
    with pytest.raises(InvalidInput, match=r"yard.txt: "):
        map_config(str(file))
