"""Solves on the machines of a Ray cluster: the driver's side.

    RayEngine  -- jobs, longest first -->  ray_bridge (a process)  -- Ray -->  ray_node.solve
               <-- progress, checkpoints, answers, losses --

All that travels are bytes of our own files and the name of one function. A solve whose node is lost
goes on elsewhere from its last checkpoint, which is on the driver's disk by then; Ray itself
repeats nothing. The driver alone writes the ledger.
"""

from __future__ import annotations

import heapq
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.util import find_spec
from itertools import count
from multiprocessing.connection import Connection
from operator import is_
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from ringfence.disk import read_folder, write_folder
from ringfence.errors import EngineLost, InvalidInput, RingfenceError, SolverFailed
from ringfence.runs.backend import MOST_DEATHS, Files, Work, pack, settle, unpack
from ringfence.runs.ray_bridge import heard, tell
from ringfence.runs.ray_node import versions
from ringfence.runs.solving import CHECKPOINT

#: Solves that are given to Ray, per core: those beyond the first wait there, so that no core does.
AHEAD = 2
#: Threads on the nodes are as many as here; where nobody says, one: others fight the simulators.
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
#: Seconds to reach a cluster's address, and for its nodes to answer.
REACH, START = 10.0, 240.0
#: What solves have in common is kept on the cluster for so many iterations (of games at once).
KEPT = 64
WHY = {
    "node": "its node was lost",
    "process": "its process died",
    "memory": "its node ran out of memory",
}
BRIDGE = "from ringfence.runs.ray_bridge import main; main()"


@dataclass(eq=False)
class Ticket:
    """A job on its way. deaths: of processes that did not come further than a checkpoint."""

    job: Work
    done: Future[Files]
    order: int
    deaths: int = 0
    where: str = ""


class RayEngine:
    """A backend. on: "ray" (the cluster that is there, or a local one), or a cluster's address;
    settings: of worlds and solvers."""

    def __init__(self, on: str, settings: Sequence[Any]) -> None:
        require_ray(on)
        self._on, self._lock = on, threading.RLock()
        self._numbers, self._order = count(), count()
        self._waiting: list[tuple[tuple[bool, float], int, Ticket]] = []
        self._under_way: dict[int, Ticket] = {}
        self._seconds: dict[tuple[int, int, str], float] = {}
        self._common: dict[str, tuple[Any, ...]] = {}
        self._cores = self._largest = 0.0
        self._over: RingfenceError | None = None
        self._home = TemporaryDirectory(prefix="ringfence-ray-")
        self._bridge, self._wire = self._start(own_modules(settings))
        self._await_ready()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _start(self, modules: Sequence[Path]) -> tuple[subprocess.Popen[bytes], Connection]:
        sent = Path(self._home.name) / "modules"
        sent.mkdir()
        for path in modules:
            target = sent / path.name
            if path.is_dir():
                shutil.copytree(path, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(path, target)
        asked = {
            "on": self._on,
            "versions": versions(),
            "environment": environment(os.environ),
            "modules": str(sent) if modules else "",
            "home": self._home.name,
        }
        ours, theirs = socket.socketpair()
        with theirs:
            bridge = subprocess.Popen(
                [sys.executable, "-c", BRIDGE, str(theirs.fileno()), json.dumps(asked)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
                start_new_session=True,  # a Ctrl-C is for the driver
            )
        return bridge, Connection(ours.detach())

    def _await_ready(self) -> None:
        try:
            while True:
                if not self._wire.poll(START):
                    raise InvalidInput(f"--on {self._on}: no answer from Ray in {START:g} s")
                head, _ = heard(self._wire)
                if head["what"] == "ready":
                    return
                if head["what"] == "nodes":
                    self._counted(head)
                else:
                    raise InvalidInput(f"--on {self._on}: {head['message']}")
        except (EOFError, OSError):
            raise InvalidInput(f"--on {self._on}: Ray did not start") from None
        except InvalidInput:
            self.close()
            raise

    # Jobs

    def submit(self, job: Work) -> Future[Files]:
        ticket = Ticket(job, Future(), next(self._order))
        with self._lock:
            if job.cores > self._largest:
                raise InvalidInput(
                    f"[engine] cores: a solve asks for {job.cores:g}, the largest node of "
                    f"{self._on} has {self._largest:g}"
                )
            self._wait(ticket)
            self._dispatch()
            if self._over is not None:
                self._end(self._over)
        return ticket.done

    def _wait(self, ticket: Ticket) -> None:
        """Longest first: by what the last solve of its kind took; before there was one, by its
        steps, and before the others. Among equals in order: one that was lost is next again."""
        seconds = self._seconds.get(kind_of(ticket.job))
        rank = (False, -float(ticket.job.steps)) if seconds is None else (True, -seconds)
        heapq.heappush(self._waiting, (rank, ticket.order, ticket))

    def _dispatch(self) -> None:
        while self._over is None and self._waiting:
            asked = sum(ticket.job.cores for ticket in self._under_way.values())
            job = self._waiting[0][2].job
            if self._under_way and asked + job.cores > AHEAD * self._cores:
                return
            ticket, number = heapq.heappop(self._waiting)[2], next(self._numbers)
            head = {"what": "solve", "number": number, "cores": job.cores, "task": job.task}
            saved = {} if job.checkpoint is None else read_folder(job.checkpoint)
            own = {**job.own_files(), **{CHECKPOINT + n: c for n, c in saved.items()}}
            self._under_way[number] = ticket
            self._tell({**head, "common": self._share(job)}, pack(own))

    def _share(self, job: Work) -> str:
        """The name of what it has in common with others, which travels once."""
        for name, common in self._common.items():
            if len(common) == len(job.common) and all(map(is_, common, job.common)):
                return name
        parcel = pack(job.common_files())
        name = sha256(parcel).hexdigest()
        if name not in self._common:
            self._tell({"what": "common", "name": name}, parcel)
        self._common[name] = job.common
        if len(self._common) > KEPT:
            oldest = next(iter(self._common))
            del self._common[oldest]
            self._tell({"what": "forget", "name": oldest})
        return name

    def _tell(self, head: dict[str, Any], body: bytes = b"") -> None:
        with suppress(OSError):  # the bridge has ended, which the listener hears
            tell(self._wire, head, body)

    # Answers

    def _listen(self) -> None:
        try:
            while True:
                head, body = heard(self._wire)
                if head["what"] == "gone":
                    self._end(self._lost(head["message"]))
                    return
                self._hear(head, body)
        except (EOFError, OSError):
            self._end(self._lost("no connection"))
        except BaseException as problem:  # else nobody would ever answer
            self._end(EngineLost(f"{type(problem).__name__}: {problem}"))
            raise

    def _lost(self, why: str) -> EngineLost:
        return EngineLost(
            f"the cluster ({self._on}) is gone ({why}); what was finished and checkpointed is kept"
        )

    def _hear(self, head: dict[str, Any], body: bytes) -> None:
        if head["what"] == "nodes":
            with self._lock:
                self._counted(head)
                self._dispatch()
            return
        if head["what"] == "letter":
            self._read(body)
            return
        with self._lock:
            ticket = self._under_way.pop(head["number"])
            if head["what"] != "lost":
                self._dispatch()
        if head["what"] == "done":
            settle(ticket.done, unpack(body))
        elif head["what"] == "failed":
            ticket.done.set_exception(SolverFailed(head["why"]))
        else:
            self._again(ticket, head["why"])

    def _counted(self, head: Mapping[str, Any]) -> None:
        self._cores, self._largest = head["cores"], head["largest"]

    def _read(self, letter: bytes) -> None:
        """What a node tells of a solve under way; of one that was given up nothing counts."""
        files = unpack(letter)
        head = json.loads(files.pop("head.json"))
        ticket = self._under_way.get(head["number"])
        if ticket is None:
            return
        ticket.where = head["where"]
        for record in head["records"]:
            ticket.job.report(record)
        if "seconds" in head:
            self._seconds[kind_of(ticket.job)] = head["seconds"]
        saved = {name.removeprefix(CHECKPOINT): content for name, content in files.items()}
        if saved and ticket.job.checkpoint is not None:
            write_folder(ticket.job.checkpoint, saved)
            ticket.deaths = 0

    def _again(self, ticket: Ticket, why: str) -> None:
        """A lost node is nobody's fault; a process that dies may be its solve's."""
        ticket.job.report({"event": "lost", "where": ticket.where, "why": WHY[why]})
        ticket.deaths += why != "node"
        if ticket.deaths >= MOST_DEATHS:
            ticket.done.set_exception(
                SolverFailed(
                    f"{MOST_DEATHS} processes died over {ticket.job.task!r} ({WHY[why]}, on "
                    f"{ticket.where}); what was solved is kept. If it takes more memory than its "
                    "share of a node, let it ask for more: --set engine.cores=2"
                )
            )
            return
        with self._lock:
            self._wait(ticket)
            self._dispatch()

    # The end

    def _end(self, problem: RingfenceError) -> None:
        with self._lock:
            self._over = self._over or problem
            open_tickets = [*self._under_way.values(), *(t for _, _, t in self._waiting)]
            self._under_way.clear()
            self._waiting.clear()
        for ticket in open_tickets:
            ticket.done.set_exception(self._over)

    def close(self) -> None:
        """Nobody waits for what is still being solved: the bridge ends, and Ray ends its solves."""
        with self._lock:
            self._over = self._over or EngineLost(f"{self._on}: closed")
        with suppress(OSError):
            self._wire.close()
        try:
            self._bridge.wait(REACH)
        except subprocess.TimeoutExpired:
            self._bridge.kill()
        self._home.cleanup()


def kind_of(job: Work) -> tuple[int, int, str]:
    """Solves of one kind take about as long as each other."""
    return id(job.common[0]), job.steps, job.task


# What is asked of Ray ----------------------------------------------------------------------------


def require_ray(on: str) -> None:
    """Refuse, before anything is written, what can't be an engine or can't be reached."""
    address = re.fullmatch(r"(?:ray://)?([^:/,\s]+):(\d+)", on)
    if on not in ("ray", "auto") and address is None:
        raise InvalidInput(
            f"--on {on}: an engine is 'ray' (the cluster that is there, or a local one), "
            "'ray://host:port' or a cluster's 'host:port'"
        )
    if find_spec("ray") is None:
        raise InvalidInput(f"--on {on} needs Ray: pip install 'ringfence[ray]'")
    if address is not None:
        try:
            socket.create_connection((address[1], int(address[2])), REACH).close()
        except OSError as problem:
            raise InvalidInput(
                f"--on {on}: nobody answers there ({problem}); is the cluster up ('ray status')?"
            ) from None


def environment(here: Mapping[str, str]) -> dict[str, str]:
    """Variables that are the same on the nodes as here."""
    numbers = {n: v for n, v in here.items() if n.startswith(("JAX_ENABLE", "JAX_PLATFORM", "XLA"))}
    return {**{name: here.get(name, "1") for name in THREADS}, **numbers}


def own_modules(settings: Sequence[Any]) -> list[Path]:
    """The user's own modules that the settings name ("module:function"), and their neighbours.

    Only what was imported here: whoever let it run here lets it run there. Installed packages
    are to be installed there, too.
    """
    named = {name for one in settings for name in names_in(asdict(one))}
    found = [sys.modules[name] for name in named if name in sys.modules]
    homes = {path.parent for path in map(place_of, found) if path is not None}
    top = [m for name, m in list(sys.modules.items()) if "." not in name and name != "__main__"]
    places = {path for path in map(place_of, top) if path is not None and path.parent in homes}
    return sorted(places)


def names_in(value: Any) -> Iterator[str]:
    """The top-level modules of all "module:function" in plain values."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", value):
        yield value.partition(":")[0].partition(".")[0]
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from names_in(inner)
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from names_in(inner)


def place_of(module: ModuleType) -> Path | None:
    """A module's file, or a package's folder; None if it is installed, or has none."""
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py"):
        return None
    path = Path(file).resolve()
    path = path.parent if path.name == "__init__.py" else path
    installed = {Path(p).resolve() for p in sysconfig.get_paths().values()}
    ours = Path(__file__).resolve().parents[1]
    inside = any(part in installed or part.name == "site-packages" for part in path.parents)
    return None if inside or path == ours else path
