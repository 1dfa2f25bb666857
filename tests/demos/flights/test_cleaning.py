from __future__ import annotations

from pathlib import Path

import numpy as np

from made_flights import made, write_csv
from ringfence.demos.flights import cleaning, positions


def test_every_row_is_used_or_counted_once(tmp_path: Path) -> None:
    rows = made(4)
    rows[10]["altitude"] += 5000  # a spike
    rows[20]["groundspeed"] = None
    rows[30]["onground"] = True
    rows.append(dict(rows[40]))  # heard twice
    table = positions.read(write_csv(tmp_path / "a.csv", rows))
    flights, dropped = cleaning.clean(table)
    assert (dropped.rows, dropped.on_ground, dropped.incomplete) == (len(rows), 1, 1)
    assert (dropped.repeated, dropped.spikes) == (1, 1)
    assert sum(len(f.seconds) for f in flights) == dropped.used == len(rows) - 4
    assert [f.name for f in flights] == [f"{n:06x} FLY{n}" for n in range(4)]


def test_a_gap_makes_two_flights(tmp_path: Path) -> None:
    rows = made(4)
    late = [{**row, "timestamp": row["timestamp"] + 60_000 * (n > 50)} for n, row in
            enumerate(row for row in rows if row["callsign"] == "FLY0")]  # fmt: skip
    others = [row for row in rows if row["callsign"] != "FLY0"]
    flights, _ = cleaning.clean(positions.read(write_csv(tmp_path / "a.csv", [*late, *others])))
    assert [len(f.seconds) for f in flights[:2]] == [51, len(late) - 51]


def test_halves_share_no_aircraft_and_never_change() -> None:
    names = [f"{n:06x}" for n in range(1000)]
    halves = np.array([cleaning.half_of(name) for name in names])
    assert 450 < halves.sum() < 550
    assert [cleaning.half_of(a) for a in ("0101de", "3944f5", "06a1e7")] == [1, 0, 0]
