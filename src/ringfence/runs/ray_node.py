"""A node's side of Ray: one function that solves the files of a job, and what it tells meanwhile.

A node needs the installed package and nothing else. Files come and go as bytes; checkpoints are
handed on with the progress, so that a lost node costs a checkpoint's interval.
"""

from __future__ import annotations

import json
import platform
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ringfence.compilation import keep_compiled
from ringfence.disk import read_folder
from ringfence.errors import InvalidInput, RingfenceError, SolverFailed
from ringfence.runs.backend import Files, answer, error_files, pack, unpack
from ringfence.runs.solving import CHECKPOINT, FOLDER, drive_folder

#: Whose numbers can reach a result.
PACKAGES = (
    *("numpy", "scipy", "highspy", "jax", "jaxlib", "optax", "mujoco", "gymnasium", "safetensors"),
)
#: Seconds between two letters about a solve, while it reports faster than that. Each letter costs
#: the node, the mailbox, the bridge and the driver time, and a checkpoint is its largest part; what
#: a lost node can cost beyond a checkpoint's interval is this much work.
POST_EVERY = 0.5


# Versions ----------------------------------------------------------------------------------------


@cache
def versions() -> dict[str, str]:
    """Of all that must be the same where a run is driven and where it is solved."""
    found = {"python": platform.python_version(), "ringfence": version("ringfence")}
    source = sha256()
    package = Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        source.update(str(path.relative_to(package)).encode() + path.read_bytes())
    found["ringfence's files"] = source.hexdigest()[:12]
    return found | {name: _installed(name) for name in PACKAGES}


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def require_versions(expected: Mapping[str, str]) -> None:
    """Other versions may give other bytes: refuse them before anything runs."""
    here = versions()
    wrong = [f"{name} {here.get(name)}, not {v}" for name, v in expected.items() if here[name] != v]
    if wrong:
        raise InvalidInput(
            f"node {socket.gethostname()} has {'; '.join(wrong)}: install there what the driver "
            f"has (pip install ringfence=={expected['ringfence']}, with its requirements.lock)"
        )


def look(expected: str) -> bytes:
    """A node's first answer: nothing, or why it can't be used."""
    try:
        require_versions(json.loads(expected))
    except RingfenceError as problem:
        return str(problem).encode()
    return b""


# What is told meanwhile --------------------------------------------------------------------------


class Post:
    """Records of one solve, and its checkpoints as they are saved, on their way to the driver.

    send(letter, wait): to the mailbox.
    """

    def __init__(self, number: int, where: str, checkpoint: Path, send: Any) -> None:
        self._number, self._where, self._send = number, where, send
        self._checkpoint, self._sent = checkpoint, _state(checkpoint)
        self._records: list[dict[str, Any]] = []
        self._began = self._last = time.monotonic()
        self.report({"event": "began"})
        self.flush()

    def report(self, record: dict[str, Any]) -> None:
        self._records.append({**record, "where": self._where})
        if time.monotonic() - self._last >= POST_EVERY:
            self.flush(_state(self._checkpoint) != self._sent)

    def flush(self, checkpoint: bool = False, last: bool = False) -> None:
        files: dict[str, bytes] = {}
        if checkpoint:
            self._sent = _state(self._checkpoint)
            files = {CHECKPOINT + n: c for n, c in read_folder(self._checkpoint).items()}
        head = {"number": self._number, "where": self._where, "records": self._records}
        if last:
            head["seconds"] = time.monotonic() - self._began
        self._send(pack({"head.json": json.dumps(head).encode(), **files}), last)
        self._records, self._last = [], time.monotonic()


def _state(folder: Path) -> list[tuple[str, int, int]]:
    """Changes when something is saved there."""
    files = [(p, p.stat()) for p in sorted(folder.rglob("*")) if p.is_file()]
    return [(p.name, s.st_mtime_ns, s.st_size) for p, s in files]


# The function ------------------------------------------------------------------------------------


def solve(expected: str, common: bytes, own: bytes, number: int, mailbox: Any) -> bytes:
    """The answer to a job's files, as a parcel. mailbox: the handle of a `Mailbox`."""
    import ray

    def send(letter: bytes, wait: bool) -> None:
        try:
            sent = mailbox.put.remote(letter)
            if wait:  # so that the last letter is there before the answer
                ray.get(sent)
        except ray.exceptions.RayError:  # its node was lost: the answer is what counts
            pass

    keep_compiled()
    node = ray.get_runtime_context().get_node_id()[:6]
    where = f"{socket.gethostname()} {node}"
    try:
        require_versions(json.loads(expected))
        return pack(solved({**unpack(common), **unpack(own)}, number, where, send))
    except RingfenceError as problem:
        return pack(error_files(problem))
    except Exception as problem:  # whatever it is, it travels in words
        traceback.print_exc(file=sys.stderr)
        said = "".join(traceback.format_exception(problem)[-3:]).strip()
        return pack(error_files(SolverFailed(f"on {where}: {said}")))


def solved(files: Files, number: int, where: str, send: Any) -> Files:
    """A problem's solution, or the folder of a single one with what came of it."""
    with TemporaryDirectory(prefix="ringfence-") as home:
        folder = Path(home) / FOLDER
        for name, content in files.items():
            if name.startswith((CHECKPOINT, FOLDER)):
                path = folder / name.removeprefix(FOLDER)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
        post = Post(number, where, folder / CHECKPOINT, send)
        if "order.json" in files:
            found = answer(files, folder / CHECKPOINT, post.report)
        else:
            found = drive_folder(folder, post.report)
        post.flush(last=True)
        return found
