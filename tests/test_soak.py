"""Two hundred games in one process take no more memory than twenty (docs/reliability.md)."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

import soak

GAMES, SETTLED, GROWTH = 200, 20, 0.05
FEW = 100  # objects: a game that stayed would be thousands


def test_a_game_leaves_nothing_behind() -> None:
    """The first ones import and cache; the same game again leaves no objects."""
    counts = []
    for _ in range(4):
        soak.on_a_map(0).report()
        gc.collect()
        counts.append(len(gc.get_objects()))
    assert counts[3] - counts[1] < FEW


@pytest.mark.fuzz
@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="memory is read as on Linux")
def test_memory_stays_flat_over_two_hundred_games() -> None:
    """From the 20th on, in a process of their own."""
    words = [sys.executable, soak.__file__, str(GAMES)]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    after = [float(line.split()[1]) for line in told.splitlines()]
    assert len(after) == GAMES
    first, last, most = after[SETTLED - 1], after[-1], max(after[SETTLED:])
    print(f"{first} MB after game {SETTLED}, {last} MB after game {GAMES}, at most {most} MB")
    assert most <= (1 + GROWTH) * first
