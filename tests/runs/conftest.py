"""A finished small run, shared by the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_run import quiet, small

from ringfence.runs.learn import create, drive


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run, played to its end."""
    run = tmp_path_factory.mktemp("runs") / "small"
    create(run, *small())
    drive(run, 1, quiet)
    return run
