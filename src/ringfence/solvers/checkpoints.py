"""A folder of arrays and plain values that is either the old one or the new one, never half."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from ringfence.disk import reading, sync, writing


def write(folder: Path, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
    """Write to a temporary folder, sync, and put it in the place of the old one.

    A kill between the two renames leaves the old one under a hidden name; `read` finds it.
    """
    temporary, old = _beside(folder, "tmp"), _beside(folder, "old")
    with writing(folder):
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        # not ascontiguousarray, which turns a number into an array of one
        plain = {k: np.asarray(v, order="C") for k, v in arrays.items()}
        save_file(plain, temporary / "state.safetensors")
        (temporary / "state.json").write_text(json.dumps(values))
        for path in (*temporary.iterdir(), temporary):
            sync(path)
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
            folder.rename(old)
        temporary.rename(folder)
        sync(folder.parent)
        shutil.rmtree(old, ignore_errors=True)


def read(folder: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
    """The arrays and values of the last complete checkpoint; None if there is none."""
    for place in (folder, _beside(folder, "old")):
        if (place / "state.json").exists():
            with reading(place):
                values = json.loads((place / "state.json").read_text())
                return load_file(place / "state.safetensors"), values
    return None


def _beside(folder: Path, kind: str) -> Path:
    return folder.with_name(f".{folder.name}.{kind}")
