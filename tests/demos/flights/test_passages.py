from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from made_flights import LIMIT, UNTIL, WIND, made, write_csv
from ringfence.demos.flights import cleaning, passages, positions
from ringfence.demos.flights.cleaning import Flight

BAND = passages.Band(4000.0, 12000.0, 500.0, (4000.0, 8000.0, 12000.0))


def flights(tmp_path: Path, count: int = 12) -> list[Flight]:
    return cleaning.clean(positions.read(write_csv(tmp_path / "a.csv", made(count))))[0]


def test_each_flight_is_one_leg_of_its_kind(tmp_path: Path) -> None:
    found = passages.legs(flights(tmp_path), BAND)
    assert [leg.kind for leg in found] == [
        "departure" if n % 2 == 0 else "arrival" for n in range(12)
    ]
    for leg in found:
        inside = leg.column("altitude")
        assert inside.min() >= BAND.bottom
        assert inside.max() < BAND.top


def test_passages_show_the_rule_in_the_shared_wind(tmp_path: Path) -> None:
    legs = passages.legs(flights(tmp_path), BAND)
    wind = passages.shared_wind(legs, BAND)
    assert np.abs(wind.east - WIND[0]).max() < 3
    assert np.abs(wind.north - WIND[1]).max() < 3
    table = np.array([p.speed for p in passages.passages(legs, BAND, wind)])
    below = BAND.middles < UNTIL
    assert table[:, below] == pytest.approx(LIMIT, abs=3)
    assert table[:, ~below][:, -1] == pytest.approx(LIMIT + 50, abs=4)


def test_a_flight_that_is_first_heard_inside_has_the_rows_from_there(tmp_path: Path) -> None:
    whole = flights(tmp_path, 4)[1]  # an arrival
    late = whole.altitude < 9900
    cut = Flight(whole.name, whole.aircraft, *(
        getattr(whole, name)[late] for name in
        ("seconds", "altitude", "groundspeed", "track", "latitude", "longitude")
    ))  # fmt: skip
    (leg,) = passages.legs([cut], BAND)
    (passage,) = passages.passages([leg], BAND, passages.shared_wind([leg], BAND))
    assert passage.rows.tolist() == list(range(12))
    assert leg.kind == "arrival"


def test_half_a_band_unheard_is_no_leg(tmp_path: Path) -> None:
    whole = flights(tmp_path, 4)[0]
    middle = (whole.altitude < 5000) | (whole.altitude > 11000)
    cut = Flight(whole.name, whole.aircraft, *(
        getattr(whole, name)[middle] for name in
        ("seconds", "altitude", "groundspeed", "track", "latitude", "longitude")
    ))  # fmt: skip
    assert passages.legs([cut], BAND) == []
