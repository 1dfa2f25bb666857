"""Solves on other machines: by a bridge that the test plays, and on local clusters of Ray."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from mortal_solvers import Config as Mortal

from ray_nodes import Nodes, listening, needs_ray, nodes_of
from ringfence.constraints.linear import LinearConstraint
from ringfence.errors import EngineLost, InvalidInput, SolverFailed
from ringfence.objects import Demonstrations, Problem
from ringfence.runs import driver, ray_engine
from ringfence.runs.backend import Files, Job, pack, unpack
from ringfence.runs.config import Config, make_solver, make_world
from ringfence.runs.engines import engine
from ringfence.runs.ray_bridge import heard, tell
from ringfence.runs.ray_engine import AHEAD, RayEngine, environment, names_in, own_modules
from small_worlds import config_of, eight_tasks, play, result, small

Finished = Callable[[str], Path]


# With a bridge that the test plays ---------------------------------------------------------------


class Played:
    """The other end of an engine's wire. ended: has the engine's process been waited for?"""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.engines, self.wire = Connection(ours.detach()), Connection(theirs.detach())

    def wait(self, timeout: float) -> int:
        return 0

    def nodes(self, cores: float, largest: float = 1.0) -> None:
        tell(self.wire, {"what": "nodes", "cores": cores, "largest": largest})

    def asked(self, solves: int) -> list[tuple[str, dict[str, Any], bytes]]:
        """What comes until so many solves were asked for, and shortly after."""
        found: list[tuple[str, dict[str, Any], bytes]] = []
        while self.wire.poll(0.1 if sum(f[0] == "solve" for f in found) >= solves else 20.0):
            head, body = heard(self.wire)
            found.append((head["what"], head, body))
        return found

    def solves(self, count: int = 1) -> list[tuple[int, str, Files]]:
        asked = [(h, unpack(body)) for what, h, body in self.asked(count) if what == "solve"]
        return [(head["number"], head["task"], files) for head, files in asked]

    def letter(self, number: int, **head: Any) -> None:
        files = head.pop("files", {})
        about = {"number": number, "where": "far away", "records": [], **head}
        parcel = pack({"head.json": json.dumps(about).encode(), **files})
        tell(self.wire, {"what": "letter"}, parcel)

    def done(self, number: int, files: Files) -> None:
        tell(self.wire, {"what": "done", "number": number}, pack(files))

    def lost(self, number: int, why: str) -> None:
        tell(self.wire, {"what": "lost", "number": number, "why": why})


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[RayEngine, Played]]:
    """An engine of one core."""
    other = Played()
    monkeypatch.setattr(ray_engine, "find_spec", lambda name: True)
    monkeypatch.setattr(RayEngine, "_start", lambda self, modules: (other, other.engines))
    other.nodes(1.0)
    tell(other.wire, {"what": "ready"})
    ray = RayEngine("ray", ())
    yield ray, other
    ray.close()


class Told(list[dict[str, Any]]):
    """Records, and the checkpoint's folder."""


def job_of(
    name: str, steps: int = 1, checkpoint: Path | None = None, told: Told | None = None
) -> Job:
    """A job of the small map's, as if it were of another task and had so many steps."""
    config = CONFIG
    task = replace(WORLD.tasks[0], name=name)
    problem = Problem(task, NONE, 0.0, None, (0, 1, 0))
    solver = replace(STEPPING, env_steps=steps)  # type: ignore[type-var]
    report = (told if told is not None else Told()).append
    return Job(config.world, solver, "solve", problem, {"name": name}, checkpoint, report)


CONFIG = config_of("grid")
WORLD = make_world(CONFIG.world)
NONE = LinearConstraint(WORLD.features, np.zeros(2), 0.0)
STEPPING = config_of("gym").solver


def waited(future: Future[Files], seconds: float = 10.0) -> Files:
    return future.result(seconds)


def test_the_longest_is_first_by_steps_and_later_by_the_time_that_it_took(
    played: tuple[RayEngine, Played],
) -> None:
    ray, other = played
    first = [ray.submit(job_of(f"first {n}")) for n in range(AHEAD)]
    for name, steps in (("short", 10), ("long", 1000), ("middle", 100)):
        ray.submit(job_of(name, steps))
    assert [task for _, task, _ in other.solves(2)] == ["first 0", "first 1"]
    other.letter(0, seconds=2.0)
    other.letter(1, seconds=9.0)
    other.done(0, {"solve.json": b"0"})
    assert waited(first[0]) == {"solve.json": b"0"}
    assert [task for _, task, _ in other.solves()] == ["long"]
    for n in range(AHEAD):
        ray.submit(job_of(f"first {n}"))
    order = []
    for number in (1, 2, 3, 4):
        other.done(number, {})
        order += [task for _, task, _ in other.solves()]
    assert order == ["middle", "short", "first 1", "first 0"]


def test_a_node_that_joins_late_is_given_work_at_once(played: tuple[RayEngine, Played]) -> None:
    ray, other = played
    for n in range(3 * AHEAD):
        ray.submit(job_of(str(n)))
    assert len(other.solves(AHEAD)) == AHEAD
    other.nodes(2.0)
    assert len(other.solves(AHEAD)) == AHEAD


def test_what_solves_have_in_common_travels_once(played: tuple[RayEngine, Played]) -> None:
    ray, other = played
    one, two = job_of("one"), job_of("two")
    two = replace(two, solver=one.solver)
    ray.submit(one)
    ray.submit(two)
    asked = other.asked(2)
    assert [what for what, _, _ in asked] == ["common", "solve", "solve"]
    files = unpack(asked[0][2])
    assert sorted(files) == ["constraint.json", "settings.json", "weights.safetensors"]
    assert json.loads(files["settings.json"])["world"]["kind"] == "grid"


def test_a_lost_solve_goes_on_elsewhere_from_its_last_checkpoint(
    played: tuple[RayEngine, Played], tmp_path: Path
) -> None:
    ray, other = played
    told, place = Told(), tmp_path / "checkpoints" / "it"
    place.parent.mkdir()
    future = ray.submit(job_of("it", checkpoint=place, told=told))
    ((number, _, files),) = other.solves()
    assert sorted(files) == ["order.json"]
    other.letter(number, records=[{"update": 1}], files={"checkpoint/state.json": b"{}"})
    other.lost(number, "node")
    ((again, _, files),) = other.solves()
    assert files["checkpoint/state.json"] == b"{}"
    assert (place / "state.json").read_bytes() == b"{}"
    # what the lost one still had to say is not the second one's
    other.letter(number, records=[{"update": 7}], files={"checkpoint/state.json": b"old"})
    other.done(again, {"solve.json": b"1"})
    assert waited(future) == {"solve.json": b"1"}
    assert (place / "state.json").read_bytes() == b"{}"
    assert told == [
        {"update": 1},
        {"event": "lost", "where": "far away", "why": "its node was lost"},
    ]


@pytest.mark.parametrize("why", ["process", "memory"])
def test_processes_that_die_over_and_over_are_told_unless_a_checkpoint_came_between(
    played: tuple[RayEngine, Played], tmp_path: Path, why: str
) -> None:
    ray, other = played
    future = ray.submit(job_of("it", checkpoint=tmp_path / "it"))
    for n in range(4):
        ((number, _, _),) = other.solves()
        if n == 1:
            other.letter(number, files={"checkpoint/state.json": b"{}"})
        other.lost(number, why)
    with pytest.raises(SolverFailed, match=r"3 processes died over 'it' .*engine.cores"):
        waited(future)


def test_a_lost_solve_is_the_next_again(played: tuple[RayEngine, Played]) -> None:
    """At the end of the queue it would keep an iteration waiting for it alone."""
    ray, other = played
    for n in range(AHEAD + 2):
        ray.submit(job_of(str(n)))
    assert [task for _, task, _ in other.solves(AHEAD)] == ["0", "1"]
    other.lost(1, "node")
    assert [task for _, task, _ in other.solves(1)] == ["1"]


def test_lost_nodes_are_nobodys_fault(played: tuple[RayEngine, Played]) -> None:
    ray, other = played
    future = ray.submit(job_of("it"))
    for _ in range(6):
        ((number, _, _),) = other.solves()
        other.lost(number, "node")
    ((number, _, _),) = other.solves()
    other.done(number, {})
    assert waited(future) == {}


def test_a_cluster_that_is_gone_ends_every_solve_in_one_line(
    played: tuple[RayEngine, Played],
) -> None:
    ray, other = played
    futures = [ray.submit(job_of(str(n))) for n in range(5)]
    other.wire.close()
    for future in futures:
        with pytest.raises(EngineLost, match=r"the cluster \(ray\) is gone .* is kept"):
            waited(future)
    with pytest.raises(EngineLost, match="is gone"):
        waited(ray.submit(job_of("later")))


def test_an_error_of_a_node_is_of_its_kind(played: tuple[RayEngine, Played]) -> None:
    ray, other = played
    future = ray.submit(job_of("it"))
    ((number, _, _),) = other.solves()
    other.done(number, {"error.json": b'{"kind": "InvalidInput", "message": "no such thing"}'})
    with pytest.raises(InvalidInput, match="no such thing"):
        waited(future)


def test_more_cores_than_any_node_has_are_refused(played: tuple[RayEngine, Played]) -> None:
    ray, _ = played
    with pytest.raises(InvalidInput, match=r"\[engine\] cores: a solve asks for 4, .* has 1"):
        ray.submit(replace(job_of("it"), cores=4.0))


# What is asked of Ray ----------------------------------------------------------------------------


@pytest.mark.parametrize("on", ["x,y", "spark", "ray://", "host:", "ray://host"])
def test_what_is_no_engine_is_refused(on: str) -> None:
    with pytest.raises(InvalidInput, match=f"--on {on}: an engine is 'ray'"):
        RayEngine(on, ())


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"--on ray needs Ray: pip install 'ringfence\[ray\]'"):
        RayEngine("ray", ())


def test_an_address_where_nobody_answers_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_engine, "find_spec", lambda name: True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(InvalidInput, match=f"127.0.0.1:{port}: nobody answers there"):
        RayEngine(f"127.0.0.1:{port}", ())


def test_threads_on_the_nodes_are_those_of_here_or_one() -> None:
    found = environment({"OMP_NUM_THREADS": "3", "XLA_FLAGS": "--a", "HOME": "mine"})
    assert found == {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "3",
        "MKL_NUM_THREADS": "1",
        "XLA_FLAGS": "--a",
    }


def test_only_modules_of_ones_own_that_were_imported_here_are_sent(tmp_path: Path) -> None:
    settings = Mortal(kind="mortal_solvers:mortal", notes="never_imported:make")
    assert set(names_in({"a": ["x.y:f", "no colon", {"b": "mortal_solvers:m"}]})) == {
        "x",
        "mortal_solvers",
    }
    names = [path.name for path in own_modules([settings])]
    assert "mortal_solvers.py" in names
    assert "test_ray_engine.py" in names  # its neighbour that was imported, and may be needed
    assert not any("never_imported" in name or "numpy" in name for name in names)
    installed = replace(settings, kind="gymnasium:make")
    assert own_modules([installed]) == []


# On clusters -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two() -> Iterator[Nodes]:
    """Two nodes of one core each."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    with nodes_of(2) as nodes:
        yield nodes


def driven(run: Path, config: Config, demos: Demonstrations, on: str, **more: Any) -> None:
    driver.create(run, config, demos)
    with engine(1, on, config.world, config.solver) as who:
        driver.drive(run, who, **more)


@pytest.mark.ray
@needs_ray
def test_a_game_of_eight_tasks_on_two_nodes_has_the_bytes_of_one_process(
    two: Nodes, tmp_path: Path
) -> None:
    """Its environment's module is on no node: it is sent."""
    config, demos = eight_tasks()
    driver.create(tmp_path / "here", config, demos)
    driver.drive(tmp_path / "here")
    events: list[dict[str, Any]] = []
    driven(tmp_path / "there", config, demos, two.address, on_event=events.append)
    assert result(tmp_path / "there") == result(tmp_path / "here")
    assert len({e["where"] for e in events if e["event"] == "began"}) == 2
    updates = [e for e in events if e["event"] == "update" and e["i"]]
    assert len(updates) == 2 * 8 * 2  # iterations, tasks, updates
    assert all(e["where"] for e in updates)


@pytest.mark.ray
@needs_ray
def test_a_node_lost_in_mid_solve_and_another_joined_change_no_byte(
    two: Nodes, tmp_path: Path
) -> None:
    under_way, run = threading.Event(), tmp_path / "run"

    def on_event(event: dict[str, Any]) -> None:
        if event["event"] == "update" and event["i"] == 1:
            under_way.set()

    with ThreadPoolExecutor(1) as thread:
        solver = {"env_steps": 40 * 16 * 16}
        done = thread.submit(
            driven, run, *small("gym", solver=solver), two.address, on_event=on_event
        )
        while not under_way.wait(1.0):
            assert not done.done(), done.result()
        two.lose()  # both: it runs on one of them
        two.lose()
        two.nodes += [two.join(), two.join()]
        done.result(300)
    play(tmp_path / "here", "gym", solver=solver)
    assert result(run) == result(tmp_path / "here")
    told = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [e["why"] for e in told if e["event"] == "lost"] == ["its node was lost"]
    began = [e["seconds"] for e in told if e["event"] == "began" and e["i"] == 1]
    again = [e["update"] for e in told if e["event"] == "update" and e["seconds"] > began[1]]
    assert len(began) == 2
    assert again  # from a checkpoint on: earlier updates are told in a burst


@pytest.mark.ray
@needs_ray
def test_processes_that_die_on_a_node_are_replaced(
    two: Nodes, tmp_path: Path, finished: Finished
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    solver = {"kind": "mortal_solvers:mortal", "notes": str(notes), "deaths": 2}
    driven(tmp_path / "run", *small("grid", solver=solver), two.address)
    assert len(list(notes.glob("0-1-0.*"))) == 3
    for name, content in result(finished("grid")).items():
        if name.startswith(("constraint/", "constraints/", "evidence")):
            assert result(tmp_path / "run")[name] == content, name


DRIVE = """
import sys
from pathlib import Path
from ringfence.runs import config as configs, driver
from ringfence.runs.engines import engine

if __name__ == "__main__":
    run, on = Path(sys.argv[1]), sys.argv[2]
    config = configs.read(run / "config.toml")
    configs.make_world(config.world)
    with engine(1, on, config.world, config.solver) as who:
        driver.drive(run, who, lambda event: print(event["event"], flush=True))
"""


def begun(run: Path, on: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", DRIVE, str(run), on],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.ray
@needs_ray
def test_a_driver_killed_and_resumed_while_the_cluster_lives_on_ends_in_the_same_bytes(
    two: Nodes, tmp_path: Path, finished: Finished
) -> None:
    run = tmp_path / "run"
    driver.create(run, *small("gym"))
    for events in (4, 7):
        process = begun(run, two.address)
        assert process.stdout is not None
        for _ in range(events):
            process.stdout.readline()
        process.kill()
        process.communicate()
    last = begun(run, two.address)
    assert last.wait(120) == 0, last.communicate()
    assert result(run) == result(finished("gym"))


@pytest.mark.ray
@needs_ray
def test_another_version_on_a_node_is_refused_before_anything_runs(
    two: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = ray_engine.versions()
    monkeypatch.setattr(ray_engine, "versions", lambda: {**mine, "numpy": "1.0"})
    with (
        pytest.raises(InvalidInput, match=rf"has numpy {mine['numpy']}, not 1.0: install there"),
        engine(1, two.address),
    ):
        pytest.fail("nothing runs")


@pytest.mark.ray
@needs_ray
def test_a_module_that_was_not_imported_here_is_not_there(two: Nodes) -> None:
    config = config_of("gym")
    task = make_world(config.world).tasks[0]
    none = LinearConstraint(task.features, np.zeros(1), 0.0)
    solver = make_solver(config.solver)
    problem = Problem(task, none, 0.0, None, (0, 0, 0))
    key = solver.key(problem, {})
    job = Job(config.world, config.solver, "free", problem, key, None, Told().append)
    ray = RayEngine(two.address, ())  # nothing is said of the world
    try:
        with pytest.raises(InvalidInput, match="own_cart"):
            ray.submit(job).result(120)
    finally:
        ray.close()


@pytest.mark.ray
@needs_ray
def test_a_cluster_that_goes_away_leaves_a_run_that_goes_on_here(tmp_path: Path) -> None:
    # long enough: it takes a second or more until the loss is noticed
    run, solver = tmp_path / "run", {"env_steps": 400 * 16 * 16}
    config, demos = small("gym", solver=solver, game={"iterations": 1})
    driver.create(run, config, demos)
    gone = threading.Event()
    with nodes_of(1) as nodes:

        def on_event(event: dict[str, Any]) -> None:
            if event["event"] == "update" and not gone.is_set():
                gone.set()
                nodes.cluster.head_node.kill_raylet()

        with (
            pytest.raises(EngineLost, match=r"is gone .*what was finished and checkpointed"),
            engine(1, nodes.address, config.world, config.solver) as who,
        ):
            driver.drive(run, who, on_event)
    driver.drive(run)
    play(tmp_path / "here", "gym", solver=solver, game={"iterations": 1})
    assert result(run) == result(tmp_path / "here")


# Who can reach a cluster of ours -----------------------------------------------------------------


def test_all_that_listens_below_a_process_is_found() -> None:
    """Else the tests below would say nothing."""
    code = """
import socket, sys
kind = getattr(socket, sys.argv[2])
both = kind == socket.AF_INET6
server = socket.create_server((sys.argv[1], 0), family=kind, dualstack_ipv6=both)
print("there", flush=True)
sys.stdin.read()
"""
    for address, kind, seen in (
        ("127.0.0.1", "AF_INET", "127.0.0.1"),
        ("127.0.0.2", "AF_INET", "127.0.0.2"),
        ("::ffff:127.0.0.3", "AF_INET6", "127.0.0.3"),
    ):
        with subprocess.Popen(
            [sys.executable, "-c", code, address, kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert {one.address for one in listening(process.pid)} == {seen}
            assert seen in {one.address for one in listening(os.getpid())}
            process.communicate()


def is_for_us_alone(root: int) -> None:
    """The cluster whose processes are below this one listens on loopback only, and tells nobody
    without a token which nodes it has."""
    found = listening(root)
    assert {"gcs_server", "raylet"} <= {one.name for one in found}
    assert {one.address for one in found} == {"127.0.0.1"}, found
    for port in {one.port for one in found if one.name == "gcs_server"}:
        assert asked(port, dict(os.environ)) == "AuthenticationError"


def asked(port: int, environment: dict[str, str]) -> str:
    """What somebody of this machine is answered who has no token: nodes, or an error's kind."""
    code = """
import sys
from ray._raylet import GcsClient

try:
    print("nodes" if GcsClient(address=sys.argv[1]).get_all_node_info(timeout=5) else "none")
except Exception as problem:
    print(type(problem).__name__)
"""
    stranger = {n: v for n, v in environment.items() if not n.startswith("RAY_")}
    return subprocess.run(
        [sys.executable, "-c", code, f"127.0.0.1:{port}"],
        env={**stranger, "RAY_AUTH_MODE": "disabled"},
        capture_output=True,
        text=True,
    ).stdout.strip()


@pytest.mark.ray
@needs_ray
def test_a_local_cluster_listens_on_loopback_only_and_asks_for_a_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Started as `--on ray` does, with variables set that would open it."""
    for name in [n for n in os.environ if n.startswith("RAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "known to everybody")
    with TemporaryDirectory() as elsewhere:  # no other test's cluster is noted there
        monkeypatch.setenv("TMPDIR", elsewhere)
        with engine(1, "ray") as who:
            assert isinstance(who, RayEngine)
            is_for_us_alone(who._bridge.pid)
            token = Path(who._home.name) / "token"
            assert token.stat().st_mode & 0o777 == 0o600
            assert len(token.read_text()) == 64
        assert not token.exists()


@pytest.mark.ray
@needs_ray
def test_clusters_of_the_tests_listen_on_loopback_only_and_ask_for_a_token() -> None:
    with nodes_of(1):
        is_for_us_alone(os.getpid())
