"""Which rows and flights of a table are used; the others are counted by their reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ringfence.demos.flights.positions import Table
from ringfence.objects import Array

#: A row is a spike that is so far from the median of the rows around it: ft, kt; rows on each side.
SPIKE_FT, SPIKE_KT, AROUND = 500.0, 30.0, 15
#: A flight with a longer gap, s, is two.
GAP = 30.0


@dataclass(frozen=True, eq=False)
class Flight:
    """Rows of one flight in the air, in order, without a gap. track: rad."""

    name: str
    aircraft: str
    seconds: Array
    altitude: Array
    groundspeed: Array
    track: Array
    latitude: Array
    longitude: Array


@dataclass(frozen=True)
class Dropped:
    """Rows by the reason why they are not used."""

    rows: int
    on_ground: int
    incomplete: int
    repeated: int
    spikes: int

    @property
    def used(self) -> int:
        return self.rows - self.on_ground - self.incomplete - self.repeated - self.spikes


def half_of(aircraft: str) -> int:
    """0 or 1, by a hash of the aircraft's address: the halves share no aircraft."""
    return sha256(aircraft.encode()).digest()[-1] % 2


def clean(table: Table) -> tuple[list[Flight], Dropped]:
    """The flights of a table, by aircraft and callsign."""
    numbers = (table.altitude, table.groundspeed, table.track, table.latitude, table.longitude)
    known = np.isfinite(numbers).all(axis=0)
    usable = np.flatnonzero(known & ~table.onground)
    keys = np.char.add(np.char.add(table.icao24[usable], "/"), table.callsign[usable])
    order = np.lexsort((table.timestamp[usable], keys))
    usable, keys = usable[order], keys[order]
    repeated = spikes = 0
    flights: list[Flight] = []
    for rows in np.split(usable, np.flatnonzero(keys[1:] != keys[:-1]) + 1):
        if not len(rows):
            continue
        new = np.diff(table.timestamp[rows], prepend=-np.inf) > 0
        repeated += int((~new).sum())
        rows = rows[new]
        bad = far(table.altitude[rows], SPIKE_FT) | far(table.groundspeed[rows], SPIKE_KT)
        spikes += int(bad.sum())
        rows = rows[~bad]
        gaps = np.flatnonzero(np.diff(table.timestamp[rows]) > GAP) + 1
        flights += [_flight(table, part) for part in np.split(rows, gaps) if len(part) > 1]
    on_ground = int(table.onground.sum())
    incomplete = int((~known & ~table.onground).sum())
    return flights, Dropped(len(table), on_ground, incomplete, repeated, spikes)


def far(values: Array, limit: float) -> NDArray[np.bool_]:
    """Which of the values [n] are farther than that from the median around them."""
    padded = np.pad(values, AROUND, mode="edge")
    middle = np.median(sliding_window_view(padded, 2 * AROUND + 1), axis=1)
    return np.asarray(np.abs(values - middle) > limit)


def _flight(table: Table, rows: NDArray[np.intp]) -> Flight:
    return Flight(
        f"{table.icao24[rows[0]]} {table.callsign[rows[0]]}".strip(),
        str(table.icao24[rows[0]]),
        table.timestamp[rows],
        table.altitude[rows],
        table.groundspeed[rows],
        np.radians(table.track[rows]),
        table.latitude[rows],
        table.longitude[rows],
    )


def of_half(flights: Sequence[Flight], half: int) -> list[Flight]:
    return [flight for flight in flights if half_of(flight.aircraft) == half]
