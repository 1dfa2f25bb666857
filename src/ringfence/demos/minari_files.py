"""What is opened with Minari and HDF5: plain data of a stated size.

Both would do more than read: HDF5 follows links into other files and takes an array's declared
shape for its size, and Minari makes the environment that a dataset names where its spaces are
missing. So a folder is looked through before either opens it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ringfence.disk import MOST_ARRAYS, MOST_JSON, opened, parse_json, read_file
from ringfence.errors import InvalidInput

DATA, ABOUT = "main_data.hdf5", "metadata.json"
#: The most groups and arrays in a file.
MOST_OBJECTS = 1_000_000


def require_plain_data(folder: Path) -> None:
    """folder: with Minari's two files. Every doubt is an InvalidInput."""
    for name in (ABOUT, DATA):
        if not (folder / name).exists():
            raise InvalidInput(f"{folder}: no {name}, so not a Minari dataset")
    try:
        about = parse_json(read_file(folder / ABOUT, MOST_JSON))
    except ValueError as problem:
        raise InvalidInput(
            f"{folder / ABOUT}: not valid JSON ({problem}); fetch it again"
        ) from None
    for name in ("observation_space", "action_space"):
        if not isinstance(about.get(name), str):
            raise InvalidInput(
                f"{folder / ABOUT}: no {name}, so reading it would make the environment that it "
                "names, which may be anyone's code; write the dataset again with both spaces"
            )
    if about.get("data_format") != "hdf5":
        raise InvalidInput(
            f"{folder / ABOUT}: data_format {about.get('data_format')!r:.60}; only hdf5 is read"
        )
    os.close(opened(folder / DATA, os.O_RDONLY))
    _look_through(folder / DATA)


def _look_through(path: Path) -> None:
    import h5py

    try:
        with h5py.File(path, "r") as file:
            total, seen, left = 0, set[Any](), [file]
            while left:
                group = left.pop()
                for name in group:
                    link = group.get(name, getlink=True)
                    if not isinstance(link, h5py.HardLink):
                        raise InvalidInput(
                            f"{path}: {group.name}/{name} is a link elsewhere, which is not "
                            "followed; write the arrays into the file"
                        )
                    one = group[name]
                    address = h5py.h5o.get_info(one.id).addr
                    if address in seen:
                        raise InvalidInput(f"{path}: {group.name}/{name} is there twice")
                    seen.add(address)
                    if isinstance(one, h5py.Group):
                        left.append(one)
                    else:
                        total += _size(path, one)
                    if total > MOST_ARRAYS or len(seen) > MOST_OBJECTS:
                        raise InvalidInput(
                            f"{path}: more than {MOST_ARRAYS} bytes of arrays or {MOST_OBJECTS} "
                            "objects are declared in it; split the dataset"
                        )
    except InvalidInput:
        raise
    except Exception as problem:  # h5py raises whatever it stumbles over
        raise InvalidInput(
            f"{path}: can't be read as HDF5 ({type(problem).__name__}: {problem}); take an "
            "unaltered copy, or make it again"
        ) from None


def _size(path: Path, array: Any) -> int:
    """The declared bytes of an array that lies in the file itself."""
    if getattr(array, "external", None) or getattr(array, "is_virtual", False):
        raise InvalidInput(
            f"{path}: {array.name} lies in another file, which is not opened; write it into this"
        )
    return int(array.size or 0) * int(array.dtype.itemsize)
