"""Local Ray clusters for tests: nodes of one core each, which can be lost and joined."""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from ringfence.runs.ray_local import for_us_alone

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
HERE = {"node_ip_address": "127.0.0.1", "include_dashboard": False}


@cache
def alone() -> dict[str, str]:
    """For all clusters of this process: Ray reads a token once."""
    home = TemporaryDirectory(prefix="ray-nodes-")
    atexit.register(home.cleanup)
    return for_us_alone(Path(home.name))


class Nodes:
    """A head without cores, where drivers connect, and nodes with one core each."""

    def __init__(self, nodes: int, **config: Any) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "_system_config": config, **HERE}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes = [self.join() for _ in range(nodes)]

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    def join(self, cores: int = 1) -> Any:
        return self.cluster.add_node(num_cpus=cores, wait=True, **HERE)

    def lose(self) -> None:
        self.cluster.remove_node(self.nodes.pop(), allow_graceful=False)

    def close(self) -> None:
        self.cluster.shutdown()


@contextmanager
def nodes_of(count: int, **config: Any) -> Iterator[Nodes]:
    """Their processes have this one's priority: else a busy machine would starve them."""
    before = dict(os.environ)
    os.environ |= {"RAY_worker_niceness": "0", **alone()}
    try:
        from ray._private.ray_constants import ENABLE_RAY_CLUSTER

        assert not ENABLE_RAY_CLUSTER, "Ray was imported before, and would listen everywhere"
        nodes = Nodes(count, **config)
        try:
            yield nodes
        finally:
            nodes.close()
    finally:
        os.environ.clear()
        os.environ.update(before)


# Who listens -------------------------------------------------------------------------------------

LISTEN = "0A"  # a state in /proc/net/tcp


class Listens(NamedTuple):
    """A process that takes connections."""

    name: str
    address: str
    port: int


def listening(root: int) -> set[Listens]:
    """All of this process and those below it (on Linux).

    Addresses of version 4 that are written as one of version 6 are told as the former.
    """
    sockets = {
        inode: where
        for table in ("tcp", "tcp6")
        for *where, state, inode in map(entry, rows(Path("/proc/net") / table))
        if state == LISTEN
    }
    return {
        Listens(command(pid), *sockets[inode])
        for pid in family(root)
        for inode in inodes(pid) & sockets.keys()
    }


def rows(table: Path) -> list[str]:
    return table.read_text().splitlines()[1:] if table.exists() else []


def entry(row: str) -> tuple[str, int, str, str]:
    """Address and port here, state and inode of a row of /proc/net/tcp or tcp6."""
    fields = row.split()
    local, _, port = fields[1].partition(":")
    words = re.findall("." * 8, local)
    packed = b"".join(bytes.fromhex(word)[::-1] for word in words)  # words are little-endian
    address = ip_address(packed)
    plain = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(plain or address), int(port, 16), fields[3], fields[9]


def family(root: int) -> set[int]:
    """A process and all below it, with those whose parent has ended but that are of its session."""
    about = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            after = path.read_text().rpartition(")")[2].split()
            about[int(path.parent.name)] = (int(after[1]), int(after[3]))  # parent, session
    found, size = {root}, 0
    while len(found) > size:
        size = len(found)
        found |= {pid for pid, (parent, session) in about.items() if {parent, session} & found}
    return found


def inodes(pid: int) -> set[str]:
    names = set()
    with suppress(OSError):
        for one in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                names.add(os.readlink(one))
    return {name[len("socket:[") : -1] for name in names if name.startswith("socket:[")}


def command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return "?"
