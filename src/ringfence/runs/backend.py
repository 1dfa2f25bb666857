"""Where solves run: in this process, in worker processes, or on other machines (ray_engine.py).
Either way the ledger has the result.

A backend takes a `Job` and gives a future of the files of its ledger entry. To a worker a job is
bytes of our own files (JSON, safetensors) for one named function, `work`; what comes back are bytes
of files, too. Only the driver writes the ledger.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import shutil
import signal
import threading
import zipfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import safetensors.numpy

from ringfence import errors
from ringfence.compilation import keep_compiled
from ringfence.constraints import constraint_files
from ringfence.errors import EngineLost, InvalidInput, RingfenceError, SolverFailed
from ringfence.objects import Problem, Solution
from ringfence.runs.config import make_solver, make_world, tagged
from ringfence.runs.ledger import (
    Ledger,
    arrays_bytes,
    described,
    key_hash,
    to_files,
    usual_key,
)
from ringfence.solvers.solver import Report, Solver
from ringfence.worlds.sim.mixture import Mixture
from ringfence.worlds.world import World

Files = Mapping[str, bytes]
#: Solve a problem; the same without a constraint; only watch what the policy `start` does.
Role = Literal["solve", "free", "settle", "watch", "show"]
#: Each is a process with a simulator of its own.
MOST_WORKERS = 256
#: How often a solve whose worker died is begun again.
MOST_DEATHS = 3
#: Seconds to wait for the records of workers that have ended.
LAST_WORDS = 5.0


@dataclass(frozen=True, eq=False)
class Job:
    """One solve. world, solver: their settings; key: all that determines the solution; cores: of
    the machine that it is given to."""

    world: Any
    solver: Any
    role: Role
    problem: Problem
    key: Mapping[str, Any]
    checkpoint: Path | None
    report: Report
    cores: float = 1.0

    @cached_property
    def name(self) -> str:
        return key_hash(self.key)

    @property
    def task(self) -> str:
        return self.problem.task.name

    @property
    def steps(self) -> int:
        """Of the environment, at most: how long it may take, before any like it was solved."""
        trains = self.role in ("solve", "free", "settle")
        return int(getattr(self.solver, "env_steps", 0)) if trains else 0

    @property
    def common(self) -> tuple[Any, Any, Any]:
        """What it has in common with the others of its iteration."""
        return self.world, self.solver, self.problem.constraint

    def common_files(self) -> Files:
        settings = {"world": asdict(self.world), "solver": asdict(self.solver)}
        return {
            "settings.json": json.dumps(settings).encode(),
            **constraint_files.to_bytes(self.problem.constraint, 0.0, {}),
        }

    def own_files(self) -> Files:
        problem = self.problem
        order = {
            "role": self.role,
            "key": self.key,
            "task": problem.task.name,
            "tasks": [task.name for task in getattr(problem.task, "tasks", ())],
            "delta": problem.delta.hex(),
            "deltas": [delta.hex() for delta in problem.deltas],
            "seed": list(problem.seed),
            "stop_reward": problem.stop_reward,
            "drop_failed": problem.drop_failed,
        }
        files = {"order.json": json.dumps(order).encode()}
        if problem.start is not None:
            files["start"] = arrays_bytes(problem.start)
        if problem.states is not None:
            files["states"] = arrays_bytes({"states": problem.states})
        return files


class Work(Protocol):
    """What can be solved on another machine: a `Job`, or a folder (runs/solving.py).

    common: what it has in common with others, compared by identity; common_files, own_files: all
    that it is, for `answer`.
    """

    @property
    def task(self) -> str: ...
    @property
    def steps(self) -> int: ...
    @property
    def cores(self) -> float: ...
    @property
    def checkpoint(self) -> Path | None: ...
    @property
    def report(self) -> Report: ...
    @property
    def common(self) -> tuple[Any, ...]: ...
    def common_files(self) -> Files: ...
    def own_files(self) -> Files: ...


class Backend(Protocol):
    def submit(self, job: Job) -> Future[Files]: ...

    def close(self) -> None: ...


def require_workers(workers: int) -> None:
    if not 1 <= workers <= MOST_WORKERS:
        rule = "at least 1" if workers < 1 else f"at most {MOST_WORKERS}"
        raise InvalidInput(f"--workers must be {rule}, got {workers}")


def make_backend(workers: int | Backend, solver: Solver) -> Backend:
    """workers: how many processes of this machine, or an engine that somebody else closes."""
    if not isinstance(workers, int):
        return Lent(workers)
    require_workers(workers)
    return Here(solver) if workers == 1 else Workers(workers)


@dataclass(frozen=True, eq=False)
class Lent:
    """A backend that outlives the run: others may use it, too."""

    backend: Backend

    def submit(self, job: Job) -> Future[Files]:
        return self.backend.submit(job)

    def close(self) -> None:
        """Whoever lent it does."""


def in_role(solver: Solver, role: Role) -> Solver:
    if role == "show":
        watcher: Any = solver.watch()
        return replace(watcher, sees=solver.config.augment)  # type: ignore[no-any-return, attr-defined]
    if role == "settle":
        longer: Any = solver
        return longer.settle()  # type: ignore[no-any-return]
    return {"solve": lambda: solver, "free": solver.free, "watch": solver.watch}[role]()


class Here:
    """This process: as many solves at once as their solver takes."""

    def __init__(self, solver: Solver) -> None:
        self._solver = solver
        self._threads = ThreadPoolExecutor(solver.at_once) if solver.at_once > 1 else None

    def submit(self, job: Job) -> Future[Files]:
        if self._threads is not None:
            return self._threads.submit(self._solve, job)
        done: Future[Files] = Future()
        try:
            done.set_result(self._solve(job))
        except RingfenceError as problem:
            done.set_exception(problem)
        return done

    def _solve(self, job: Job) -> Files:
        solution = in_role(self._solver, job.role)(job.problem, job.checkpoint, job.report)
        return to_files(job.key, solution)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)


class Workers:
    """Processes of this machine. One that dies takes its pool along: a new pool goes on."""

    def __init__(self, workers: int) -> None:
        self._workers, self._lock = workers, threading.Lock()
        self._context = multiprocessing.get_context("spawn")
        self._reports: dict[str, Report] = {}
        self._asked: list[Future[Files]] = []
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        """With a queue of its own: a process that dies while it writes leaves its queue locked."""
        self._records: Any = self._context.Queue()
        self._listener = threading.Thread(target=self._listen, args=[self._records], daemon=True)
        self._listener.start()
        return ProcessPoolExecutor(
            self._workers, self._context, initializer=begin_work, initargs=(self._records,)
        )

    def submit(self, job: Job) -> Future[Files]:
        done: Future[Files] = Future()
        self._asked.append(done)
        self._reports[job.name] = job.report
        self._try(to_parcel(job), job, done, MOST_DEATHS)
        return done

    def _try(self, parcel: bytes, job: Job, done: Future[Files], tries: int) -> None:
        with self._lock:
            try:
                inner = self._pool.submit(work, parcel)
            except BrokenProcessPool:
                self._pool = self._new_pool()
                inner = self._pool.submit(work, parcel)

        def on_done(reply: Future[bytes]) -> None:
            if done.cancelled():  # see `close`
                return
            problem = reply.exception()
            if isinstance(problem, BrokenProcessPool) and tries > 1:
                self._try(parcel, job, done, tries - 1)
            elif isinstance(problem, BrokenProcessPool):
                done.set_exception(
                    SolverFailed(
                        f"{MOST_DEATHS} worker processes died over {job.problem.task.name!r} (out "
                        "of memory? in a script, is the call under if __name__ == '__main__':?); "
                        "what was solved is kept, go on with 'ringfence resume'"
                    )
                )
            elif problem is not None:
                done.set_exception(problem)
            else:
                settle(done, unpack(reply.result()))

        inner.add_done_callback(on_done)

    def _listen(self, records: Any) -> None:
        while (message := records.get()) is not None:
            name, record = message
            self._reports[name](record)

    def close(self) -> None:
        """Nobody waits for what is still being solved: the run was interrupted, or has failed."""
        if all(done.done() for done in self._asked):
            self._pool.shutdown()
            self._records.cancel_join_thread()
            self._records.put(None)
            self._listener.join(LAST_WORDS)
            return
        for done in self._asked:
            done.cancel()
        for process in list((self._pool._processes or {}).values()):
            process.kill()
        self._pool.shutdown(wait=False, cancel_futures=True)


def settle(done: Future[Files], files: Files) -> None:
    """A worker's answer: the files of a solution, or what went wrong."""
    if "error.json" not in files:
        done.set_result(files)
        return
    error = json.loads(files["error.json"])
    kind = getattr(errors, error["kind"], SolverFailed)
    done.set_exception(kind(error["message"]))


# A worker's side ---------------------------------------------------------------------------------

_records: Any = None


def begin_work(records: Any) -> None:
    """What a worker process does first. records: the queue that it tells of its progress."""
    global _records
    _records = records
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the driver, who ends us
    threading.Thread(target=_end_with_driver, daemon=True).start()
    keep_compiled()


def _end_with_driver() -> None:
    """Whoever resumes a killed run must not meet its workers in the same checkpoints."""
    driver = multiprocessing.parent_process()
    assert driver is not None
    driver.join()
    os._exit(1)


def work(parcel: bytes) -> bytes:
    """Solve the job of a parcel; a parcel of its files, or of an error, comes back."""
    files = unpack(parcel)
    name, place = files["name"].decode(), files["checkpoint"].decode()

    def report(record: dict[str, Any]) -> None:
        if _records is not None:
            _records.put((name, {**record, "where": f"process {os.getpid()}"}))

    report({"event": "began"})
    return pack(answer(files, Path(place) if place else None, report))


def answer(files: Files, checkpoint: Path | None, report: Report) -> Files:
    """What an order's files come to: those of its solution, or of an error."""
    try:
        order, settings = json.loads(files["order.json"]), json.loads(files["settings.json"])
        solver = make_solver(tagged("worker", "solver", settings["solver"]))
        problem = Problem(
            task=_ordered(_world(json.dumps(settings["world"])), order),
            constraint=constraint_files.from_bytes(files),
            delta=float.fromhex(order["delta"]),
            start=safetensors.numpy.load(files["start"]) if "start" in files else None,
            seed=tuple(order["seed"]),
            stop_reward=order["stop_reward"],
            states=safetensors.numpy.load(files["states"])["states"] if "states" in files else None,
            drop_failed=order["drop_failed"],
            deltas=tuple(map(float.fromhex, order["deltas"])),
        )
        return to_files(order["key"], in_role(solver, order["role"])(problem, checkpoint, report))
    except RingfenceError as problem_error:
        return error_files(problem_error)


def error_files(problem: RingfenceError) -> dict[str, bytes]:
    error = {"kind": type(problem).__name__, "message": str(problem)}
    return {"error.json": json.dumps(error).encode()}


@cache
def _world(settings: str) -> World:
    return make_world(tagged("worker", "world", json.loads(settings)))


def _ordered(world: World, order: Mapping[str, Any]) -> Any:
    """The task that an order names, or the mixture of those that it lists."""
    names = order.get("tasks", [])
    return Mixture(tuple(_task(world, n) for n in names)) if names else _task(world, order["task"])


def _task(world: World, name: str) -> Any:
    for task in world.tasks:
        if task.name == name:
            return task
    raise InvalidInput(f"task {name!r} is not one of the world's: it can't be solved by workers")


def to_parcel(job: Job) -> bytes:
    """All that a worker needs to know, as files."""
    checkpoint = "" if job.checkpoint is None else str(job.checkpoint.absolute())
    about = {"name": job.name.encode(), "checkpoint": checkpoint.encode()}
    return pack({**job.common_files(), **job.own_files(), **about})


def pack(files: Files) -> bytes:
    """Files as one parcel of bytes (a zip archive, not compressed)."""
    parcel = io.BytesIO()
    with zipfile.ZipFile(parcel, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return parcel.getvalue()


def unpack(parcel: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(parcel)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# Through the ledger ------------------------------------------------------------------------------

OnRecord = Callable[[Problem, dict[str, Any]], None]
OnSolved = Callable[[Problem, str, bool], None]


@dataclass(frozen=True, eq=False)
class Solves:
    """A run's solves: out of its ledger, or by the backend into it.

    on_record(problem, record): progress inside a solve; on_solved(problem, ledger name, was it
    there already): as results come in; on_damaged(what was wrong): before it is solved again;
    cores: of a solve, on other machines.
    """

    run: Path
    world: Any
    settings: Any
    solver: Solver
    backend: Backend
    on_record: OnRecord
    on_solved: OnSolved
    on_damaged: Callable[[str], None] = lambda problem: None
    cores: float = 1.0

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.run / "ledger")

    def __call__(self, problems: Sequence[Problem], role: Role = "solve") -> list[Solution]:
        jobs = [self.job(problem, role) for problem in problems]
        futures: dict[Future[Files], Job] = {}
        there: set[str] = set()
        for job in jobs:
            known = self._known(job.name)
            if known:
                self._forget_checkpoint(job.name)
            if known or job.name in there:
                self.on_solved(job.problem, job.name, known)
            else:
                there.add(job.name)
                future = self.backend.submit(job)
                futures[future] = job
                if future.done():  # in this process, one after the other
                    self._finish(future, job)
        for future in as_completed(futures):
            self._finish(future, futures[future])
        return [self._finished(job.name) for job in jobs]

    def job(self, problem: Problem, role: Role) -> Job:
        usual = usual_key(*self._described, problem)
        if role != "solve":
            usual["role"] = role
        key = in_role(self.solver, role).key(problem, usual)
        checkpoint = self.run / "checkpoints" / key_hash(key)
        return Job(
            self.world,
            self.settings,
            role,
            problem,
            key,
            checkpoint,
            lambda record: self.on_record(problem, record),
            self.cores,
        )

    @cached_property
    def _described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return described(self.world), described(self.settings)

    def _finish(self, future: Future[Files], job: Job) -> None:
        """Put what was solved into the ledger; an error says where it came up."""
        if (self.ledger.root / job.name).is_dir():
            return
        try:
            files = future.result()
        except EngineLost:  # no fault of this solve
            raise
        except RingfenceError as error:
            of_game = len(job.problem.seed) > 1  # a transfer's solve is of no iteration
            where = f"iteration {job.problem.seed[1]}, " * of_game + job.problem.task.name
            raise type(error)(f"{where}: {error}") from error
        self.ledger.put(job.name, files)
        self._forget_checkpoint(job.name)
        self.on_solved(job.problem, job.name, False)

    def _known(self, name: str) -> bool:
        """Is it solved? What was damaged since is solved again."""
        try:
            return self.ledger.get(name) is not None
        except InvalidInput as problem:
            self.on_damaged(str(problem))
            self.ledger.drop(name)
            return False

    def _forget_checkpoint(self, name: str) -> None:
        """And what a kill may have left beside it."""
        for path in (self.run / "checkpoints").glob(f"*{name}*"):
            shutil.rmtree(path, ignore_errors=True)

    def _finished(self, name: str) -> Solution:
        solution = self.ledger.get(name)
        if solution is None:
            raise SolverFailed(f"{self.ledger.root / name}: it was solved, but it isn't there")
        return solution
