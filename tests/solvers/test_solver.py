"""What every solver is; a function of finite worlds as one."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from ringfence.objects import Problem, Solution, Trajectory
from ringfence.runs.config import kinds, maker, settings_of
from ringfence.solvers.lp import LPSolver
from ringfence.solvers.solver import PICTURED, THINNED, Exact, Solver, pictured, quiet
from ringfence.worlds.grid import maze
from saved_constraints import CELLS, parse_inequality


def problem() -> Problem:
    return Problem(maze().tasks[0], parse_inequality("row <= 99", CELLS), 0.0, None, (0,))


def test_an_exact_solver_is_a_function_and_nothing_more() -> None:
    calls: list[Problem] = []

    def solve(given: Problem) -> Solution:
        calls.append(given)
        return LPSolver()(given)

    solver, asked = Exact(solve), problem()
    found = solver(asked)
    assert calls == [asked]
    assert found.env_steps == 0
    assert solver.key(asked, {"task": "x"}) == {"task": "x"}
    assert solver.free() is solver
    assert solver.episodes(asked, found, 3, (0,)) is None
    assert not solver.learns
    with pytest.raises(ValueError, match="no policy before it solves"):
        solver.watch()


@pytest.mark.parametrize("kind", kinds("solvers"))
def test_every_kind_is_a_solver(kind: str) -> None:
    """Made of its default settings, it has all that the protocol asks for."""
    make = maker("solvers", kind)
    solver = make(settings_of(make)())
    for name, wanted in vars(Solver).items():
        if name.startswith("_") and name != "__call__":
            continue
        assert hasattr(solver, name), name
        if inspect.isfunction(wanted):
            names = list(inspect.signature(wanted).parameters)[1:]
            assert list(inspect.signature(getattr(solver, name)).parameters) == names
    assert solver.at_once >= 1


def test_some_episodes_every_few_steps_are_pictured() -> None:
    phi = np.arange(40.0).reshape(20, 2)
    t = Trajectory(np.zeros((21, 1)), np.zeros((20, 1)), np.zeros(20), phi, False)
    shown = pictured([t] * 20)
    assert len(shown) == PICTURED
    np.testing.assert_array_equal(shown[0], phi[::THINNED])
    assert pictured([]) == ()
    assert quiet({"update": 1}) is None  # type: ignore[func-returns-value]
