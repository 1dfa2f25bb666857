"""Transfer: said before it runs, and safe where only shown cells are used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.runs import config as configs
from ringfence.runs.transfer import from_run, planning_constraint, read_result, transfer
from ringfence.runs.worlds import make_world
from ringfence.solvers.soft import SoftSolver


def test_covered_tasks_succeed_and_uncovered_ones_were_said(finished: Path) -> None:
    c, evidence = read_result(finished)
    world = make_world(configs.read(finished / "config.toml").world)
    said = set()
    for state in np.flatnonzero(~world.truth.walls.ravel()):
        for goal in np.flatnonzero(~world.truth.walls.ravel()):
            pair = [divmod(int(s), world.shape[1]) for s in (goal, state)]
            done = transfer(world, c, evidence, *pair, "avoid", SoftSolver())
            said.add(done.covered)
            assert done.success == done.covered
            if done.solution is not None:
                assert world.truth.true_cost(done.solution.behaviour) == 0
    assert said == {True, False}


def test_avoid_forbids_every_cell_that_was_not_shown(finished: Path) -> None:
    c, evidence = read_result(finished)
    shown = evidence.allowed.reshape(c.values.shape)
    assert np.array_equal(planning_constraint(c, evidence, "avoid").forbidden, ~shown)
    assert planning_constraint(c, evidence, "allow") is c


def test_no_way_is_said_with_what_to_do(finished: Path, tmp_path: Path) -> None:
    # (3,0) was never walked: one can't start there, and one can't go there.
    for goal, start in (((3, 3), (3, 0)), ((3, 0), (0, 0))):
        said: list[str] = []
        with pytest.raises(InfeasibleLimit, match="ask for a demonstration"):
            from_run(finished, goal, start, "avoid", SoftSolver(), 0, tmp_path / "t", said.append)
        assert "UNCOVERED" in said[0]
        assert not (tmp_path / "t").exists()


def test_a_cell_off_the_map_is_refused(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="outside the map"):
        from_run(finished, (3, 9), (0, 0), "avoid", SoftSolver(), 0, tmp_path / "t", print)
