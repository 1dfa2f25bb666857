"""What every run directory has: one driver at a time, a line per event, demonstrations."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ringfence.demos import dataset as demonstrations
from ringfence.disk import (
    claim,
    fresh_partial,
    opened,
    read_json,
    require_plain,
    write_document,
    write_file,
    writing,
)
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations
from ringfence.runs.config import CONFIGS

Event = dict[str, Any]
OnEvent = Callable[[Event], None]

APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def quiet(event: Event) -> None:
    """Nobody is told."""


def create(run: Path, config: bytes, demos: Demonstrations) -> None:
    """A new run directory with config.toml and demonstrations: whole, or not at all."""
    with writing(run):
        partial = fresh_partial(run)
        try:
            demonstrations.save(demos, partial / "demos")
            write_file(partial / "config.toml", config)
            claim(partial, run)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def is_run(folder: Path) -> bool:
    """Does `ringfence resume` go on with this?"""
    return any((folder / name).is_file() for name in CONFIGS)


def is_free(folder: Path) -> bool:
    """Can a new folder take this name? An empty one gives way, unless it is the working one."""
    empty = folder.is_dir() and folder.name != "" and not any(folder.iterdir())
    return empty or not folder.exists()


def refuse_existing(run: Path) -> None:
    if (run / "summary.json").is_file():
        raise InvalidInput(f"{run}: it exists already and is finished; choose another --out")
    if is_run(run):
        raise InvalidInput(
            f"{run}: it exists already; go on with 'ringfence resume {run}' or choose another --out"
        )
    if not is_free(run):
        raise InvalidInput(f"{run}: it exists and is not a run; choose another --out")


def read_demos(run: Path, content_hash: str) -> Demonstrations:
    """The run's demonstrations, if they are those that it was started with."""
    demos = demonstrations.load(run / "demos")
    if demonstrations.content_hash(demos) != content_hash:
        raise InvalidInput(
            f"{run / 'demos'}: not the demonstrations that this run was started with; restore them"
        )
    return demos


def teller(run: Path, on_event: OnEvent) -> OnEvent:
    """Appends events to metrics.jsonl, with the seconds since now, and passes them on."""
    began = time.monotonic()

    def tell(event: Event) -> None:
        event = {"seconds": round(time.monotonic() - began, 3), **event}
        path = run / "metrics.jsonl"
        with writing(path), open(opened(path, APPEND), "a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")
        on_event(event)

    return tell


def tell_damaged(tell: OnEvent, what: str, so: str = "it is made again") -> None:
    """Something was damaged since it was written; what is done about it."""
    tell({"event": "damaged", "what": what, "so": so})


@contextmanager
def only_driver(run: Path) -> Iterator[None]:
    """A lock that the operating system drops when the process ends, however it ends.

    Nothing in the run may lead out of it.
    """
    require_plain(run)
    with open(opened(run / ".lock", APPEND), "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidInput(f"{run}: another process is driving this run; let it end") from None
        yield


class Clock:
    """Seconds of work that a result took, over all its sessions: timing.json.

    What a killed session did after it was last written is lost and done again, and so counts once.
    A file that was damaged counts nothing, and is told.
    """

    def __init__(self, path: Path, tell: OnEvent) -> None:
        self._path, self._began = path, time.monotonic()
        self._before = 0.0
        if path.is_file():
            try:
                self._before = float(read_json(path)["seconds"])
            except (InvalidInput, KeyError, TypeError, ValueError):
                tell_damaged(tell, str(path), "the clock begins anew")
        self._ends: list[float] = []

    def end_iteration(self) -> None:
        self._ends.append(round(self._seconds(), 3))

    def write(self) -> None:
        document = {"seconds": round(self._seconds(), 3), "iteration_end_s": self._ends}
        write_document(self._path, document)

    def _seconds(self) -> float:
        return self._before + time.monotonic() - self._began
