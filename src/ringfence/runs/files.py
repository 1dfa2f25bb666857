"""Atomic writes: a file or folder is there whole, or not at all, whenever the machine stops.

What was damaged afterwards is named when it is read.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ringfence.disk import reading, sync, writing


def write_file(path: Path, content: bytes) -> None:
    """Write to a temporary name beside `path`, sync, rename."""
    partial = path.with_name(f".{path.name}.partial")
    with writing(path):
        try:
            _write_synced(partial, content)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        sync(path.parent)


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of files under a temporary name, sync all of it, rename.

    A folder that is there already is left alone if it holds the same bytes, else replaced.
    """
    if folder.is_dir() and _same(folder, files):
        return
    with writing(folder):
        partial = fresh_partial(folder)
        try:
            for name, content in files.items():
                _write_synced(partial / name, content)
            publish(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def fresh_partial(folder: Path) -> Path:
    """An empty folder of this process, beside `folder` and under a temporary name."""
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    return partial


def publish(partial: Path, folder: Path) -> None:
    """Sync a finished temporary folder and give it its name."""
    sync(partial)
    if folder.exists():
        shutil.rmtree(folder)
    os.replace(partial, folder)
    sync(folder.parent)


def remove_partials(root: Path) -> None:
    """Delete what a killed process left half-written under `root`."""
    for path in sorted(root.rglob(".*.partial")):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def write_json(path: Path, document: Any) -> None:
    write_file(path, json_bytes(document))


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object that a run wrote, and writes again once it is gone."""
    with reading(path):
        return dict(json.loads(path.read_bytes()))


def json_bytes(document: Any) -> bytes:
    """Readable and strict: NaN or infinity in a document is a programming error."""
    return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()


def _same(folder: Path, files: Mapping[str, bytes]) -> bool:
    names = {path.name for path in folder.iterdir()}
    return names == set(files) and all((folder / n).read_bytes() == b for n, b in files.items())


def _write_synced(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
