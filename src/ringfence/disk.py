"""The disk: atomic writes, waiting for it, and naming the file that it failed at.

A file or folder is there whole, or not at all, whenever the machine stops. What was damaged
afterwards is named when it is read.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ringfence.errors import InvalidInput

#: The file with the sums of a sealed folder's other files.
SUMS = "sha256.json"
#: How HDF5 and safetensors, whose errors are of many kinds, give the system's number.
_NUMBER = re.compile(r"\b(?:errno =|os error) (\d+)")


def sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the disk refuses inside is an OSError that names `path`.

    By itself it would name a temporary file beside it, or nothing, as when the disk is full.
    """
    try:
        yield
    except Exception as problem:
        number = _system_number(problem)
        if number is None:
            raise
        raise OSError(number, os.strerror(number), str(path)) from problem


def _system_number(problem: Exception) -> int | None:
    if isinstance(problem, OSError) and problem.errno is not None:
        return problem.errno
    found = _NUMBER.search(str(problem))
    return int(found[1]) if found else None


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What inside can't be read, or lacks an entry, is an InvalidInput that names `path`, a file
    or folder which a run makes again once it is gone."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, ValueError, TypeError, KeyError, SafetensorError) as problem:
        raise InvalidInput(
            f"{path}: it can't be read ({problem}), it was cut short or altered; delete it and "
            "resume, it will be made again"
        ) from None


# Writing ---------------------------------------------------------------------------------------


def write_file(path: Path, content: bytes) -> Path:
    """Write to a temporary name beside `path`, sync, rename -> path."""
    partial = path.with_name(f".{path.name}.partial")
    with writing(path):
        try:
            _write_synced(partial, content)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        sync(path.parent)
    return path


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


def write_sealed(folder: Path, files: Mapping[str, bytes]) -> None:
    """A folder of files with the SHA-256 of each beside them, for `read_sealed`."""
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    write_folder(folder, {**files, SUMS: json_bytes(sums)})


def read_sealed(folder: Path) -> dict[str, bytes]:
    """The files of a sealed folder; one that was altered since, or is missing, is refused."""
    with reading(folder):
        sums = dict(json.loads((folder / SUMS).read_bytes()))
        files = {name: (folder / Path(name).name).read_bytes() for name in sums}
        for name, content in files.items():
            if hashlib.sha256(content).hexdigest() != sums[name]:
                raise ValueError(f"the SHA-256 of {name} is not what {SUMS} says")
    return files


def read_folder(folder: Path) -> dict[str, bytes]:
    """The files under it, by their path from there; none where it isn't there."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file()]
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


def fresh_partial(folder: Path) -> Path:
    """An empty folder of this process, beside `folder` and under a temporary name.

    What processes that are no more have left there under such names is removed.
    """
    for old in folder.parent.glob(f".{glob.escape(folder.name)}.*.partial"):
        owner = old.name.split(".")[-2]
        if owner.isdecimal() and not _alive(int(owner)):
            shutil.rmtree(old, ignore_errors=True)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    return partial


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


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
