"""The disk: waiting for it, and naming the file that it failed at, in writing and in reading."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ringfence.errors import InvalidInput

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
