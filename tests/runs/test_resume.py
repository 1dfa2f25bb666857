"""A run killed at any moment and resumed ends in the same bytes; so does one with workers."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from small_run import quiet, result, small

from ringfence.errors import InvalidInput, SolverFailed
from ringfence.runs.learn import create, drive

COMMAND = [sys.executable, "-m", "ringfence.cli"]
RANDOM_KILLS = 20


def begin_or_resume(run: Path) -> None:
    """What a user does after a crash: resume, or start again if there is no run yet."""
    if not run.exists():
        create(run, *small())
    drive(run, 1, quiet)


def killed_at_boundary(run: Path, n: int) -> bool:
    """Run in a forked child that kills itself at its n-th write boundary; False if it came through.

    A boundary is just before or just after a sync, a rename or the removal of a folder.
    """
    child = os.fork()
    if child == 0:
        count = 0

        def guarded(call: Callable) -> Callable:
            def wrapped(*arguments: object, **options: object) -> object:
                nonlocal count
                for moment in ("before", "after"):
                    count += 1
                    if count == n:
                        os.kill(os.getpid(), signal.SIGKILL)
                    if moment == "before":
                        answer = call(*arguments, **options)
                return answer

            return wrapped

        os.fsync, os.replace, os.rename = map(guarded, (os.fsync, os.replace, os.rename))
        shutil.rmtree = guarded(shutil.rmtree)
        begin_or_resume(run)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_a_run_killed_at_each_write_boundary_resumes_to_the_same_bytes(
    tmp_path: Path, finished: Path
) -> None:
    expected = result(finished)
    n = 0
    while True:
        n += 1
        run = tmp_path / f"{n}"
        killed = killed_at_boundary(run, n)
        begin_or_resume(run)
        assert result(run) == expected, f"killed at boundary {n}"
        assert not list(run.rglob(".*.partial"))
        shutil.rmtree(run)
        if not killed:
            break
    assert n > 50, "a run has more write boundaries than this: is the guard in place?"


def test_a_run_killed_over_and_over_still_ends_in_the_same_bytes(
    tmp_path: Path, finished: Path
) -> None:
    """Each life ends a few boundaries further on, without a clean resume in between."""
    run, lives = tmp_path / "run", 0
    while killed_at_boundary(run, 40):
        lives += 1
    assert lives > 1
    assert result(run) == result(finished)


def test_a_run_killed_at_random_moments_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    learn = [*COMMAND, "learn", "--paths", "2", "--heldout", "1", "--out"]
    began = time.monotonic()
    subprocess.run([*learn, str(tmp_path / "whole")], check=True, capture_output=True)
    duration = time.monotonic() - began
    expected = result(tmp_path / "whole")
    rng = random.Random(0)
    met = 0
    for n in range(RANDOM_KILLS):
        run = tmp_path / f"{n}"
        process = subprocess.Popen(
            [*learn, str(run)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(rng.uniform(0.3, 1.0) * duration)
        process.kill()
        process.wait()
        met += run.exists() and not (run / "summary.json").exists()
        again = [*COMMAND, "resume", str(run)] if run.exists() else [*learn, str(run)]
        subprocess.run(again, check=True, capture_output=True)
        assert result(run) == expected
        shutil.rmtree(run)
    assert met > 0, "no kill fell between the run's first and last file"


def test_one_and_two_workers_give_the_same_bytes(tmp_path: Path, finished: Path) -> None:
    run = tmp_path / "run"
    create(run, *small())
    drive(run, 2, quiet)
    assert result(run) == result(finished)
    ledgers = [
        {p.name: (p / "arrays.safetensors").read_bytes() for p in (r / "ledger").iterdir()}
        for r in (run, finished)
    ]
    assert ledgers[0] == ledgers[1]


def test_a_dead_worker_is_named_and_the_run_resumes(
    tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringfence.runs import backends

    run = tmp_path / "run"
    create(run, *small())
    ask = backends._ask

    def shoot_then_ask(process: subprocess.Popen, job: dict) -> object:
        process.kill()
        return ask(process, job)

    monkeypatch.setattr(backends, "_ask", shoot_then_ask)
    with pytest.raises(SolverFailed, match=r"worker process for task .* died .*-9.*resume"):
        drive(run, 2, quiet)
    monkeypatch.undo()
    drive(run, 1, quiet)
    assert result(run) == result(finished)


def test_a_resumed_run_solves_nothing_again(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / "summary.json").unlink()
    events: list[dict] = []
    drive(run, 1, events.append)
    solved = [event for event in events if event["event"] == "solved"]
    assert solved
    assert all(event["known"] for event in solved)


def test_a_damaged_ledger_entry_is_named(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    entry = next((run / "ledger").iterdir())
    (entry / "arrays.safetensors").write_bytes(b"torn")
    with pytest.raises(InvalidInput, match=f"{entry.name}.*delete it and resume"):
        drive(run, 1, quiet)


def test_other_demonstrations_are_refused(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    config = run / "config.toml"
    digest = json.loads((run / "constraint/constraint.json").read_text())["provenance"]
    swapped = digest["demonstrations_sha256"][::-1]
    config.write_text(config.read_text().replace(digest["demonstrations_sha256"], swapped))
    with pytest.raises(InvalidInput, match="not the demonstrations"):
        drive(run, 1, quiet)


def test_two_drivers_of_one_run_are_refused(finished: Path) -> None:
    import fcntl

    with open(finished / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InvalidInput, match="another process"):
            drive(finished, 1, quiet)
