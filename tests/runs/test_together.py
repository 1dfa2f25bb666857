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
from ringfence.reproduce import experiment, point_demonstrators
from ringfence.reproduce.demonstrate import configuration
from ringfence.reproduce.solves import constraint_of
from ringfence.runs import driver
from ringfence.runs.config import Config, make_world
from ringfence.runs.together import joined
from small_worlds import result

pytest.importorskip("jax")


@pytest.fixture(scope="module")
def shown() -> tuple[Config, Demonstrations]:
    """A small game on two goals of a point, for one policy."""
    file = experiment.read("multitask")
    variant = file.variants["table-2"]
    config = configuration(file, variant, 0)
    small = replace(
        config.solver, env_steps=512, copies=8, steps=32, minibatches=2, passes=1, hidden=(16,),
        evaluation_episodes=4,
    )  # fmt: skip
    game = replace(config.game, iterations=2, extra=0, policies="one")
    opening = replace(config.opening, steps=20, probe=False)  # so short a training earns nothing
    config = replace(config, solver=small, game=game, opening=opening)
    world = make_world(config.world)
    truth = constraint_of(variant.get("training")["constraint"], variant.get("training"), world)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(point_demonstrators, "EPISODES", 6)
        return config, point_demonstrators.demonstrations(world, truth, 0, 0.3)


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
