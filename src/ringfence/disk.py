"""The disk: atomic writes, checked reads, and naming the file that it failed at.

A file or folder is there whole, or not at all, whenever the machine stops. What was altered
afterwards is noticed when it is read: folders have the SHA-256 of their files beside them, JSON
documents and TOML files that of what they say within. (Files of versions before 0.3 have none.)
Links, devices and pipes are neither read nor replaced, and nothing is read beyond a stated size.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import shutil
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from errno import ELOOP
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

from ringfence.errors import InvalidInput

#: The file with the sums of a sealed folder's other files; a JSON document's entry with its own.
SUMS, SEAL = "sha256.json", "sha256"
#: The first line of a sealed TOML file: the sum of all that follows it.
TOML_SEAL = b"# SHA-256 of what follows: "
#: The most bytes that are read of one file, by its kind.
MOST_TOML, MOST_JSON, MOST_ARRAYS = 1 << 22, 1 << 27, 1 << 30
#: The most parts that a key of a TOML file may have: a parser takes their square in memory.
MOST_PARTS = 32
#: How HDF5 and safetensors, whose errors are of many kinds, give the system's number.
_NUMBER = re.compile(r"\b(?:errno =|os error) (\d+)")
_STRINGS = re.compile(r'"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'')
_LONG_KEY = re.compile(rf"(?:[\w-]+[ \t]*\.[ \t]*){{{MOST_PARTS}}}")
_numbers = count()


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


#: What helps where a run makes a file or folder again once it is gone.
MADE_AGAIN = "delete it and resume, it will be made again"


@contextmanager
def reading(path: Path, fix: str = MADE_AGAIN) -> Iterator[None]:
    """What inside can't be read, or lacks an entry, is an InvalidInput that names `path`, a file
    or folder, and the way on."""
    from safetensors import SafetensorError

    try:
        yield
    except (
        *(OSError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
        *(RecursionError, MemoryError, SafetensorError),
    ) as problem:
        raise InvalidInput(
            f"{path}: it can't be read ({str(problem)[:200]}), it was cut short or altered; {fix}"
        ) from None


# Regular files only ------------------------------------------------------------------------------


def opened(path: Path, flags: int, follow: bool = False) -> int:
    """A descriptor of a regular file. follow: a link that the user names is the user's own."""
    # not blocking: else a pipe would be waited for
    more = os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags | more, 0o666)
    except OSError as problem:
        if problem.errno == ELOOP:
            _refuse(path, "a link")
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        _refuse(path, "not a regular file")
    return descriptor


def _refuse(path: Path, kind: str) -> NoReturn:
    raise InvalidInput(f"{path}: {kind}, which is neither read nor written; use a file")


def read_file(path: Path, most: int = MOST_ARRAYS, follow: bool = False) -> bytes:
    """The bytes of a regular file of at most so many."""
    with open(opened(path, os.O_RDONLY, follow), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise InvalidInput(f"{path}: {size} bytes; at most {most} of such a file are read")
        return file.read(size)


def require_plain(folder: Path) -> None:
    """Refuse a folder with anything in it but folders and regular files: a link leads outside."""
    for place, folders, files in os.walk(folder):
        for path in (Path(place, name) for name in (*folders, *files)):
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                _refuse(path, "a link" if stat.S_ISLNK(mode) else "not a regular file")


# Writing -----------------------------------------------------------------------------------------


def write_file(path: Path, content: bytes) -> Path:
    """Write to a temporary name beside `path`, sync, rename -> path."""
    with writing(path):
        mode = path.lstat().st_mode if os.path.lexists(path) else stat.S_IFREG
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise InvalidInput(f"{path}: no regular file, so it is not replaced; choose another")
        partial = _beside(path)
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


def read_folder(folder: Path) -> dict[str, bytes]:
    """The files under it, by their path from there; none where it isn't there."""
    files = [p for p in sorted(folder.rglob("*")) if p.is_file()]
    return {p.relative_to(folder).as_posix(): read_file(p) for p in files}


def fresh_partial(folder: Path) -> Path:
    """An empty folder of this process, beside `folder` and under a temporary name."""
    partial = _beside(folder)
    partial.mkdir(parents=True)
    return partial


def _beside(path: Path) -> Path:
    """A temporary name that nobody else uses, beside `path`.

    What processes that are no more have left there under such names is removed.
    """
    for old in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        _remove_left(old)
    return path.with_name(f".{path.name}.{os.getpid()}-{next(_numbers)}.partial")


def _remove_left(partial: Path) -> None:
    """Remove a temporary file or folder, unless its process is still at work."""
    owner = partial.name.split(".")[-2].partition("-")[0]
    if owner.isdecimal() and _alive(int(owner)):
        return
    if partial.is_dir() and not partial.is_symlink():
        shutil.rmtree(partial, ignore_errors=True)
    else:
        partial.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # somebody else's, or no process's number
        return True
    return True


def publish(partial: Path, folder: Path) -> None:
    """Sync a finished temporary folder and give it its name, in the place of what has it."""
    sync(partial)
    if folder.exists():
        shutil.rmtree(folder)
    os.replace(partial, folder)
    sync(folder.parent)


def claim(partial: Path, folder: Path) -> None:
    """Sync a finished temporary folder and give it a name that nobody has: of two commands that
    want it one is refused. (An empty folder gives way.)"""
    sync(partial)
    try:
        os.rename(partial, folder)
    except OSError:
        if os.path.lexists(folder):
            raise InvalidInput(
                f"{folder}: another command has made it meanwhile; choose another --out"
            ) from None
        raise
    sync(folder.parent)


def remove_partials(root: Path) -> None:
    """Delete what a killed process left half-written under `root`."""
    for path in sorted(root.rglob(".*.partial")):
        _remove_left(path)


def _same(folder: Path, files: Mapping[str, bytes]) -> bool:
    if {path.name for path in folder.iterdir()} != set(files):
        return False
    sizes = all((folder / n).lstat().st_size == len(b) for n, b in files.items())
    return sizes and all(read_file(folder / n) == b for n, b in files.items())


def _write_synced(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


# Sealed folders ----------------------------------------------------------------------------------


def sealed_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Files with the SHA-256 of each beside them, for `read_sealed`."""
    return {**files, SUMS: json_bytes({name: sha256(b) for name, b in files.items()})}


def write_sealed(folder: Path, files: Mapping[str, bytes]) -> None:
    write_folder(folder, sealed_files(files))


def read_sealed(folder: Path) -> dict[str, bytes]:
    """The files of a sealed folder; one that was altered since, or is missing, is refused."""
    with reading(folder):
        written = read_file(folder / SUMS, MOST_JSON)
        sums = dict(json.loads(written))
        if json_bytes(sums) != written:  # such as a name that stands there twice
            raise ValueError(f"{SUMS} is not as it was written")
        files = {name: read_file(folder / Path(name).name) for name in sums}
        for name, content in files.items():
            if sha256(content) != sums[name]:
                raise ValueError(f"the SHA-256 of {name} is not what {SUMS} says")
    return files


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# JSON --------------------------------------------------------------------------------------------


def write_json(path: Path, document: Any) -> None:
    write_file(path, json_bytes(document))


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    write_file(path, document_bytes(document))


def document_bytes(document: Mapping[str, Any]) -> bytes:
    """A JSON object with the SHA-256 of all that it says, for `read_json`."""
    plain = json.loads(json_bytes(document))
    return json_bytes({**plain, SEAL: digest(plain)})


def read_json(path: Path, fix: str = MADE_AGAIN) -> dict[str, Any]:
    """A JSON object of ours; its seal is checked."""
    with reading(path, fix):
        document = parse_json(read_file(path, MOST_JSON))
        seal = document.pop(SEAL, None)
        if seal not in (None, digest(document)):
            raise ValueError("its SHA-256 is not that of what it says")
        if seal is None and document:  # without one, or is it there under an altered name?
            *rest, (name, last) = document.items()
            if last == digest(dict(rest)):
                raise ValueError(f"{name!r} stands where {SEAL!r} stood")
        return document


def parse_json(content: bytes) -> dict[str, Any]:
    """A JSON object of finite numbers, else a ValueError."""
    try:
        document = json.loads(content, parse_constant=_not_a_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError("it holds no JSON object")
    return document


def _not_a_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of all that a JSON object says, however it is laid out."""
    return sha256(json.dumps(document, sort_keys=True).encode())


def json_bytes(document: Any) -> bytes:
    """Readable and strict: NaN or infinity in a document is a programming error."""
    return (json.dumps(document, indent=2, allow_nan=False) + "\n").encode()


# TOML --------------------------------------------------------------------------------------------


def sealed_toml(text: str) -> bytes:
    """The bytes of a TOML file whose first line has the SHA-256 of the rest, for `read_toml`."""
    content = text.encode()
    return TOML_SEAL + sha256(content).encode() + b"\n" + content


def read_toml(path: Path, follow: bool = False) -> dict[str, Any]:
    """The document of a TOML file; its seal is checked where it has one. follow: see `opened`."""
    content = read_file(path, MOST_TOML, follow)
    first, _, rest = content.partition(b"\n")
    if first.startswith(TOML_SEAL) and first.removeprefix(TOML_SEAL) != sha256(rest).encode():
        raise InvalidInput(
            f"{path}: it was altered after it was written (its SHA-256 differs); restore it, or "
            "begin anew"
        )
    try:
        return parse_toml(content.decode())
    except ValueError as problem:
        raise InvalidInput(f"{path}: not valid TOML: {problem}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """A TOML document, else a ValueError."""
    if _LONG_KEY.search(_STRINGS.sub("s", text)):
        raise ValueError(f"a key has {MOST_PARTS} parts or more")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
