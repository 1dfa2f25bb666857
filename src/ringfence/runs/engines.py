"""Who solves: this process, worker processes of this machine, or the machines of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ringfence.errors import InvalidInput
from ringfence.runs.backend import Backend, require_workers


@contextmanager
def engine(workers: int, on: str | None, *settings: Any) -> Iterator[int | Backend]:
    """What `make_backend` takes, for as long as the block lasts.

    on: "ray", "ray://host:port" or a cluster's address; settings: of worlds and solvers, whose
    modules of the user's own reach the machines.
    """
    require_workers(workers)
    if on is None:
        yield workers
        return
    if workers != 1:
        raise InvalidInput(
            f"--workers are processes of this machine, --on {on} has its own: leave one of them out"
        )
    from ringfence.runs.ray_engine import RayEngine

    ray = RayEngine(on, settings)
    try:
        yield ray
    finally:
        ray.close()
