"""Large maps whose walls make ways long end in minutes, within memory (docs/reliability.md)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import large_maps
from ringfence.worlds.grid import read_map


def test_a_map_with_walls_across_has_long_ways_and_all_its_goals() -> None:
    world = read_map(large_maps.walls_across(100, 10))
    assert len(world.goals) == 10
    assert world.horizon > 1000
    assert len(read_map(large_maps.walls_across(60, 50)).goals) == 50


def test_a_smaller_one_is_played_from_nothing_to_its_page_in_seconds() -> None:
    found = large_maps.measured(30, 3)
    assert found["processor_s"] > found["evidence_processor_s"] > 0
    assert found["processor_s"] < 30
    assert found["run_mb"] < 5


@pytest.mark.fuzz
@pytest.mark.parametrize(
    ("side", "goals", "most"),
    [
        (100, 10, {"seconds": 300}),
        (60, 50, {"evidence_processor_s": 20, "memory_mb": 1000, "run_mb": 100}),
    ],
)
def test_large_ones_keep_within_minutes_and_memory(
    side: int, goals: int, most: dict[str, float]
) -> None:
    words = [sys.executable, large_maps.__file__, str(side), str(goals)]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    print(told)
    found = json.loads(told)
    assert all(found[name] <= limit for name, limit in most.items())
