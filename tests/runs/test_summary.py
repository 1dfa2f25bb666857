"""summary.json: the same keys for every world and outcome; what is not known is null, never 0.

What a whole run's rows hold on every world: test_driver.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringfence.constraints import constraint_files
from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.constraints.table import TableConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour, J, Solution
from ringfence.report.validate import check_summary
from ringfence.runs.config import make_world
from ringfence.runs.driver import assemble
from ringfence.runs.summary import (
    Inequality,
    Reader,
    finite,
    heading,
    left_out,
    nothing_to_learn,
    per_task,
    truth_of,
    versions,
)
from small_worlds import KINDS, config_of, every_world, needs_bullet, of_kinds, small

Finished = Callable[[str], Path]


def summary_of(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "summary.json").read_text()))


def reader_of(kind: str, **tables: Any) -> Reader:
    config, demos = small(kind, **tables)
    pieces = assemble(config, demos)
    truth = truth_of(config.world, pieces.world)
    return Reader(pieces.world, pieces.family, pieces.shown.train, truth)


def keys(value: Any, where: str = "") -> set[str]:
    """Every key of tables in tables; lists are looked into by their first entry."""
    if isinstance(value, dict):
        found = {f"{where}.{key}" for key in value}
        return found.union(*(keys(inner, f"{where}.{key}") for key, inner in value.items()))
    if isinstance(value, list) and value:
        return keys(value[0], f"{where}[]")
    return set()


#: Tables whose keys are the world's: names of packages, parameters, reasons.
OWN = (
    ".versions.", ".parameters.", ".not_here.", ".true_parameters.", ".evidence.", ".views",
    ".budget_curve", ".interval.", ".constraint.error_expert", ".updated.error_expert",
    ".episodes.", ".violations[]",
)  # fmt: skip


@needs_bullet
def test_keys_are_the_same_for_every_world(finished: Finished) -> None:
    of_each = {
        kind: {k for k in keys(summary_of(finished(kind))) if not any(own in k for own in OWN)}
        for kind in KINDS
    }
    common = set.intersection(*of_each.values())
    for kind, own in of_each.items():
        assert own - common == set(), kind


@every_world
def test_what_a_run_writes_is_what_reports_read(kind: str, finished: Finished) -> None:
    check_summary(summary_of(finished(kind)))


@every_world
def test_a_run_without_a_game_has_the_same_keys(kind: str, finished: Finished) -> None:
    config, demos = small(kind)
    pieces = assemble(config, demos)
    reader = reader_of(kind)
    head = heading(config, pieces.world, reader, pieces.shown.names)
    played = summary_of(finished(kind))
    nothing = nothing_to_learn(head, {"env_steps": 7}, ["it learned too little"])
    assert {*nothing, "failed_demonstrations", "sha256"} == set(played)
    assert nothing["outcome"] == "no constraint needed"
    assert nothing["env_steps"] == 7
    assert nothing["doubts"] == ["it learned too little"]
    for name in ("selected", "constraint", "selection", "heldout", "choices", "evidence"):
        assert nothing[name] is None
    assert set(nothing["not_here"]) == {"evidence", "interval", "budget_curve"}
    assert {k: v for k, v in head.items() if k not in ("outcome", "demonstrations_sha256")} == {
        k: played[k] for k in head if k not in ("outcome", "demonstrations_sha256")
    }


@every_world
def test_versions_name_everything_whose_numbers_reach_a_result(kind: str) -> None:
    world = make_world(config_of(kind).world)
    assert versions(world) == {
        name: version(name) for name in ("ringfence", "numpy", *world.packages)
    }


def test_views_show_the_features_that_the_class_uses(finished: Finished) -> None:
    assert [v["kind"] for v in summary_of(finished("grid"))["views"]] == ["map"]
    assert [v["kind"] for v in summary_of(finished("ant-maze"))["views"]] == ["floor"]
    speed = summary_of(finished("ant"))
    names = [f["name"] for f in speed["features"]]
    assert speed["used"] == ["speed"]
    for view in speed["views"]:
        assert [names[k] for k in view["columns"]] == ["speed"]


# Numbers -----------------------------------------------------------------------------------------


def test_a_mean_is_one_of_all_tasks_or_null() -> None:
    assert per_task("lam", [1.0, 3.0]) == {"lam": [1.0, 3.0], "lam_mean": 2.0}
    assert per_task("lam", [1.0, None]) == {"lam": [1.0, None], "lam_mean": None}
    assert per_task("lam", []) == {"lam": [], "lam_mean": None}
    assert [finite(x) for x in (0.0, 2.5, np.inf, -np.inf, np.nan)] == [0.0, 2.5, None, None, None]


def test_episodes_that_the_player_did_not_see_are_counted() -> None:
    six = Behaviour(np.zeros((1, 1)), np.ones(1), 0.0, 0.0, 1.0, 6)
    solution = Solution({}, 0.0, six, 0)
    assert left_out(solution) == 0
    assert left_out(replace(solution, succeeded=replace(six, episodes=4))) == 2
    assert left_out(Solution({}, 0.0, replace(six, episodes=None), 0)) == 0


def test_a_table_is_read_by_its_overlap_with_the_walls() -> None:
    reader = reader_of("grid")
    walls = reader.world.truth.walls  # type: ignore[attr-defined]
    half = walls.copy()
    half[0] = False
    features = reader.world.features
    for cells, overlap in ((walls, 1.0), (half, 2 / 3), (~walls, 0.0), (0 * walls, 0.0)):
        row = reader.constraint(TableConstraint(features, cells.astype(float)))
        assert row["iou"] == pytest.approx(overlap)
        assert row["forbidden"] == int(cells.sum())
    assert reader.error(TableConstraint(features, half.astype(float))) == pytest.approx(1 / 3)
    assert reader.true_parameters is None


def test_an_inequality_on_a_map_has_no_overlap() -> None:
    reader = reader_of("grid", game={"constraint": "col <= ?"}, player={"kind": "payoff"})
    row = reader.constraint(parse_inequality("col <= 1", reader.world.features))
    assert row["parameters"] == {"limit": 1.0}
    assert (row["forbidden"], row["iou"]) == (None, None)


def test_a_network_over_a_floor_is_said_by_its_cells(finished: Finished) -> None:
    run = finished("ant-maze")
    c = constraint_files.load(run / "constraints" / "c_001")
    row = reader_of("ant-maze").constraint(c)
    assert row["description"].endswith(f"({c.describe()})")
    assert row["iou"] == 1.0
    assert row["parameters"] == {}


def test_a_limit_is_compared_with_the_truth_and_with_what_experts_do() -> None:
    reader = reader_of("gym")
    expert = reader.experts[0]
    c = LinearConstraint(reader.world.features, np.ones(1), 0.6)
    assert reader.error(c) == pytest.approx(0.1)
    assert reader.true_parameters == {"limit": 0.5}
    row = reader.constraint(c)
    mean = float(expert.visits @ expert.features[:, 0] / expert.length)
    levels = [v for k, v in row.items() if k.startswith("error_expert_")]
    assert any(v == pytest.approx(abs(0.6 - mean)) for v in levels)


@of_kinds("gym", "ant")
def test_the_truth_is_the_stated_inequality_and_read_only_where_it_is_known(kind: str) -> None:
    reader = reader_of(kind)
    assert isinstance(reader.truth, Inequality)
    (pi,) = reader.experts
    figures = reader.figures("expert", reader.truth.c, [pi])
    assert figures["expert_true_cost"] == figures["expert_cost"] == [J(pi, reader.truth.c)]
    unknown = reader_of(kind, world={"truth": ""}).figures("expert", reader.truth.c, [pi])
    for name in ("expert_true_cost", "expert_true_raw"):
        assert (unknown[name], unknown[f"{name}_mean"]) == ([None], None)
    with pytest.raises(InvalidInput, match="no feature 'height'"):
        truth_of(replace(config_of(kind).world, truth="height <= 1"), reader.world)
