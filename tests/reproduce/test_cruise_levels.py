from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from made_flights import write_csv
from ringfence.errors import InvalidInput
from ringfence.reproduce import conduct, cruise_levels
from ringfence.reproduce.cruise_levels import EVEN, ODD

FILE = """
about = "made-up cruises"
kind = "levels"
[variants.all]
[[table]]
rows = "cruise_levels"
options.odd = [90, 269]
text = "{right} right, {open} open, {wrong} wrong"
columns = [["track", "track"], ["learned", "learned"]]
"""


def rows(flights: int = 240, climbing: bool = True) -> list[dict[str, object]]:
    """Cruises in all directions that keep the rule, but for one in ten; and climbs between."""
    found = []
    for n in range(flights):
        track = (n * 360 / flights + 1.0) % 360
        south = 90 <= track < 270
        odd = south != (n % 10 == 3)
        level = 35000.0 + 1000.0 * (not odd)
        for k in range(16):
            low = climbing and k < 4
            found.append({
                "timestamp": 1_600_000_000 + 10 * k, "icao24": f"{n:06x}", "callsign": "X",
                "altitude": level - 200.0 * (4 - k) if low else level,
                "groundspeed": 420.0, "track": track,
                "vertical_rate": 1200.0 if low else 0.0,
                "latitude": 46.0 + 420 / 360 / 60 * k * np.cos(np.radians(track)),
                "longitude": 8.0
                + 420 / 360 / 60 * k * np.sin(np.radians(track)) / np.cos(np.radians(46.0)),
            })  # fmt: skip
    return found


def test_the_rule_of_made_up_cruises_is_learned_in_spite_of_slips(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(FILE)
    data = write_csv(tmp_path / "a.csv", rows())
    out = tmp_path / "out"
    conduct.run(str(tmp_path / "mine.toml"), data=data, out=out, say=lambda text: None)
    found = json.loads((out / "table.json").read_text())
    facts = next(row for row in found if row.get("facts"))
    assert (facts["right"], facts["open"], facts["wrong"]) == (12, 0, 0)
    learned = [row["learned"] for row in found if "learned" in row]
    assert learned == ["even"] * 3 + ["odd"] * 6 + ["even"] * 3


def test_a_world_has_a_cell_for_each_kind_of_level_and_sector() -> None:
    chosen = [(0, EVEN), (0, ODD), (7, ODD)]
    world = cruise_levels.world_of(chosen)
    assert world.cells is not None
    assert world.cells.shape == (3, 12)
    assert world.tasks[0].mdp.start[[0, 7]] == pytest.approx([2 / 3, 1 / 3])


def test_a_table_without_cruises_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(FILE)
    low = [{**row, "altitude": row["altitude"] - 20000} for row in rows()]  # type: ignore[operator]
    data = write_csv(tmp_path / "a.csv", low)
    with pytest.raises(InvalidInput, match="in cruise"):
        conduct.run(str(tmp_path / "mine.toml"), data=data, out=tmp_path / "out", say=print)
