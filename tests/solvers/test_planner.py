from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ringfence.solvers.planner import PENALTY, best_moves, corners, distances, route
from ringfence.worlds.grid import maze, safe_distances

Bools = NDArray[np.bool_]


def bitmap(seed: int, share: float = 0.3) -> Bools:
    return np.random.default_rng(seed).random((6, 7)) < share


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_values_satisfy_bellmans_equation(seed: int) -> None:
    flagged, goal = bitmap(seed), (2, 3)
    best = distances(flagged, goal)
    for cell in np.ndindex(flagged.shape):
        if cell == goal:
            assert best[cell] == 0
            continue
        options = []
        for step in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            to = (cell[0] + step[0], cell[1] + step[1])
            if 0 <= to[0] < 6 and 0 <= to[1] < 7:
                options.append(1 + PENALTY * flagged[to] + best[to])
        assert best[cell] == min(options)


def test_the_way_around_is_the_shortest_safe_one() -> None:
    walls = maze().truth.walls
    for goal in maze().goals:
        best = distances(walls, goal)
        for start in maze().starts:
            assert best[start] == safe_distances(walls, start)[goal]


@given(st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_routes_are_best_and_end_at_the_goal(seed: int) -> None:
    flagged, goal, start = bitmap(seed), (5, 6), (0, 0)
    moves = best_moves(flagged, goal)
    cells = route(moves, start, np.random.default_rng(seed))
    assert tuple(cells[0]) == start
    assert tuple(cells[-1]) == goal
    assert (np.abs(np.diff(cells, axis=0)).sum(axis=1) == 1).all()
    paid = (1 + PENALTY * flagged[tuple(cells[1:].T)]).sum()
    assert paid == distances(flagged, goal)[start]


def test_ties_are_broken_both_ways_by_seed() -> None:
    moves = best_moves(np.zeros((6, 6), np.bool_), (5, 5))
    routes = [route(moves, (0, 0), np.random.default_rng(n)) for n in range(40)]
    assert len({r.tobytes() for r in routes}) > 20
    again = route(moves, (0, 0), np.random.default_rng(7))
    np.testing.assert_array_equal(again, routes[7])


def test_where_no_way_is_left_the_fewest_flagged_cells_are_crossed() -> None:
    flagged = np.zeros((3, 5), np.bool_)
    flagged[:, 2:4] = True
    flagged[1, 3] = False
    cells = route(best_moves(flagged, (0, 4)), (0, 0), np.random.default_rng(0))
    assert flagged[tuple(cells.T)].sum() == 1


def test_corners_are_where_a_route_turns() -> None:
    cells = np.array([[0, 0], [1, 0], [2, 0], [2, 1], [2, 2], [1, 2]])
    assert corners(cells).tolist() == [[2, 0], [2, 2]]
    assert corners(cells[:3]).tolist() == []
