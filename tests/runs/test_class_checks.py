"""What demonstrations say to the class of constraints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ringfence.objects import Demonstrations, Finding, TaskDemos, Trajectory
from ringfence.runs.class_checks import MOST, of_the_class, one_unknown, stated_budget, warnings
from ringfence.runs.driver import assemble
from small_worlds import config_of, demos_of


def said(of: Demonstrations, **changes: Any) -> list[Finding]:
    config = config_of("gym", **changes)
    pieces = assemble(config, of)
    return of_the_class(config, pieces.family, pieces.shown, of)


def costing(cost: Any) -> Demonstrations:
    given = demos_of("gym")
    name = given.tasks[0].task
    return replace(given, provenance={"true_cost": {name: cost}, "delta": 20.0})


def test_a_recorded_cost_below_the_budget_is_told() -> None:
    last = said(costing(8.8))[-1]
    assert last.severity == "warning"
    assert "they use 8.8 of a budget of 20 per episode (44%)" in last.message
    for cost in (19.0, "unknown"):
        assert "of a budget of 20 per episode (" not in said(costing(cost))[-1].message


@pytest.mark.parametrize(
    ("player", "provenance", "budget"),
    [
        ({"kind": "payoff", "expert_budget": 3.0}, {"delta": 20.0}, 3.0),
        ({"kind": "regression"}, {"delta": 20.0}, 20.0),
        ({"kind": "regression"}, {}, None),
    ],
)
def test_a_budget_is_as_stated_or_as_recorded_or_the_papers(
    player: dict[str, Any], provenance: dict[str, Any], budget: float | None
) -> None:
    config = config_of("gym", player=player)
    given = replace(demos_of("gym"), provenance=provenance)
    shown = assemble(config, given).shown
    usual = 0.02 * (shown.tasks[0].horizon or 0)
    assert stated_budget(config, shown, given) == (usual if budget is None else budget)


def test_each_of_several_limits_is_checked() -> None:
    changes = {
        "game": {"constraint": "speed <= ? and speed >= ?"},
        "player": {"kind": "payoff", "expert_budget": 1.0},
    }
    found = [f for f in said(demos_of("gym"), **changes) if f.where.startswith("saturation")]
    assert len(found) == 2


def test_a_class_with_two_unknowns_in_one_limit_has_none_to_check() -> None:
    config = config_of("ant", game={"constraint": "? x + ? y <= ?"})
    assert one_unknown(assemble(config, demos_of("ant")).family) == []


def test_many_warnings_are_counted_and_the_first_listed() -> None:
    """Ten copies of one episode, of which most go beyond the others."""
    given, config = demos_of("gym"), config_of("gym")
    (task,) = given.tasks
    rng = np.random.default_rng(0)

    def drive(pace: float) -> Trajectory:
        t = task.train[0]
        return replace(t, features=pace + 0.01 * rng.normal(size=t.features.shape))

    far = tuple(drive(1.0 + 3.0 * (n % 3 == 0)) for n in range(24))
    many = replace(given, tasks=(TaskDemos(task.task, far, task.heldout),))
    pieces = assemble(config, many)
    found = warnings(config, pieces.family, pieces.shown, many)
    assert len(found) == MOST + 1
    assert "more warnings about the demonstrations" in found[-1]
    few = replace(many, tasks=(TaskDemos(task.task, far[1:3], task.heldout),))
    assert len(warnings(config, pieces.family, assemble(config, few).shown, few)) <= MOST
