"""Where solves run: the same bytes from any number of workers, whatever becomes of these."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.table import TableConstraint
from ringfence.errors import InfeasibleLimit, InvalidInput, SolverFailed
from ringfence.objects import Problem
from ringfence.runs import driver
from ringfence.runs.backend import (
    Files,
    Job,
    Solves,
    make_backend,
    pack,
    to_parcel,
    unpack,
    work,
)
from ringfence.runs.config import make_solver, make_world
from ringfence.runs.ledger import from_files
from saved_constraints import NETWORK, TABLE
from small_worlds import (
    config_of,
    demos_of,
    every_world,
    of_kinds,
    play,
    result,
    small,
)

Finished = Callable[[str], Path]


def mortal(function: str, notes: Path, **settings: Any) -> dict[str, Any]:
    """A table [solver] of one's own."""
    notes.mkdir()
    return {"kind": f"mortal_solvers:{function}", "notes": str(notes), **settings}


def quiet(record: dict[str, Any]) -> None:
    """Nobody watches."""


# The same bytes ----------------------------------------------------------------------------------


@every_world
def test_one_and_two_workers_give_the_same_bytes(
    kind: str, tmp_path: Path, finished: Finished
) -> None:
    play(tmp_path / "run", kind, workers=2)
    assert result(tmp_path / "run") == result(finished(kind))


def test_two_trainings_at_once_give_the_bytes_of_one_after_the_other(tmp_path: Path) -> None:
    """Two tasks with learned policies, which find their checkpoints and their clones."""
    tasks = {"tasks": [{"name": "a"}, {"name": "b", "kwargs": {"pay": 2.0}}]}
    tables = {
        "world": tasks,
        "player": {"kind": "payoff", "expert_budget": 0.5},
        "opening": {"probe": True},
        "game": {"iterations": 1},
    }
    config, given = config_of("gym", **tables), demos_of("gym")
    both = replace(given, tasks=tuple(replace(given.tasks[0], task=name) for name in "ab"))
    for workers in (1, 2):
        driver.create(tmp_path / str(workers), config, both)
        summary = driver.drive(tmp_path / str(workers), workers)
        assert summary["tasks"] == ["a", "b"]
        assert len(summary["unconstrained"]["ledger"]) == 2
    assert result(tmp_path / "1") == result(tmp_path / "2")


def test_workers_tell_of_their_progress(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    driver.create(tmp_path / "run", *small("gym"))
    driver.drive(tmp_path / "run", 2, events.append)
    updates = [(e["i"], e["update"]) for e in events if e["event"] == "update"]
    assert updates == [(1, 1), (1, 2), (2, 1), (2, 2)]
    told = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in told] == [e["event"] for e in events]


@pytest.mark.parametrize("workers", [0, -1])
def test_less_than_one_worker_is_refused(workers: int) -> None:
    with pytest.raises(InvalidInput, match=f"--workers must be at least 1, got {workers}"):
        make_backend(workers, make_solver(config_of("grid").solver))


# What becomes of workers -------------------------------------------------------------------------


def test_a_dead_workers_pool_is_rebuilt_and_its_solve_repeated(
    tmp_path: Path, finished: Finished
) -> None:
    notes = tmp_path / "notes"
    run, solver = tmp_path / "run", mortal("mortal", notes, deaths=2)
    driver.create(run, *small("grid", solver=solver))
    driver.drive(run, 2)
    assert len(list(notes.glob("0-1-0.*"))) == 3  # two died, the third came through
    for name, content in result(finished("grid")).items():
        if name.startswith(("constraint/", "constraints/", "evidence")):
            assert result(run)[name] == content, name


def test_workers_that_die_over_and_over_are_named_and_the_run_resumes(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    run, solver = tmp_path / "run", mortal("mortal", notes, deaths=3)
    driver.create(run, *small("grid", solver=solver))
    words = r"iteration 1, goal \(0,3\): 3 worker processes died .*'ringfence resume'"
    with pytest.raises(SolverFailed, match=words):
        driver.drive(run, 2)
    assert driver.drive(run, 2)["outcome"] == "constraint"


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_solve_is_the_same_from_a_worker(tmp_path: Path, workers: int) -> None:
    solver = mortal("failing", tmp_path / "notes")
    driver.create(tmp_path / "run", *small("grid", solver=solver))
    with pytest.raises(SolverFailed, match=r"^iteration 1, goal \(0,3\): the solver is at its end"):
        driver.drive(tmp_path / "run", workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_infeasible_limit_stays_one(tmp_path: Path, workers: int) -> None:
    driver.create(tmp_path / "run", *small("grid", player={"kind": "ftrl", "restricted": False}))
    with pytest.raises(InfeasibleLimit, match=r"^iteration 3, goal \("):
        driver.drive(tmp_path / "run", workers)


DRIVE = """
import signal, sys
from pathlib import Path
from ringfence.runs.driver import drive

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    drive(Path(sys.argv[1]), int(sys.argv[2]))
"""


def driven(run: Path, workers: int) -> subprocess.Popen[str]:
    """A process of its own, and a group of its own, that drives the run."""
    return subprocess.Popen(
        [sys.executable, "-c", DRIVE, str(run), str(workers)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )


def wait_for(what: Callable[[], bool], seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not what() and time.monotonic() < end:
        time.sleep(0.05)
    return what()


def children(process: int) -> list[int]:
    """All processes under this one."""
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    found = [int(word) for word in text.split()]
    return found + [inner for child in found for inner in children(child)]


def alive(process: int) -> bool:
    """And not only waiting to be buried."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="Linux's /proc")


@pytest.fixture
def asleep(tmp_path: Path) -> Path:
    """A run whose solves never end; a file in `notes` for each that began."""
    driver.create(tmp_path / "run", *small("grid", solver=mortal("sleeping", tmp_path / "notes")))
    return tmp_path / "run"


@needs_proc
def test_workers_end_with_a_driver_that_is_killed(asleep: Path) -> None:
    """Else they would train on, into the checkpoints of whoever resumes."""
    process = driven(asleep, 2)
    assert wait_for(lambda: len(list(asleep.with_name("notes").iterdir())) == 2)
    workers = children(process.pid)
    assert len(workers) >= 2
    process.kill()
    process.wait()
    assert wait_for(lambda: not any(map(alive, workers)), 20.0)


@needs_proc
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_driver_does_not_wait_for_its_solves(asleep: Path, workers: int) -> None:
    """Ctrl-C reaches every process of the terminal; only the driver has something to say."""
    process = driven(asleep, workers)
    assert wait_for(lambda: len(list(asleep.with_name("notes").iterdir())) == workers)
    under = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert said.count("Traceback") == 1
    assert said.strip().endswith("KeyboardInterrupt")
    assert wait_for(lambda: not any(map(alive, under)), 20.0)


# Parcels -----------------------------------------------------------------------------------------


def job_of(kind: str, problem: Problem, role: Any = "solve", solver: Any = None) -> Job:
    config = config_of(kind)
    return Job(config.world, solver or config.solver, role, problem, {"a": 1}, None, quiet)


def test_a_parcel_is_files_and_comes_back_as_them() -> None:
    files = {"order.json": b"{}", "start": bytes(range(256))}
    assert unpack(pack(files)) == files


@pytest.mark.parametrize("c", [TABLE, NETWORK], ids=["table", "network"])
def test_a_worker_solves_what_this_process_does(c: Any) -> None:
    """By the same files, whatever the constraint's class."""
    config = config_of("grid")
    world = make_world(config.world)
    values = np.zeros((4, 4))
    values[1, 2] = 1.0
    cells = TableConstraint(world.features, values)
    constraint = cells if c is TABLE else replace(NETWORK, features=world.features)
    problem = Problem(world.tasks[0], constraint, 0.7, None, (0, 1, 0))
    job = job_of("grid", problem)
    answer = from_files(unpack(work(to_parcel(job))))
    here = make_solver(config.solver)(problem)
    assert answer.behaviour.reward == here.behaviour.reward
    assert answer.policy["pi"].tobytes() == np.asarray(here.policy["pi"]).tobytes()


def test_an_error_is_sent_in_words() -> None:
    world = make_world(config_of("grid").world)
    stranger = replace(world.tasks[0], name="goal (9,9)")
    none = LinearConstraint(world.features, np.zeros(2), 0.0)
    files = unpack(work(to_parcel(job_of("grid", Problem(stranger, none, 0.0, None, (0,))))))
    error = json.loads(files["error.json"])
    assert error["kind"] == "InvalidInput"
    assert "'goal (9,9)' is not one of the world's" in error["message"]


# Through the ledger ------------------------------------------------------------------------------


class Counting:
    """A backend that counts, and solves in this process."""

    def __init__(self, run: Path, kind: str) -> None:
        self.config, self.jobs = config_of(kind), list[Job]()
        self.solver = make_solver(self.config.solver)
        self.inner = make_backend(1, self.solver)
        self.solved: list[tuple[str, bool]] = []
        self.solves = Solves(
            run,
            self.config.world,
            self.config.solver,
            self.solver,
            self,
            lambda problem, record: None,
            lambda problem, name, known: self.solved.append((problem.task.name, known)),
        )

    def submit(self, job: Job) -> Future[Files]:
        self.jobs.append(job)
        return self.inner.submit(job)

    def close(self) -> None:
        self.inner.close()


def test_what_is_in_the_ledger_is_not_solved_again(tmp_path: Path) -> None:
    counting = Counting(tmp_path, "grid")
    world = make_world(counting.config.world)
    none = LinearConstraint(world.features, np.zeros(2), 0.0)
    problems = [Problem(t, none, 0.0, None, (0, 1, k)) for k, t in enumerate(world.tasks)]
    first, again = counting.solves(problems), counting.solves(problems)
    assert len(counting.jobs) == 2
    assert [known for _, known in counting.solved] == [False, False, True, True]
    for one, two in zip(first, again, strict=True):
        assert one.behaviour.visits.tobytes() == two.behaviour.visits.tobytes()


def test_the_same_problem_twice_is_solved_once(tmp_path: Path) -> None:
    counting = Counting(tmp_path, "grid")
    world = make_world(counting.config.world)
    none = LinearConstraint(world.features, np.zeros(2), 0.0)
    one = Problem(world.tasks[0], none, 0.0, None, (0, 1, 0))
    assert len(counting.solves([one, one])) == 2
    assert len(counting.jobs) == 1


@of_kinds("gym")
def test_the_same_problem_without_a_constraint_is_another_one(kind: str, tmp_path: Path) -> None:
    counting = Counting(tmp_path, kind)
    task = make_world(counting.config.world).tasks[0]
    problem = Problem(task, LinearConstraint(task.features, np.zeros(1), 0.0), 0.0, None, (0, 0, 0))
    names = {counting.solves.job(problem, role).name for role in ("solve", "free", "watch")}
    assert len(names) == 3


def test_a_solves_checkpoint_goes_when_it_is_in_the_ledger(
    tmp_path: Path, finished: Finished
) -> None:
    """Also where a kill came in between, or left a half-written one."""
    run, names = tmp_path / "run", [p.name for p in (finished("gym") / "ledger").iterdir()]
    driver.create(run, *small("gym"))
    for name in names:
        for folder in (name, f".{name}.old", f".{name}.tmp"):
            (run / "checkpoints" / folder).mkdir(parents=True)
    driver.drive(run)
    assert sorted(p.name for p in (run / "ledger").iterdir()) == sorted(names)
    assert not list((run / "checkpoints").iterdir())
