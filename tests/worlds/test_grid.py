"""Grid worlds: the map's letters, the dynamics, the built-in maze, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

from ringfence.errors import InvalidInput
from ringfence.worlds.finite import behaviour, occupancy
from ringfence.worlds.grid import MAZE, maze, random_map, read_map, safe_distances, scaled_maze


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
