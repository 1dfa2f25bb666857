from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from ringfence.constraints.linear import LinearConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint, Feature, Problem
from ringfence.solvers.planner import (
    PENALTY,
    Config,
    Planner,
    best_moves,
    corners,
    distances,
    make,
    route,
)
from ringfence.worlds.ant_maze import AntMaze
from ringfence.worlds.grid import maze, read_map, safe_distances
from ringfence.worlds.sim.floor import ARRIVED, FEATURES

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


# The policy player

MAZE = AntMaze(read_map("S#0\n..1\n"), horizon=400)
FREE = LinearConstraint(FEATURES, np.zeros(2), 0.0)


@dataclass(frozen=True, eq=False)
class Flags:
    """A constraint on (x, y) that costs 1 in the flagged cells."""

    flagged: Bools
    features: tuple[Feature, ...] = FEATURES

    def raw(self, phi: ArrayLike) -> Array:
        cells = MAZE.layout.cell(np.asarray(phi, np.float64))
        return self.flagged[tuple(cells.T)].astype(float)

    def activate(self, raw: Array) -> Array:
        return raw

    def cost(self, phi: ArrayLike) -> Array:
        return self.raw(phi)

    def describe(self) -> str:
        return "flags"


def flags(*lines: str) -> Flags:
    return Flags(np.array([[letter == "#" for letter in line] for line in lines]))


WALL = flags(".#.", "...")


def problem(c: Constraint = FREE, seed: tuple[int, ...] = (3, 1, 0), task: int = 0) -> Problem:
    return Problem(MAZE.tasks[task], c, 0.0, None, seed)


def test_it_walks_straight_where_nothing_is_flagged_and_around_where_it_is() -> None:
    solver = Planner(2)
    free, around = solver(problem()), solver(problem(WALL))
    assert free.policy["outcome"].tolist() == around.policy["outcome"].tolist() == [ARRIVED] * 2
    assert MAZE.truth.true_cost(free.behaviour) > 5
    assert MAZE.truth.true_cost(around.behaviour) == 0
    assert around.policy["flagged"].tolist() == [[0, 1, 0], [0, 0, 0]]
    assert around.policy["crossed"].tolist() == [0, 0]
    assert around.lam == PENALTY
    assert around.env_steps == around.policy["length"].sum() == len(around.policy["xy"])
    assert len(around.pictured) == 2


def test_a_plan_that_has_not_changed_has_the_same_key() -> None:
    """Of another iteration, another constraint, the same moves: it is not walked again."""
    usual = dict.fromkeys(("schema", "world", "solver", "task", "constraint", "delta"), "x")
    solver = Planner(2)
    one = solver.key(problem(seed=(3, 1, 0)), usual)
    assert solver.key(problem(seed=(3, 5, 0)), usual) == one
    same_flags = LinearConstraint(FEATURES, np.zeros(2), 1.0)
    assert solver.key(problem(same_flags, (3, 2, 0)), usual) == one
    assert solver.key(problem(WALL), usual) != one
    assert solver.key(problem(seed=(4, 1, 0)), usual) != one
    assert solver.key(problem(seed=(3,)), usual) != one  # a problem of its own, in no game
    assert "constraint" not in one


def test_there_is_a_way_where_the_goal_can_be_reached_around_flags() -> None:
    solver = Planner()
    assert solver.way(problem(WALL))
    shut = flags(".#.", ".#.")
    assert not solver.way(problem(shut))
    goal = flags("..#", "...")
    assert not solver.way(problem(goal))


def test_the_settings_say_how_many_episodes() -> None:
    assert make(Config(episodes=3)).episodes_each == 3
    with pytest.raises(InvalidInput, match="episodes must be at least 1"):
        Config(episodes=0)


def test_other_tasks_are_refused() -> None:
    grid = Problem(maze().tasks[0], FREE, 0.0, None, (0,))
    with pytest.raises(InvalidInput, match="not one of a maze's floor"):
        Planner()(grid)


def test_it_has_nothing_to_watch_or_to_sample() -> None:
    solver = Planner()
    assert solver.free() is solver
    assert not solver.learns
    with pytest.raises(ValueError, match="no policy before it plans"):
        solver.watch()
