"""Checkpoints: whole, or named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ringfence.errors import InvalidInput
from ringfence.solvers import checkpoints


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert checkpoints.read(tmp_path / "c") is None
    checkpoints.write(tmp_path / "c", {"x": np.arange(3.0)}, {"update": 7})
    found = checkpoints.read(tmp_path / "c")
    assert found is not None
    assert (found[0]["x"].tolist(), found[1]) == ([0.0, 1.0, 2.0], {"update": 7})


@pytest.mark.parametrize("name", ["state.json", "state.safetensors"])
def test_a_file_that_was_cut_short_is_named_with_the_way_on(tmp_path: Path, name: str) -> None:
    checkpoints.write(tmp_path / "c", {"x": np.arange(3.0)}, {"update": 7})
    path = tmp_path / "c" / name
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InvalidInput, match=r"/c: it can't be read .*delete it and resume"):
        checkpoints.read(tmp_path / "c")
