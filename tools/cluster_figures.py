"""The figures of docs/scale.md about clusters, on local nodes that only this machine can reach.

    python tools/cluster_figures.py game [600]  8 tasks, trainings: one node, two, one lost
    python tools/cluster_figures.py study [600] 6 seeds, trainings: one node, two
    python tools/cluster_figures.py kills       8 tasks, trainings: the driver killed 10 times
    python tools/cluster_figures.py sleeping    1,000 solves of 1 s on two nodes of 8 slots

Nodes have one core each and are pinned to it. Start-up is not counted: the clock begins when the
engine stands and, in games, when each node has trained. Other bytes end it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS))

import tomli_w  # noqa: E402

import ray_nodes  # noqa: E402
import sleeping_solver  # noqa: E402
from ringfence.demos import dataset  # noqa: E402
from ringfence.objects import Demonstrations  # noqa: E402
from ringfence.reproduce import run as reproduce  # noqa: E402
from ringfence.runs import config as configs  # noqa: E402
from ringfence.runs import driver  # noqa: E402
from ringfence.runs.engines import engine  # noqa: E402
from small_worlds import config_of, demos_of, document, eight_tasks, result  # noqa: E402

UPDATES, KILLS, TASKS, SLOTS = 120, 10, 1_000, 8


def ppo(updates: int) -> dict[str, Any]:
    return {"env_steps": updates * 16 * 16, "checkpoint_every": 5}


class Pinned(ray_nodes.Nodes):
    """Each node on a core of its own; one that joins has the lost one's."""

    def join(self, cores: int = 1) -> Any:
        mine = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {sorted(mine)[len(self.cluster.worker_nodes) % len(mine)]})
        try:
            return super().join(cores)
        finally:
            os.sched_setaffinity(0, mine)


@contextmanager
def pinned(count: int) -> Iterator[Any]:
    ray_nodes.Nodes, before = Pinned, ray_nodes.Nodes  # type: ignore[misc]
    try:
        with ray_nodes.nodes_of(count) as nodes:
            yield nodes
    finally:
        ray_nodes.Nodes = before  # type: ignore[misc]


def same(one: Path, other: Path) -> None:
    a, b = result(one), result(other)
    if a != b:
        sys.exit(f"other bytes: {sorted(n for n in a.keys() | b.keys() if a.get(n) != b.get(n))}")


def events(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


# Games -------------------------------------------------------------------------------------------


def timed_game(
    run: Path, nodes: Any, updates: int, lose: bool = False
) -> tuple[float, float | None]:
    """Seconds of a game of 8 tasks; lose: a node in its first solve, and another joins, with the
    seconds that this one took to start up, from the loss to its first update."""
    config, demos = eight_tasks(solver=ppo(updates))
    warm, _ = eight_tasks(solver=ppo(2))
    far, lost_at = threading.Event(), 0.0
    first: dict[str, float] = {}  # each node's first update, also before the clock begins

    def on_event(event: dict[str, Any]) -> None:
        if event["event"] == "update":
            first.setdefault(event["where"], time.monotonic())
            if event["i"] == 1 and event["update"] >= 20:
                far.set()

    driver.create(run, config, demos)
    driver.create(run.with_name(f"{run.name}-warm"), warm, demos)
    with (
        engine(1, nodes.address, config.world, config.solver) as who,
        ThreadPoolExecutor(1) as thread,
    ):
        driver.drive(run.with_name(f"{run.name}-warm"), who, on_event)
        begun = time.monotonic()
        played = thread.submit(driver.drive, run, who, on_event)
        if lose:
            far.wait()
            lost_at = time.monotonic()
            nodes.lose()
            nodes.nodes.append(nodes.join())  # by the main thread: Ray handles signals
        played.result()
        seconds = time.monotonic() - begun
    joined = len(first) == 3  # two of before, and the one that joined
    return seconds, max(first.values()) - lost_at if lose and joined else None


def game(home: Path, updates: int = UPDATES) -> None:
    driver.create(home / "here", *eight_tasks(solver=ppo(updates)))
    driver.drive(home / "here")
    with pinned(1) as nodes:
        one, _ = timed_game(home / "one", nodes, updates)
    with pinned(2) as nodes:
        two, _ = timed_game(home / "two", nodes, updates)
    with pinned(2) as nodes:
        lost, start_up = timed_game(home / "lost", nodes, updates, lose=True)
    for name in ("one", "two", "lost"):
        same(home / "here", home / name)
    losses = [e for e in events(home / "lost") if e["event"] == "lost"]
    alone = "not seen" if start_up is None else f"{start_up:.1f} s"
    print(f"one node {one:.1f} s, two {two:.1f} s ({two / one:.2f})")
    print(
        f"one lost, one joined: {lost:.1f} s ({lost / two:.2f} of two), {len(losses)} solves lost; "
        f"from the loss to the first update of the one that joined: {alone}"
    )


def study(home: Path, updates: int = UPDATES) -> None:
    tables = document("gym", solver=ppo(updates))
    base = {k: v for k, v in tables.items() if k not in ("command", "seed")}
    file = {
        "about": "carts",
        "kind": "game",
        "seeds": 6,
        "base": {**base, "demonstrations": {"path": "shown"}},
        "variants": {"plain": {}},
        "table": [{"rows": "iterates", "columns": [["seed", "seed"]]}],
    }
    seconds = {}
    for count in (1, 2):
        place = home / str(count)
        place.mkdir()
        dataset.save(demos_of("gym"), place / "shown")
        (place / "carts.toml").write_text(tomli_w.dumps(file))
        begun: list[float] = []
        with chdir(place), pinned(count) as nodes:
            reproduce(
                "carts.toml", on=nodes.address, say=lambda _, b=begun: b.append(time.monotonic())
            )
            seconds[count] = time.monotonic() - begun[0]
    for one in sorted((home / "1" / "runs/reproduce/games").iterdir()):
        same(one, home / "2" / "runs/reproduce/games" / one.name)
    print(f"one node {seconds[1]:.1f} s, two {seconds[2]:.1f} s ({seconds[2] / seconds[1]:.2f})")


# The driver is killed ----------------------------------------------------------------------------

DRIVE = """
import sys
from pathlib import Path
from ringfence.runs import config as configs, driver
from ringfence.runs.engines import engine

run, on = Path(sys.argv[1]), sys.argv[2]
config = configs.read(run / "config.toml")
configs.make_world(config.world)
with engine(1, on, config.world, config.solver) as who:
    driver.drive(run, who, lambda event: print(event["event"], flush=True))
"""


def kills(home: Path) -> None:
    config, demos = eight_tasks(solver=ppo(UPDATES))
    for name in ("here", "run"):
        driver.create(home / name, config, demos)
    driver.drive(home / "here")
    run, rng, killed = home / "run", random.Random(0), 0
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    with pinned(2) as nodes:
        environment |= ray_nodes.alone()
        while True:
            command = [sys.executable, "-c", DRIVE, str(run), nodes.address]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
            assert process.stdout is not None
            if killed < KILLS:
                wanted = rng.randrange(40, 200)  # of updates, from this start on
                for line in process.stdout:
                    wanted -= line.strip() == "update"
                    if not wanted:
                        process.kill()
                        killed += 1
                        break
            process.stdout.read()
            if process.wait() == 0:
                break
            if process.returncode != -9:
                sys.exit(f"the driver ended with {process.returncode}")
    same(home / "here", run)
    solved = Counter(
        (e["i"], e["k"]) for e in events(run) if e["event"] == "solved" and not e["known"]
    )
    keys = Counter(p.read_bytes() for p in (run / "ledger").glob("*/solve.json"))
    twice = sum(n > 1 for n in (*solved.values(), *keys.values()))
    print(f"killed {killed} times, same bytes; ledger: {len(keys)} solves, {twice} twice")


# A thousand --------------------------------------------------------------------------------------


def sleepers(tasks: int) -> tuple[configs.Config, Demonstrations]:
    names = [f"cart {n}" for n in range(tasks)]
    given = demos_of("gym")
    config = config_of(
        "gym",
        world={"tasks": [{"name": n, "kwargs": {"pay": 1.0 + i}} for i, n in enumerate(names)]},
        game={"method": "mt-icl", "iterations": 1},
        player={"kind": "payoff", "expert_budget": 0.5},
    )
    opening = replace(config.opening, kind="none")
    config = replace(config, solver=sleeping_solver.Config(), opening=opening)
    return config, replace(given, tasks=tuple(replace(given.tasks[0], task=n) for n in names))


def memory(pid: int | str, field: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def processor(pid: int) -> float:
    after = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after[11]) + int(after[12])) / os.sysconf("SC_CLK_TCK")


def sleeping(home: Path) -> None:
    config, demos = sleepers(TASKS)
    driver.create(home / "run", config, demos)
    driver.create(home / "warm", *sleepers(8 * SLOTS))
    with ray_nodes.nodes_of(0) as nodes:
        for _ in range(2):
            nodes.join(SLOTS)
        with engine(1, nodes.address, config.world, config.solver) as who:
            driver.drive(home / "warm", who)
            bridge = who._bridge.pid  # type: ignore[union-attr]
            before, mine, its = memory("self", "VmRSS"), time.process_time(), processor(bridge)
            begun = time.monotonic()
            driver.drive(home / "run", who)
            wall, mine = time.monotonic() - begun, time.process_time() - mine
            its, held = processor(bridge) - its, memory(bridge, "VmHWM")
    told = [e for e in events(home / "run") if e.get("i") == 1]
    first = min(e["seconds"] for e in told if e["event"] == "began")
    last = max(e["seconds"] for e in told if e["event"] == "solved")
    busy = TASKS * config.solver.seconds / (2 * SLOTS * (last - first))
    print(
        f"solve seconds / (slots x wall): {busy:.3f} ({last - first:.1f} s; the call {wall:.1f} s)"
    )
    print(f"driver {1e3 * mine / TASKS:.1f} ms a task, bridge {1e3 * its / TASKS:.1f} ms")
    print(f"driver {before:.0f} MB, then {memory('self', 'VmHWM'):.0f} MB; bridge {held:.0f} MB")


if __name__ == "__main__":
    measures: dict[str, Any] = {"game": game, "study": study, "kills": kills, "sleeping": sleeping}
    name, *numbers = sys.argv[1:] or [""]
    if name not in measures or (numbers and name not in ("game", "study")):
        sys.exit(f"one of {', '.join(measures)}; after game and study: updates of a training")
    with TemporaryDirectory(prefix="cluster-figures-") as folder:
        measures[name](Path(folder), *map(int, numbers))
