"""Anyone's code that doesn't come back is told of: one thread watches all calls of this process."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: Seconds after which a call that is not back is told, and how often is looked.
PATIENCE, EVERY = 60.0, 5.0

#: By thread: what was called, when, and whether it was told.
_calls: dict[int, tuple[str, float]] = {}
_told: set[tuple[str, float]] = set()
_watching = threading.Event()


@contextmanager
def waiting_for(what: str) -> Iterator[None]:
    """what: is called inside, in words."""
    if not _watching.is_set():
        _watching.set()
        threading.Thread(target=_watch, daemon=True).start()
    thread = threading.get_ident()
    before = _calls.get(thread)
    _calls[thread] = (what, time.monotonic())
    try:
        yield
    finally:
        if before is None:
            del _calls[thread]
        else:
            _calls[thread] = before


def _watch() -> None:
    while True:
        time.sleep(EVERY)
        look(time.monotonic())


def look(now: float) -> None:
    """Tell, once, of each call that is not back after PATIENCE seconds."""
    for call in list(_calls.values()):
        what, since = call
        if now - since >= PATIENCE and call not in _told:
            _told.add(call)
            print(
                f"ringfence: {what} has not come back for {now - since:.0f} s; if it hangs, stop "
                "with Ctrl-C, mend it, and go on with 'ringfence resume'",
                file=sys.stderr,
                flush=True,
            )
