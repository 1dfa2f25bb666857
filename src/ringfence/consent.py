"""Whose code a run may call: what this user typed or agreed to, nothing else.

A run's configuration can name code: "module:function", an environment, arguments for it. What this
user made here is the user's own; what came from elsewhere is a stranger's until the user agrees,
once. Either is remembered as a mark in the user's cache: an HMAC of the tables that name code,
under a key that only the cache has. Without a cache (RINGFENCE_CACHE is empty) it is remembered for
this process.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ringfence.compilation import cache_root
from ringfence.disk import read_file
from ringfence.errors import InvalidInput

#: The tables of a configuration that may name code.
TABLES = ("world", "player", "solver", "task", "experts")
KEY, MARKS = "consent.key", "trusted"
KEY_BYTES = 32

_agreed: set[bytes] = set()


def code_names(document: Mapping[str, Any]) -> list[str]:
    """What a configuration names that is no part of Ringfence, as it is shown to the user."""
    found = []
    for name in TABLES:
        table = document.get(name, {})
        found += [f"{place} = {text!r}" for place, text in _named(f"[{name}]", table)]
        if isinstance(table, Mapping) and table.get("kind") == "gym":
            found += [f"[{name}] env = {table.get('env')!r}"]
            found += [f"[{name}] {place} = {v!r}" for place, v in _arguments(table)]
    return list(dict.fromkeys(found))


def _named(place: str, value: Any) -> Iterator[tuple[str, str]]:
    """Strings that name code, wherever they stand."""
    if isinstance(value, str) and names_module(value):
        yield place, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _named(f"{place} {key}", inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _named(place, inner)


def names_module(text: str) -> bool:
    """Is it "module:function" or "module:Id-v0"? A module's code runs when it is imported."""
    module, colon, _ = text.partition(":")
    return bool(colon) and all(part.isidentifier() for part in module.split("."))


def _arguments(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Tasks' own environments, and what environments' makers are called with."""
    tasks = table.get("tasks")
    own = (
        [one for one in tasks if isinstance(one, Mapping)]
        if isinstance(tasks, list | tuple)
        else []
    )
    for one in own:
        if one.get("env"):
            yield "tasks env", one["env"]
    for one in (table, *own):
        if one.get("kwargs"):
            yield "kwargs", one["kwargs"]


def grant(document: Mapping[str, Any]) -> None:
    """Remember that this user made, or agreed to, the code that a configuration names."""
    if not code_names(document):
        return
    said = _said(document)
    _agreed.add(said)
    mark = _mark(said, create=True)
    if mark is not None:
        try:
            mark.parent.mkdir(mode=0o700, exist_ok=True)
            mark.touch(mode=0o600)
        except OSError:  # a cache that can't be written is no reason to fail
            return


def carry(document: Mapping[str, Any]) -> None:
    """What the user agreed to on the machine that sent this here holds for this process alone."""
    _agreed.add(_said(document))


def require(document: Mapping[str, Any], where: Path) -> None:
    """Refuse a configuration that names code which nobody here made or agreed to."""
    names = code_names(document)
    if names and not is_granted(document):
        raise InvalidInput(
            f"{where}: it names code that this user has not run here: {'; '.join(names)[:500]}. If "
            "you trust who made it, give --trust (from Python: ringfence.trust(folder)); "
            "docs/what-to-trust.md says why"
        )


def is_granted(document: Mapping[str, Any]) -> bool:
    said = _said(document)
    mark = _mark(said, create=False)
    return said in _agreed or (mark is not None and mark.is_file())


def ask(
    document: Mapping[str, Any], where: Path, trust: bool, question: Callable[[str], str] | None
) -> None:
    """Grant what the user agrees to: with --trust, or on a terminal when asked (question)."""
    names = code_names(document)
    if not names or is_granted(document):
        return
    if not trust and question is not None:
        lines = "".join(f"  {name}\n" for name in names)
        text = f"{where} names code that you have not run here:\n{lines}Run it? [y/N] "
        trust = question(text).strip().lower() in ("y", "yes")
    if trust:
        grant(document)
    require(document, where)


# The mark ----------------------------------------------------------------------------------------


def _said(document: Mapping[str, Any]) -> bytes:
    """The tables that may name code, as bytes: the same from a file and from memory."""
    tables = {name: document[name] for name in TABLES if document.get(name)}
    return json.dumps(tables, sort_keys=True, default=str).encode()


def _mark(said: bytes, create: bool) -> Path | None:
    """The file in the cache that says so; None where there is no cache or key."""
    root = cache_root(os.environ)
    if root is None:
        return None
    try:
        key = _key(root, create)
    except (OSError, InvalidInput):
        return None
    return None if key is None else root / MARKS / hmac.digest(key, said, "sha256").hex()


def _key(root: Path, create: bool) -> bytes | None:
    path = root / KEY
    if create and not path.exists():
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:  # another process was faster
            return _key(root, create=False)
        with open(descriptor, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
    if not path.exists():
        return None
    key = read_file(path, KEY_BYTES)
    return key if len(key) == KEY_BYTES else None
