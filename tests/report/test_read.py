"""What is read is what the files say; what they lack is None."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from written_runs import PLANE, save_constraint

from ringfence.constraints import constraint_files
from ringfence.constraints.linear import parse_inequality
from ringfence.errors import InvalidInput
from ringfence.report import read
from ringfence.report.read import read_run, true_parameters


def test_a_map_s_run_is_that_of_its_files(finished: Path) -> None:
    run = read_run(finished)
    assert run.cells is not None
    assert run.walls is not None
    assert run.walls.sum() == 3
    for goal, group in zip(run.cells.goals, run.experts, strict=True):
        assert all(tuple(run.cells.path(phi)[-1]) == goal for phi in group)
    for n, learned in enumerate(run.maps):
        c = constraint_files.load(finished / f"constraints/c_{n:03d}")
        assert (learned.cost == c.values).all()  # type: ignore[attr-defined]
    assert run.best["i"] == run.selected
    assert not run.has_policy


def test_a_plane_s_run_is_that_of_its_files(speed: Path) -> None:
    run = read_run(speed)
    assert run.cells is None
    assert run.maps == ()
    assert [view.kind for view in run.views] == ["line", "plane"]  # what the constraint is on first
    assert run.truth is not None
    assert run.truth.describe() == "speed <= 0.75 m/s"
    assert [c.describe() for c in run.learned] == [
        row["constraint"]["description"] for row in run.rows
    ]
    learner = run.learners[0][1]
    assert learner is not None
    assert len(learner.episodes) == 3
    assert learner.behaviour.visits.sum() == pytest.approx(201)
    assert (run.seconds, run.has_policy) == (300.0, True)


def test_a_floor_s_walks_are_one_from_each_start(floor: Path) -> None:
    learner = read_run(floor).learners[0][0]
    assert learner is not None
    assert [walk.shape for walk in learner.walks] == [(60, 2), (60, 2)]


def test_a_name_in_the_ledger_can_not_lead_elsewhere(speed: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(speed, tmp_path / "copy"))
    path = copy / "summary.json"
    summary = json.loads(path.read_text())
    summary["iterations"][0]["ledger"] = ["../ledger/solve1x0", None]
    path.write_text(json.dumps(summary))
    assert read_run(copy).learners[0] == (None, None)


def test_demonstrations_of_every_task_must_be_there(speed: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(speed, tmp_path / "copy"))
    path = copy / "summary.json"
    path.write_text(path.read_text().replace('"tasks": ["a", "b"]', '"tasks": ["a", "c"]'))
    with pytest.raises(InvalidInput, match="no demonstrations of task 'c'"):
        read_run(copy)


def test_a_truth_that_is_no_inequality_is_not_drawn(speed: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(speed, tmp_path / "copy"))
    path = copy / "summary.json"
    path.write_text(path.read_text().replace("speed <= 0.75", "inside the disc"))
    assert read_run(copy).truth is None


def test_constraints_of_another_run_are_refused(finished: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    shutil.rmtree(copy / "constraints/c_000")
    save_constraint(copy / "constraints/c_000", parse_inequality("speed <= 1", PLANE))
    with pytest.raises(InvalidInput, match="features differ"):
        read_run(copy)


def test_the_truth_is_beside_parameters_that_have_its_scale_only(speed: Path) -> None:
    summary = dict(read_run(speed).summary)
    assert true_parameters(summary) == {"limit": 0.75}
    free = {"speed": 1.0, "limit": 0.75}
    for text in ("linear", "? speed <= ?"):
        assert true_parameters({**summary, "class": text, "true_parameters": free}) == {}
    assert true_parameters({**summary, "true_parameters": None}) == {}


def test_report_reads_files_and_builds_nothing() -> None:
    allowed = (
        *("objects", "errors", "disk", "constraints", "demos.dataset", "demos"),
        *("analysis.evidence", "analysis", "worlds.sim.floor", "report"),
    )
    for path in Path(read.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ringfence"):
                name = (node.module or "").removeprefix("ringfence").lstrip(".")
                known = any(name == a or name.startswith(f"{a}.") for a in allowed)
                assert known, f"{path.name} imports {node.module}"


def test_kept_episodes_are_in_order(speed: Path) -> None:
    first, second, *_ = read.read_episodes(speed / "ledger/solve1x0", {})
    assert np.ptp(first[:, 0]) > 0
    np.testing.assert_allclose(second[:, 0] - first[:, 0], 1, atol=1e-6)
