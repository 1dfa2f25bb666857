"""Where solves run: in this process or in worker processes. Either way the ledger has the result.

A worker is `python -m ringfence.runs.backends RUN`: it reads a job per line (JSON), solves it,
puts the solution into the run's ledger and answers with a line. Jobs and answers are text, the
data are files, so no object is ever serialised.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from ringfence import errors
from ringfence.constraints import files as constraint_files
from ringfence.errors import RingfenceError, SolverFailed
from ringfence.objects import Problem, Solution
from ringfence.runs import config as configs
from ringfence.runs.ledger import Ledger, key_hash, solve_key
from ringfence.runs.worlds import make_solver, make_world

Solved = Callable[[Problem, str, bool], None]


class SolveAll:
    """Solves problems through a run's ledger, with 1 process (this one) or several workers.

    `on_solved(problem, ledger name, was it there already)` is called as results come in.
    """

    def __init__(self, run: Path, workers: int, on_solved: Solved) -> None:
        self.run = run
        self.config = configs.read(run / "config.toml")
        self.ledger = Ledger(run / "ledger")
        self.on_solved = on_solved
        self._solve = make_solver(self.config.solver)
        self._pool = Pool(run, workers) if workers > 1 else None

    def __call__(self, problems: Sequence[Problem]) -> list[Solution]:
        keys = [solve_key(self.config.world, self.config.solver, p) for p in problems]
        names = [key_hash(key) for key in keys]
        known = [self.ledger.get(name) for name in names]
        missing = [n for n, solution in enumerate(known) if solution is None]
        for n, solution in enumerate(known):
            if solution is not None:
                self.on_solved(problems[n], names[n], True)
        if self._pool is not None:
            self._pool.solve(
                [job(problems[n]) for n in missing],
                lambda index: self.on_solved(
                    problems[missing[index]], names[missing[index]], False
                ),
            )
        else:
            for n in missing:
                self.ledger.put(names[n], keys[n], solve_named(self._solve, problems[n]))
                self.on_solved(problems[n], names[n], False)
        return [self._finished(name) for name in names]

    def _finished(self, name: str) -> Solution:
        solution = self.ledger.get(name)
        if solution is None:
            raise SolverFailed(
                f"{self.ledger.root / name}: a worker said it was done, but it isn't"
            )
        return solution

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()


def solve_named(solve: Callable[[Problem], Solution], problem: Problem) -> Solution:
    """Solve; an error says in which task, and of a game in which iteration, it came up."""
    try:
        return solve(problem)
    except RingfenceError as error:
        of_game = len(problem.seed) > 1  # a transfer's solve is of no iteration
        where = (
            f"iteration {problem.seed[1]}, {problem.task.name}" if of_game else problem.task.name
        )
        raise type(error)(f"{where}: {error}") from error


def job(problem: Problem) -> dict[str, Any]:
    """What a worker needs to know; the constraint is a file of the run."""
    return {
        "task": problem.task.name,
        "constraint": constraint_folder(problem.seed[1]),
        "delta": problem.delta.hex(),
        "seed": list(problem.seed),
    }


def constraint_folder(i: int) -> str:
    """Where c_i of the run lies; c_1 is constraints/c_000."""
    return f"constraints/c_{i - 1:03d}"


class Pool:
    """Worker processes, each with one job at a time."""

    def __init__(self, run: Path, workers: int) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", "ringfence.runs.backends", str(run)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            for _ in range(workers)
        ]

    def solve(self, jobs: Sequence[dict[str, Any]], on_done: Callable[[int], None]) -> None:
        """Hand the jobs out; raises the first job's error after all workers have come to rest."""
        queue: SimpleQueue[int] = SimpleQueue()
        for index in range(len(jobs)):
            queue.put(index)
        failures: dict[int, RingfenceError] = {}
        lock = threading.Lock()

        def serve(process: subprocess.Popen[str]) -> None:
            while not failures:
                try:
                    index = queue.get_nowait()
                except Empty:
                    return
                failure = _ask(process, jobs[index])
                with lock:
                    if failure is None:
                        on_done(index)
                    else:
                        failures[index] = failure

        threads = [threading.Thread(target=serve, args=(p,)) for p in self.processes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[min(failures)]

    def close(self) -> None:
        for process in self.processes:
            if process.stdin is not None:
                process.stdin.close()
            process.wait()


def _ask(process: subprocess.Popen[str], job: dict[str, Any]) -> RingfenceError | None:
    """Send a job and wait for the answer: None, or what went wrong."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    except OSError:
        answer = ""
    if not answer:
        return SolverFailed(
            f"the worker process for task {job['task']!r} died (exit code {process.wait()}); "
            "what was solved is kept, go on with 'ringfence resume'"
        )
    error = json.loads(answer)["error"]
    if error is None:
        return None
    kind = getattr(errors, error["kind"], SolverFailed)
    return kind(error["message"])


def work(run: Path, jobs: IO[str], answers: IO[str]) -> None:
    """A worker's life: a job per line in, an answer per line out."""
    config = configs.read(run / "config.toml")
    tasks = {task.name: task for task in make_world(config.world).tasks}
    solve, ledger = make_solver(config.solver), Ledger(run / "ledger")
    for line in jobs:
        order = json.loads(line)
        error = None
        try:
            problem = Problem(
                task=tasks[order["task"]],
                constraint=constraint_files.load(run / order["constraint"]),
                delta=float.fromhex(order["delta"]),
                start=None,
                seed=tuple(order["seed"]),
            )
            key = solve_key(config.world, config.solver, problem)
            ledger.put(key_hash(key), key, solve_named(solve, problem))
        except RingfenceError as problem_error:
            error = {"kind": type(problem_error).__name__, "message": str(problem_error)}
        answers.write(json.dumps({"error": error}) + "\n")
        answers.flush()


if __name__ == "__main__":
    work(Path(sys.argv[1]), sys.stdin, sys.stdout)
