"""Local Ray clusters for tests: nodes of one core each, which can be lost and joined."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
#: Nobody else can reach them. Ray would listen on all interfaces, and takes 127.0.0.1 for the
#: machine's address, here and where a driver connects, unless this is set before it is imported.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
HERE = {"node_ip_address": "127.0.0.1", "include_dashboard": False}


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
    os.environ |= {"RAY_worker_niceness": "0", "RAY_USAGE_STATS_ENABLED": "0", **LOOPBACK}
    nodes = Nodes(count, **config)
    try:
        yield nodes
    finally:
        nodes.close()
        os.environ.clear()
        os.environ.update(before)
