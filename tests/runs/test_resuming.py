"""A run killed at any moment and resumed ends in the same bytes, on every world; so does one that
is played on.

A kill leaves on the disk what was there at that moment. So the disk is copied at each write
boundary, and the copies are resumed; and processes are killed for good, at boundaries and at random
moments.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringfence.cli.main import main
from ringfence.disk import sealed_toml
from ringfence.errors import InvalidInput
from ringfence.runs import config as configs
from ringfence.runs import driver
from ringfence.runs.folder import only_driver
from small_worlds import (
    CIRCUMSTANCES,
    config_of,
    demos_of,
    every_world,
    of_kinds,
    once,
    play,
    result,
    small,
)

Finished = Callable[[str], Path]

#: Of runs under way, and of all.
RANDOM_KILLS, MOST_KILLS = 10, 40


def begin_or_resume(run: Path, kind: str) -> None:
    """What a user does after a crash: resume, or start again if there is no run yet."""
    if not run.exists():
        driver.create(run, *small(kind))
    driver.drive(run)


def at_each_boundary(monkeypatch: pytest.MonkeyPatch, tell: Callable[[], None]) -> None:
    """Tell just before and just after each sync, each rename and each removal of a folder."""

    def guarded(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            tell()
            answer = call(*arguments, **options)
            tell()
            return answer

        return wrapped

    for module, name in ((os, "fsync"), (os, "replace"), (os, "rename"), (shutil, "rmtree")):
        monkeypatch.setattr(module, name, guarded(getattr(module, name)))


# Killed for good ---------------------------------------------------------------------------------


def forked(work: Callable[[], None], within: float | None = None) -> bool:
    """Do it in a forked child, killed after a time if one is given; was it killed?"""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:  # an error must not go on in a second process of this kind
            os._exit(0)
    if within is not None:
        time.sleep(within)
        os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def killed_over_and_over(run: Path, kind: str) -> int:
    """Each life ends one write boundary further on; how many there were."""
    lives = 0

    def live() -> None:
        count = 0

        def shoot() -> None:
            nonlocal count
            count += 1
            if count > lives:
                os.kill(os.getpid(), signal.SIGKILL)

        at_each_boundary(pytest.MonkeyPatch(), shoot)
        begin_or_resume(run, kind)

    while forked(live):
        lives += 1
    return lives


def killed_at_random(folder: Path, kind: str) -> int:
    """Runs folder/0, folder/1, .. killed at random moments; how many of them were under way."""
    rng, began = random.Random(0), time.monotonic()
    forked(lambda: begin_or_resume(folder / "whole", kind))
    duration, met = time.monotonic() - began, 0
    for n in range(MOST_KILLS):
        run = folder / f"{n}"
        forked(lambda run=run: begin_or_resume(run, kind), rng.uniform(0.1, 1.0) * duration)  # type: ignore[misc]
        met += run.exists() and not (run / "summary.json").exists()
        if met == RANDOM_KILLS:
            break
    return met


FORKING = """
import os, sys
from pathlib import Path
os.fsync = lambda descriptor: None
import test_resuming
print(getattr(test_resuming, sys.argv[1])(Path(sys.argv[2]), sys.argv[3]))
"""


def in_a_process_of_its_own(function: Callable[[Path, str], int], place: Path, kind: str) -> int:
    """Where JAX has no threads, which a fork would leave behind."""
    done = subprocess.run(
        [sys.executable, "-c", FORKING, function.__name__, str(place), kind],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@of_kinds("grid", "tables")
def test_a_run_killed_over_and_over_still_ends_in_the_same_bytes(
    kind: str, tmp_path: Path, finished: Finished
) -> None:
    lives = in_a_process_of_its_own(killed_over_and_over, tmp_path / "run", kind)
    assert lives > 10, "a run has more write boundaries than this: is the guard in place?"
    assert result(tmp_path / "run") == result(finished(kind))


@of_kinds("grid", "tables")
def test_a_run_killed_at_random_moments_resumes_to_the_same_bytes(
    kind: str, tmp_path: Path, finished: Finished
) -> None:
    met = in_a_process_of_its_own(killed_at_random, tmp_path, kind)
    assert met > 0, "no kill fell between the run's first and last file"
    for run in (p for p in tmp_path.iterdir() if not p.name.startswith(".")):
        begin_or_resume(run, kind)
        assert result(run) == result(finished(kind))


DRIVE = """
import sys
from pathlib import Path
from ringfence.runs.driver import drive
drive(Path(sys.argv[1]), int(sys.argv[2]), lambda event: print(event["event"], flush=True))
"""


def begun(run: Path, workers: int = 1) -> subprocess.Popen[str]:
    """A process of its own that drives the run and prints its events."""
    words = [sys.executable, "-c", DRIVE, str(run), str(workers)]
    path = os.pathsep.join(sys.path)
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )


@of_kinds("gym", "ant", "ant-bullet", "ant-maze")
def test_a_process_killed_at_a_random_moment_of_its_game_resumes_to_the_same_bytes(
    kind: str, tmp_path: Path, finished: Finished
) -> None:
    """At the n-th event and a little later: imports and compilation would take most kills."""
    rng, run, events = random.Random(kind), tmp_path / "run", 12
    driver.create(run, *small(kind))
    process = begun(run)
    assert process.stdout is not None
    for _ in range(rng.randrange(1, events)):
        process.stdout.readline()
    time.sleep(rng.uniform(0.0, 0.05))
    process.kill()
    process.wait()
    driver.drive(run)
    assert result(run) == result(finished(kind))


def test_a_killed_driver_of_two_workers_is_resumed_by_one_to_the_same_bytes(
    tmp_path: Path, finished: Finished
) -> None:
    """In the middle of a training, whose worker must not go on beside the one that resumes."""
    driver.create(tmp_path / "run", *small("gym"))
    process = begun(tmp_path / "run", workers=2)
    assert process.stdout is not None
    assert "update\n" in process.stdout  # as soon as it is told
    process.kill()
    process.wait()
    assert not (tmp_path / "run" / "summary.json").exists()
    driver.drive(tmp_path / "run")
    assert result(tmp_path / "run") == result(finished("gym"))


# Its disk as a kill would have left it -----------------------------------------------------------


class Disk:
    """Copies of a folder, one for each state that it was in at a write boundary."""

    def __init__(self, folder: Path, copies: Path) -> None:
        self.folder, self.copies, self.seen = folder, copies, set[str]()
        self.busy = False

    def keep(self) -> None:
        if not self.busy:  # copying has boundaries of its own
            self.busy = True
            self._keep()
            self.busy = False

    def _keep(self) -> None:
        digest = hashlib.sha256()
        for path in sorted(self.folder.rglob("*")):
            if path.name not in CIRCUMSTANCES:
                digest.update(str(path.relative_to(self.folder)).encode())
                digest.update(path.read_bytes() if path.is_file() else b"")
        if digest.hexdigest() in self.seen:
            return
        self.seen.add(digest.hexdigest())
        copy = self.copies / f"{len(self.seen):03d}"
        shutil.copytree(self.folder, copy)
        mine = f".{os.getpid()}-"  # a killed process had another number, nobody's now
        for path in sorted(copy.rglob(f".*{mine}*.partial"), reverse=True):
            path.rename(path.with_name(path.name.replace(mine, f".{2**22 + 1}-")))


@pytest.fixture(scope="session")
def states(shared: Path) -> Callable[[str], Path]:
    """A folder with a copy of each state that a small game's disk was in."""

    def keep_all(kind: str, copies: Path) -> None:
        place = copies.with_name(f"{kind}-disk")
        for folder in (place, copies):
            folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            at_each_boundary(patch, Disk(place, copies).keep)
            driver.create(place / "run", *small(kind))
            driver.drive(place / "run")

    return lambda kind: once(shared, f"{kind}-states", lambda copies: keep_all(kind, copies))


@of_kinds("grid", "tables", "gym", "ant-maze")
@pytest.mark.parametrize("part", range(4))
def test_what_a_kill_at_each_write_boundary_leaves_resumes_to_the_same_bytes(
    kind: str, part: int, states: Callable[[str], Path], tmp_path: Path, finished: Finished
) -> None:
    expected, every = result(finished(kind)), sorted(states(kind).iterdir())
    assert len(every) > 25, "a run's disk has more states than this: is the guard in place?"
    for state in every[part::4]:
        run = tmp_path / state.name / "run"
        shutil.copytree(state, run.parent)
        begin_or_resume(run, kind)
        assert result(run) == expected, f"state {state.name}"
        assert not list(run.rglob(".*.partial"))


@of_kinds("ant", "ant-bullet")
def test_what_kills_leave_of_the_ants_game_resumes_to_the_same_bytes(
    kind: str, states: Callable[[str], Path], tmp_path: Path, finished: Finished
) -> None:
    """Some of the states: it is the cart's solver, and Bullet's simulators are slow to start."""
    every, few = sorted(states(kind).iterdir()), {"ant": 12, "ant-bullet": 2}[kind]
    for state in every[len(every) // few // 2 :: len(every) // few][:few]:
        run = tmp_path / state.name / "run"
        shutil.copytree(state, run.parent)
        begin_or_resume(run, kind)
        assert result(run) == result(finished(kind)), f"state {state.name}"


# Stopped, resumed, damaged -----------------------------------------------------------------------


class Stopped(BaseException):
    """As if the process had ended here."""


def stop_at(n: int) -> Callable[[dict[str, Any]], None]:
    """An observer that stops the run at its n-th event."""
    count = 0

    def watch(event: dict[str, Any]) -> None:
        nonlocal count
        count += 1
        if count == n:
            raise Stopped

    return watch


@of_kinds("grid", "tables", "gym", "ant", "ant-maze")
def test_a_run_stopped_at_each_event_still_ends_in_the_same_bytes(
    kind: str, tmp_path: Path, finished: Finished
) -> None:
    run, lives = tmp_path / "run", 0
    driver.create(run, *small(kind))
    while True:
        try:
            driver.drive(run, 1, stop_at(1 + lives))
            break
        except Stopped:
            lives += 1
    assert lives >= 4
    assert result(run) == result(finished(kind))


@every_world
def test_a_resumed_run_solves_nothing_again(kind: str, finished: Finished, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished(kind), run)
    (run / "summary.json").unlink()
    events: list[dict[str, Any]] = []
    driver.drive(run, 1, events.append)
    solved = [event for event in events if event["event"] == "solved"]
    assert solved
    assert all(event["known"] for event in solved)
    assert not [event for event in events if event["event"] in ("update", "cloning")]
    assert result(run) == result(finished(kind))


@pytest.fixture
def torn(finished: Finished, tmp_path: Path) -> Path:
    """A finished game's copy, to be damaged."""
    return Path(shutil.copytree(finished("grid"), tmp_path / "run"))


@pytest.mark.parametrize("name", ["ledger/*/arrays.safetensors", "timing.json", "summary.json"])
def test_what_was_damaged_is_told_and_made_again(name: str, torn: Path, finished: Finished) -> None:
    path, told = next(torn.glob(name)), list[dict[str, Any]]()
    path.write_bytes(b"torn")
    driver.drive(torn, on_event=told.append)
    assert result(torn) == result(finished("grid"))
    damaged = [event for event in told if event["event"] == "damaged"]
    assert [path.parent.name in e["what"] or path.name in e["what"] for e in damaged] == (
        [] if name == "summary.json" else [True]  # which is written anew in any case
    )


def test_damaged_clones_are_cloned_again(tmp_path: Path, finished: Finished) -> None:
    run, told = Path(shutil.copytree(finished("gym"), tmp_path / "run")), list[dict[str, Any]]()
    (run / "start/0.safetensors").write_bytes(b"torn")
    driver.drive(run, on_event=told.append)
    assert result(run) == result(finished("gym"))
    assert [e["event"] for e in told[:3]] == ["start", "damaged", "cloning"]


def test_an_altered_configuration_is_refused(torn: Path) -> None:
    config = torn / "config.toml"
    config.write_text(config.read_text().replace("iterations = 5", "iterations = 4"))
    with pytest.raises(InvalidInput, match=r"config.toml: it was altered after it was written"):
        driver.drive(torn)


def test_other_demonstrations_are_refused(torn: Path) -> None:
    config = torn / "config.toml"
    digest = json.loads((torn / "constraint/constraint.json").read_text())["provenance"]
    swapped = digest["demonstrations_sha256"][::-1]
    text = config.read_text().partition("\n")[2].replace(digest["demonstrations_sha256"], swapped)
    config.write_bytes(sealed_toml(text))
    with pytest.raises(InvalidInput, match="not the demonstrations"):
        driver.drive(torn)


def test_two_drivers_of_one_run_are_refused(torn: Path) -> None:
    with only_driver(torn), pytest.raises(InvalidInput, match="another process"):
        driver.drive(torn)


# Played on ---------------------------------------------------------------------------------------


@of_kinds("tables", "gym", "ant", "ant-maze")
def test_a_game_played_on_ends_as_one_that_was_to_be_so_long(
    kind: str, tmp_path: Path, finished: Finished
) -> None:
    short, long = tmp_path / "short", tmp_path / "long"
    iterations = config_of(kind).game.iterations
    played = {"command": f"ringfence learn --iterations {iterations}"}
    play(long, kind, **played)
    fewer = {"command": "ringfence learn", "game": {"iterations": iterations - 1}}
    play(short, kind, **fewer)
    solved: list[bool] = []
    driver.extend(short, iterations)
    driver.drive(short, 1, lambda e: solved.append(e["known"]) if e["event"] == "solved" else None)
    tasks = len(demos_of(kind).tasks)
    assert all(solved[: (iterations - 1) * tasks])
    assert solved[-1] is (kind == "tables")  # whose last solutions are the earlier ones
    assert result(short) == result(long)


def test_a_map_is_played_on(tmp_path: Path) -> None:
    """As before; its game of one iteration is not over, that of two is."""
    play(tmp_path / "one", "grid", game={"iterations": 1})
    driver.extend(tmp_path / "one", 2)
    assert len(driver.drive(tmp_path / "one")["iterations"]) == 2


@of_kinds("ant-bullet")
def test_bullets_game_is_played_on(kind: str, tmp_path: Path, finished: Finished) -> None:
    run = tmp_path / "run"
    play(run, kind, game={"iterations": 1}, command="ringfence learn")
    assert main(["resume", str(run), "--iterations", "2"]) == 0
    weights = [n for n in result(run) if n.endswith("weights.safetensors")]
    assert len(weights) == 3
    assert all(result(run)[n] == result(finished(kind))[n] for n in weights)


def test_a_game_is_played_on_by_more_iterations_only(torn: Path) -> None:
    before = result(torn)
    with pytest.raises(InvalidInput, match="has 5 iterations; to play on"):
        driver.extend(torn, 5)
    assert result(torn) == before


def test_the_step_size_of_ftrl_is_that_of_its_game(tmp_path: Path) -> None:
    play(tmp_path / "run", "grid", player={"kind": "ftrl"}, game={"iterations": 2})
    before = result(tmp_path / "run")
    with pytest.raises(InvalidInput, match=r"ftrl is that of 2 .*learn again with --iterations 3"):
        driver.extend(tmp_path / "run", 3)
    assert result(tmp_path / "run") == before


def test_the_command_of_a_longer_game_says_so_once(tmp_path: Path) -> None:
    for command, longer in (
        ("ringfence learn --iterations 1 --seed 2", "ringfence learn --iterations 2 --seed 2"),
        ("ringfence learn", "ringfence learn --iterations 2"),
        ("ringfence learn my.toml", "ringfence learn my.toml --iterations 2"),
    ):
        run = tmp_path / command.replace(" ", "-")
        driver.create(run, *small("grid", game={"iterations": 1}, command=command))
        driver.extend(run, 2)
        assert configs.read(run / "config.toml").command == longer


def test_what_was_no_game_is_not_played_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, run = demos_of("gym"), tmp_path / "run"
    (task,) = given.tasks
    rich = replace(task, train=tuple(replace(t, rewards=t.rewards + 100) for t in task.train))
    driver.create(run, config_of("gym", opening={"probe": True}), replace(given, tasks=(rich,)))
    assert driver.drive(run)["outcome"] == "no constraint needed"
    before = result(run)
    assert main(["resume", str(run), "--iterations", "3"]) == 2
    assert "there is no game to play on" in capsys.readouterr().err
    assert result(run) == before
