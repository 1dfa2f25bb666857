"""Who breaks the limit of the constraint that is handed back is trained on, and only they."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ringfence.constraints.table import TableConstraint
from ringfence.disk import read_json
from ringfence.game import Record, Rules
from ringfence.objects import (
    STEPS_BEYOND,
    Behaviour,
    Demonstrations,
    Feature,
    Problem,
    Solution,
    excess,
)
from ringfence.runs import driver, settling
from ringfence.runs.config import Config
from ringfence.runs.settling import settled
from ringfence.solvers.ppo_settings import STIRRED
from small_worlds import result, two_goals
from toy_tasks import ROAD

C = TableConstraint((Feature("cell", ""),), np.array([0.0, 1.0]))
QUIET = {"actor/log_std": np.full(1, -4.0, np.float32)}


def behaviour(beyond: float, steps: float = 10.0) -> Behaviour:
    """Of so many steps, this many in the forbidden cell."""
    visits = np.array([steps - beyond, beyond])
    return Behaviour(np.array([[0.0], [1.0]]), visits, 1.0, 0.0, steps, None)


def solution(beyond: float) -> Solution:
    return Solution(QUIET, 1.0, behaviour(beyond), 100)


def record(*beyond: float, delta: float = 0.0) -> Record:
    solutions = tuple(map(solution, beyond))
    return Record(3, C, (delta,) * len(beyond), solutions, 0.0, C)


def play(last: Record, results: list[float], together: bool = False, budget: float = 0.0):
    """Iteration 6, and the problems that were solved for it."""
    asked: list[Problem] = []

    def solve(problems):
        asked.extend(problems)
        return [solution(beyond) for beyond in results]

    K = len(last.solutions)
    rules = Rules(budget=budget)
    found = settled(last, 6, [ROAD] * K, [behaviour(0.0)] * K, rules, 7, solve, together)
    return found, asked


def test_who_keeps_the_limit_is_left_alone() -> None:
    found, asked = play(record(0.0, 0.0), [])
    assert found is None
    assert not asked


def test_only_who_breaks_it_is_trained_on_and_begins_with_noise() -> None:
    last = record(0.0, 2.0)
    found, asked = play(last, [0.5])
    assert found is not None
    assert [p.seed for p in asked] == [(7, 6, 1)]
    assert asked[0].start is not None
    assert np.exp(asked[0].start["actor/log_std"]) == pytest.approx(STIRRED)
    assert (found.i, found.c) == (6, C)
    assert found.solutions[0] is last.solutions[0]
    assert found.learners[1].visits[1] == 0.5


def test_who_breaks_it_more_afterwards_is_not_taken() -> None:
    last = record(2.0, 1.0)
    found, _ = play(last, [1.0, 3.0])
    assert found is not None
    assert [pi.visits[1] for pi in found.learners] == [1.0, 1.0]


def test_one_policy_for_all_tasks_is_trained_on_for_all() -> None:
    found, asked = play(record(0.0, 2.0), [0.1, 1.0], together=True)
    assert found is not None
    assert len(asked) == 2
    assert [pi.visits[1] for pi in found.learners] == [0.1, 1.0]


def test_a_limit_of_0_is_broken_by_steps_and_others_by_their_cost() -> None:
    assert excess(behaviour(10 * STEPS_BEYOND), C, 0.0) == pytest.approx(0.0)
    assert excess(behaviour(0.2), C, 0.0) > 0
    assert excess(behaviour(2.0), C, 4.0) == pytest.approx(-0.5)
    assert play(record(2.0, delta=4.0), [], budget=4.0) == (None, [])


# A whole run -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small() -> tuple[Config, Demonstrations]:
    pytest.importorskip("jax")
    return two_goals("each")


def test_a_run_has_one_more_iteration_under_the_constraint_that_is_handed_back(
    small: tuple[Config, Demonstrations], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "excess", lambda pi, c, delta: -pi.reward)  # > 0, less is better
    runs = [tmp_path / name for name in ("one", "again")]
    for run in runs:
        driver.create(run, *small)
        driver.drive(run)
    summary = read_json(runs[0] / "summary.json")
    *_, before, last = summary["iterations"]
    assert len(summary["iterations"]) == 3
    assert last["env_steps"] in (2 * before["env_steps"], 1.5 * before["env_steps"])
    assert last["constraint"] == summary["iterations"][summary["selected"] - 1]["constraint"]
    assert result(runs[0]) == result(runs[1])
    # Out of the ledger it is the same once more.
    (runs[0] / "summary.json").unlink()
    driver.drive(runs[0])
    assert result(runs[0]) == result(runs[1])
