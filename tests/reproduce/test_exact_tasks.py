from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from ringfence.analysis import evidence as evidences
from ringfence.constraints.table import TableConstraint
from ringfence.errors import InfeasibleLimit
from ringfence.objects import Problem
from ringfence.reproduce import unseen
from ringfence.reproduce.exact_tasks import CERTAIN, Attempts, map_text, overlap, read_map_text
from ringfence.solvers.soft import SoftSolver
from ringfence.worlds.finite import occupancy, whole_policy
from ringfence.worlds.grid import maze


def test_an_attempt_is_what_the_solver_does() -> None:
    """Planning once for all starts must not change what comes of each."""
    case = unseen.make_case("random-1")
    world = replace(case.world, goals=case.world.goals[:3])
    attempts = Attempts(world, (*world.starts, *case.new_starts))
    outcomes = set()
    for K, evidence, forbidden, _ in unseen.constraints(world):
        unseen_pairs = replace(case, world=world, new_goals=case.new_goals[:4]).unseen(K)
        pairs = [pair for of in unseen_pairs.values() for pair in of]
        for method, (goal, start) in product(("multi-task", "unvisited"), pairs):
            c = TableConstraint(world.features, forbidden[method].astype(float))
            task = world.task(goal, (start,))
            attempt = attempts((goal, start), c.forbidden)
            begin = int(task.mdp.start.argmax())
            covered = evidences.covered(evidence, task, begin)
            assert attempts.covered(evidence, (goal, start)) == covered
            try:
                solution = SoftSolver()(Problem(task, c, 0.0, None, (0,)))
            except InfeasibleLimit:
                assert attempt is None
                continue
            rho = occupancy(task.mdp, whole_policy(task.mdp, solution.policy))
            reached = rho[-1, goal[0] * world.shape[1] + goal[1]].sum() >= CERTAIN
            assert (attempt is not None) == reached
            if attempt is not None:
                cost = world.truth.true_cost(solution.behaviour)
                assert attempt.true_cost == pytest.approx(cost, abs=1e-8)
                assert cost > 0 or attempt.more_moves >= 0
            outcomes.add(None if attempt is None else attempt.true_cost > 0)
    assert outcomes >= {True, False}


def test_the_truth_shuts_out_no_task_and_a_full_map_all() -> None:
    world = maze()
    attempts = Attempts(world, world.starts)
    assert attempts.impossible(world.truth.walls) == 0
    assert attempts.impossible(np.ones(world.shape, np.bool_)) == 10


def test_a_map_survives_its_text() -> None:
    walls = maze().truth.walls
    assert (read_map_text(map_text(walls)) == walls).all()
    assert overlap(walls, walls) == 1.0
    assert overlap(~walls, walls) == 0.0
