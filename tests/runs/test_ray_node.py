"""A node's side, without Ray: the answer to a job's files, and what is told meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringfence.constraints.linear import LinearConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Problem
from ringfence.runs import problem as problems
from ringfence.runs import ray_node, solving
from ringfence.runs.backend import Job, unpack
from ringfence.runs.config import make_solver, make_world
from ringfence.runs.ledger import to_files
from ringfence.runs.ray_node import POST_EVERY, Post, look, require_versions, solved, versions
from small_worlds import config_of, result


class Letters:
    """What was sent to the driver."""

    def __init__(self) -> None:
        self.sent: list[dict[str, bytes]] = []

    def __call__(self, letter: bytes, wait: bool) -> None:
        self.sent.append(unpack(letter))

    @property
    def heads(self) -> list[dict[str, Any]]:
        return [json.loads(files["head.json"]) for files in self.sent]

    @property
    def records(self) -> list[dict[str, Any]]:
        return [record for head in self.heads for record in head["records"]]

    @property
    def checkpoints(self) -> list[dict[str, bytes]]:
        found = [{n: c for n, c in files.items() if n != "head.json"} for files in self.sent]
        return [files for files in found if files]


def cart_problem() -> tuple[Any, Problem]:
    config = config_of("gym")
    task = make_world(config.world).tasks[0]
    return config, Problem(task, LinearConstraint(task.features, np.ones(1), 0.3), 5.0, None, (1,))


def test_a_solve_there_is_the_solve_here_and_goes_on_from_a_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ray_node, "POST_EVERY", 0.0)
    config, problem = cart_problem()
    job = Job(config.world, config.solver, "solve", problem, {"a": 1}, None, print)
    files, letters = {**job.common_files(), **job.own_files()}, Letters()
    answer = solved(files, 7, "there", letters)
    assert answer == to_files({"a": 1}, make_solver(config.solver)(problem))
    assert [r.get("event", r.get("update")) for r in letters.records] == ["began", 1, 2]
    assert {r["where"] for r in letters.records} == {"there"}
    assert {head["number"] for head in letters.heads} == {7}
    assert letters.heads[-1]["seconds"] > 0
    first, second = letters.checkpoints  # every update has one, see small_worlds
    names = ("sha256.json", "state.json", "state.safetensors")
    assert sorted(first) == [f"checkpoint/{name}" for name in names]
    again = Letters()
    assert solved({**files, **first}, 8, "elsewhere", again) == answer
    assert again.checkpoints == [second]  # the first is known already


def test_a_single_problem_comes_back_as_its_folder(tmp_path: Path) -> None:
    config, problem = cart_problem()
    asked = problems.Single(
        "ringfence solve", 0, config.world, problems.TaskTable(),
        problems.ProblemTable(5.0, episodes=2), config.solver,
    )  # fmt: skip
    for name in ("here", "there"):
        solving.create(tmp_path / name, asked, problem.constraint)
    solving.drive(tmp_path / "here")

    class Engine:
        def submit(self, work: solving.FolderWork) -> Any:
            class Done:
                def result(self) -> Any:
                    return solved(work.own_files(), 0, "there", Letters())

            return Done()

    solving.drive(tmp_path / "there", engine=Engine())
    here, there = (result(tmp_path / name) for name in ("here", "there"))
    assert there == {n: c for n, c in here.items() if not n.startswith("checkpoint")}


def test_records_and_checkpoints_are_posted_together_and_the_last_checkpoint_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [0.0]
    monkeypatch.setattr(ray_node.time, "monotonic", lambda: seconds[0])
    letters, checkpoint = Letters(), tmp_path / "checkpoint"
    post = Post(1, "there", checkpoint, letters)
    checkpoint.mkdir()
    for update in (1, 2):
        (checkpoint / "state.json").write_text("." * update)
        post.report({"update": update})
    assert len(letters.sent) == 1  # that it began
    seconds[0] = POST_EVERY
    post.report({"update": 3})
    assert [len(head["records"]) for head in letters.heads] == [1, 3]
    assert letters.checkpoints == [{"checkpoint/state.json": b".."}]
    seconds[0] = 2 * POST_EVERY
    post.report({"update": 4})  # nothing was saved since
    assert [len(head["records"]) for head in letters.heads] == [1, 3, 1]
    assert len(letters.checkpoints) == 1
    post.flush(last=True)
    assert len(letters.sent) == 4


def test_the_same_versions_pass_and_others_are_named() -> None:
    require_versions(versions())
    assert look(json.dumps(versions())) == b""
    other = {**versions(), "jax": "0.0.1", "ringfence": "0.0.2"}
    with pytest.raises(InvalidInput, match=r"has ringfence .*, not 0.0.2; jax .*, not 0.0.1"):
        require_versions(other)
    assert b"pip install ringfence==0.0.2" in look(json.dumps(other))


def test_another_source_of_the_same_version_is_another_version() -> None:
    changed = {**versions(), "ringfence's files": "0" * 12}
    with pytest.raises(InvalidInput, match="ringfence's files"):
        require_versions(changed)
