"""One policy for all tasks of a game."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ringfence.constraints.linear import parse_inequality
from ringfence.disk import read_json
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, Problem
from ringfence.runs import driver
from ringfence.runs.config import Config
from ringfence.runs.together import joined
from small_worlds import result, two_goals

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def shown() -> tuple[Config, Demonstrations]:
    return two_goals("one")


def played(run: Path, shown: tuple[Config, Demonstrations], workers: int = 1) -> Path:
    driver.create(run, *shown)
    driver.drive(run, workers)
    return run


def test_one_policy_acts_on_each_task(shown: tuple[Config, Demonstrations], tmp_path: Path) -> None:
    run = played(tmp_path / "run", shown)
    for record in driver.replay(run).records:
        one, other = record.solutions
        assert np.array_equal(one.policy["actor/w0"], other.policy["actor/w0"])
        assert one.lam == other.lam
        assert one.behaviour.reward != other.behaviour.reward
    # An iteration trains once: as many steps as one task's training has.
    steps = shown[0].solver.env_steps
    rows = read_json(run / "summary.json")["iterations"]
    assert [row["env_steps"] for row in rows] == [steps] * 2


def test_workers_and_order_change_nothing(
    shown: tuple[Config, Demonstrations], tmp_path: Path
) -> None:
    one, two = (played(tmp_path / str(n), shown, n) for n in (1, 2))
    assert result(one) == result(two)


def test_one_policy_needs_one_limit_for_all() -> None:
    from line_task import Line

    c = parse_inequality("speed <= 0.5", Line().features)
    problems = [
        Problem(replace(Line(), name=n), c, 1.0, None, (0, 1, k)) for k, n in enumerate("ab")
    ]
    whole = joined(problems)
    assert whole.task.name == "a + b"
    assert whole.seed == (0, 1, 2)
    with pytest.raises(InvalidInput, match="one limit"):
        joined([problems[0], replace(problems[1], delta=2.0)])
