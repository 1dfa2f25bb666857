"""A game on a large map with walls across it, from nothing to its page: what it takes.

`python tests/large_maps.py 100 10` (cells of a side, goals) prints JSON: the seconds of the clock
and of the processor in all, the evidence's seconds of the processor, the megabytes of memory at
most and of the run.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command does

import numpy as np

import ringfence

#: Rows from one wall to the next.
EVERY = 10


def walls_across(side: int, goals: int, every: int = EVERY) -> str:
    """A wall across every so many rows, each with one gap, by turns at its left and right end.

    Safe ways wind through the whole map, while nothing but walls keeps a learner from going
    straight. The goals are spread over the bands between the walls; one start, in a corner.
    """
    letters = np.full((side, side), ".")
    rows = range(every, side - 1, every)
    for n, row in enumerate(rows):
        letters[row] = "#"
        letters[row, -2 if n % 2 else 1] = "."
    bands = [*rows, side]
    for n in range(goals):
        lap, band = divmod(n, len(bands))
        letters[bands[band] - 1 - lap % (every - 1), (side // 2 + 7 * lap + band) % side] = "G"
    letters[0, 0] = "S"
    assert (letters == "G").sum() == goals
    return "\n".join("".join(line) for line in letters)


def measured(side: int, goals: int, every: int = EVERY) -> dict[str, float]:
    """Play it, with two paths of each task to learn from and two held out."""
    began, worked, evidence = time.perf_counter(), time.process_time(), [0.0]

    def note(event: dict[str, Any]) -> None:
        if event.get("name") == "evidence" and "of" not in event:
            evidence[0] = time.process_time()

    with TemporaryDirectory() as place:
        text, run = Path(place) / "walls.txt", Path(place) / "run"
        text.write_text(walls_across(side, goals, every))
        demos = ringfence.make_demonstrations(str(text), {"paths": 2, "heldout": 2})
        learned = ringfence.learn(str(text), demos, out=run, on_event=note)
        labelled = time.process_time() - evidence[0]
        assert learned.report().is_file()
        return {
            "seconds": round(time.perf_counter() - began, 1),
            "processor_s": round(time.process_time() - worked, 1),
            "evidence_processor_s": round(labelled, 1),
            "memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000, 1),
            "run_mb": round(sum(p.stat().st_size for p in run.rglob("*") if p.is_file()) / 1e6, 1),
            "iterations": len(learned.summary["iterations"]),
        }


if __name__ == "__main__":
    print(json.dumps(measured(*map(int, sys.argv[1:]))))
