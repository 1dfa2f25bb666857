"""Many games one after the other in one process, each with its page: what memory it has after each.

`python tests/soak.py 200` prints a line per game: its number, the resident megabytes, the seconds.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command does

import own_cart
import ringfence
from ringfence.worlds.grid import random_map

#: Of the small Gymnasium world: an iteration of four updates.
TRAINING: dict[str, Any] = {
    "game": {"iterations": 1, "extra": 0},
    "opening": {"steps": 100, "probe": False},
    "solver": {
        "env_steps": 4 * 16 * 16,
        "copies": 16,
        "steps": 16,
        "minibatches": 2,
        "passes": 1,
        "hidden": [16],
        "evaluation_episodes": 4,
        "test_episodes": 8,
    },
    "analysis": {"resamples": 50},
}


def on_a_map(n: int) -> ringfence.Learned:
    """Each is another map."""
    return ringfence.learn(ringfence.read_map(random_map(n, side=8)), seed=n)


def on_gymnasium(n: int) -> ringfence.Learned:
    """Each has other drivers."""
    pace = 0.6 + 0.002 * n
    return ringfence.learn(
        {"drive": own_cart.Cart},
        {"drive": episodes(pace)},
        "speed <= ?",
        features=["speed:m/s"],
        steps=own_cart.STEPS,
        seed=n,
        settings=TRAINING,
    )


def episodes(pace: float, count: int = 6) -> list[dict[str, Any]]:
    """A driver's logs, one mapping for each episode."""
    given, T = own_cart.arrays((pace,) * count), own_cart.STEPS
    return [
        {
            "observations": given["observations"][n * (T + 1) : (n + 1) * (T + 1)],
            "actions": given["actions"][n * T : (n + 1) * T],
            "rewards": given["rewards"][n * T : (n + 1) * T],
            "infos": {"speed": given["info/speed"][n * T : (n + 1) * T]},
            "seed": n,
        }
        for n in range(count)
    ]


def resident() -> float:
    """Megabytes of this process in memory, as Linux counts them."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def soak(games: int) -> Iterator[float]:
    """The memory after each game, by turns on a map and on Gymnasium."""
    for n in range(games):
        learned = on_gymnasium(n) if n % 2 else on_a_map(n)
        assert learned.report().stat().st_size > 10_000
        yield resident()


if __name__ == "__main__":
    began = time.monotonic()
    for number, megabytes in enumerate(soak(int(sys.argv[1])), start=1):
        print(number, f"{megabytes:.1f} {time.monotonic() - began:.0f}", flush=True)
