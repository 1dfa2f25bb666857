"""Before numpy is imported anywhere: spinning BLAS threads fight the simulation's.

What JAX compiles is kept between test runs, apart from the user's own. Nobody pulls the plug of a
machine that runs tests, only of processes, so they don't wait for its disk (a small game syncs
sixty times, which takes longer than playing it); runs/test_files.py says where a run does.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ringfence.compilation import keep_compiled

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["RINGFENCE_CACHE"] = str(Path(__file__).parent.parent / ".pytest_cache" / "ringfence")
keep_compiled()
SYNC, os.fsync = os.fsync, lambda descriptor: None


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of the session have in common."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"


@pytest.fixture(scope="session")
def here(shared: Path) -> Path:
    """A folder with one good specimen of each kind of input: for reading only."""
    from cli.conftest import specimens
    from small_worlds import once

    return once(shared, "specimens", specimens)


@pytest.fixture(scope="session")
def finished(shared: Path) -> Callable[[str], Path]:
    """A small game of a kind of world, played to its end: for reading only."""
    from small_worlds import once, play

    return lambda kind: once(shared, kind, lambda run: play(run, kind))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if "RINGFENCE_FUZZ" not in os.environ:
        items[:] = [item for item in items if item.get_closest_marker("fuzz") is None]
