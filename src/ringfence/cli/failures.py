"""The last line of defence: an error that nobody foresaw is one line, and a file with the rest."""

from __future__ import annotations

import os
import time
import traceback
from pathlib import Path

from ringfence.compilation import cache_root

LOGS = "logs"
MOST_CHARACTERS = 300


def in_one_line(problem: BaseException, command: str) -> str:
    """What went wrong, and where its traceback is (that of a worker process, too)."""
    text = printable(" ".join(str(problem).split()))[:MOST_CHARACTERS]
    log = write_log("".join(traceback.format_exception(problem)), command)
    where = (
        f"its traceback is in {log}"
        if log is not None
        else "with a cache folder (RINGFENCE_CACHE) its traceback would be kept"
    )
    return f"an unforeseen {type(problem).__name__}: {text}; {where}"


def write_log(text: str, command: str) -> Path | None:
    """Into the folder `logs` of the user's cache; None where nothing is kept."""
    root = cache_root(os.environ)
    if root is None:
        return None
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    path = root / LOGS / f"{stamp}-{os.getpid()}.log"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(f"{command}\n\n{text}", encoding="utf-8", errors="backslashreplace")
    except OSError:  # a log that can't be written is no reason to hide the error
        return None
    return path


def printable(text: str) -> str:
    """Without what would control a terminal: messages quote files that anyone may have written."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
