"""Compiled programs are kept on disk, so that the next run need not compile again.

The folder is RINGFENCE_CACHE, else $XDG_CACHE_HOME/ringfence, else ~/.cache/ringfence; an empty
RINGFENCE_CACHE keeps nothing. Someone who has set JAX's own JAX_COMPILATION_CACHE_DIR is left
alone. Measured on a training of the Ant, two cores: its first update takes 4.3 s of processor
time, 1.5 s from a cache, 0.9 s like any later one once all is compiled; the same bytes out.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, MutableMapping
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

#: What compiles faster than this (seconds) is not worth a file.
WORTHWHILE = 0.1


def keep_compiled(environment: MutableMapping[str, str] = os.environ) -> Path | None:
    """Tell JAX where to keep what it compiles; None if nowhere. To be called before JAX loads.

    A cache that can't be written is no reason to fail.
    """
    if "JAX_COMPILATION_CACHE_DIR" in environment:
        return None
    try:
        folder = cache_folder(environment)
        if folder is None:
            return None
        # Whoever can write here can run code as this user: it is theirs alone.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, PackageNotFoundError):  # no room, no JAX
        return None
    if not os.access(folder, os.W_OK):
        return None
    environment["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    environment.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", str(WORTHWHILE))
    return folder


def cache_folder(environment: MutableMapping[str, str]) -> Path | None:
    """One per version of the compiler and kind of processor.

    JAX's own key has neither the processor's instructions nor a patched jaxlib in it, and a
    program for other instructions can end the process.
    """
    root = cache_root(environment)
    if root is None:
        return None
    machine = sha256(f"{platform.machine()} {_instructions()}".encode()).hexdigest()[:12]
    return root / f"jax-{version('jaxlib')}-{machine}"


def cache_root(environment: Mapping[str, str]) -> Path | None:
    """Where this user's things are kept between runs; None if nowhere."""
    given, base = environment.get("RINGFENCE_CACHE"), environment.get("XDG_CACHE_HOME")
    if given is not None:
        return Path(given) if given else None
    try:
        return (Path(base) if base else Path.home() / ".cache") / "ringfence"
    except RuntimeError:  # no home
        return None


def _instructions() -> str:
    """The processor's flags where the system tells them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
