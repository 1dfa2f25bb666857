"""One climb or descent through a band of altitudes, in rows of equal height.

A row is a step of a demonstration: the airspeed that the flight had on average in it, and how far
it flew in it. What happens below and above the band (take-off and approach, cruise) is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ringfence.demos.flights.airspeed import Wind, calibrated_airspeed, wind_of
from ringfence.demos.flights.cleaning import Flight
from ringfence.objects import Array

DEPARTURE, ARRIVAL = "departure", "arrival"
#: Rows of one flight that the wind is estimated from are about this far apart, s.
THINNED = 10
#: Rows that a flight may be missing in one place (it was not heard); they are interpolated.
MOST_MISSING = 2
#: Of the band's rows, where a flight is first or last heard inside it.
FEWEST_HEARD = 0.5


@dataclass(frozen=True)
class Band:
    """bottom, top: ft; height: of a row, ft; knots: ft, between which the wind is linear."""

    bottom: float
    top: float
    height: float
    knots: tuple[float, ...]

    @property
    def rows(self) -> int:
        return round((self.top - self.bottom) / self.height)

    @property
    def middles(self) -> Array:
        """The altitude in the middle of each row [rows], ft."""
        return np.asarray(self.bottom + self.height * (np.arange(self.rows) + 0.5), np.float64)

    def row_of(self, altitude: Array) -> NDArray[np.intp]:
        row = np.floor((altitude - self.bottom) / self.height)
        return np.clip(row, 0, self.rows - 1).astype(np.intp)


@dataclass(frozen=True, eq=False)
class Leg:
    """The rows of a flight's table from one side of the band to the other."""

    flight: Flight
    kind: str
    first: int
    end: int

    def column(self, name: str) -> Array:
        found: Array = getattr(self.flight, name)[self.first : self.end]
        return found


@dataclass(frozen=True, eq=False)
class Passage:
    """rows [n]: of the band, lowest first, all but for where the flight was first or last heard;
    speed, miles [n]: calibrated airspeed in each, kt, and nm through the air."""

    name: str
    aircraft: str
    kind: str
    rows: NDArray[np.intp]
    speed: Array
    miles: Array

    @property
    def pace(self) -> float:
        """nm per row."""
        return float(self.miles.mean())


def legs(flights: Sequence[Flight], band: Band) -> list[Leg]:
    """All climbs and descents of the flights through the band."""
    return [leg for flight in flights for leg in _legs(flight, band)]


def _legs(flight: Flight, band: Band) -> list[Leg]:
    """Between a row below the band and the next one above it, or the other way round; where the
    flight is first or last heard inside, from or to there."""
    side = np.where(flight.altitude < band.bottom, -1, np.where(flight.altitude >= band.top, 1, 0))
    outside = np.flatnonzero(side)
    if not len(outside):
        return []
    ends = [(int(a), int(b)) for a, b in pairwise(outside)]
    found = [_leg(flight, band, a + 1, b, int(side[a])) for a, b in ends if side[a] != side[b]]
    first, last = int(outside[0]), int(outside[-1])
    found.append(_leg(flight, band, 0, first, -int(side[first])))
    found.append(_leg(flight, band, last + 1, len(side), int(side[last])))
    return [leg for leg in found if leg is not None]


def _leg(flight: Flight, band: Band, first: int, end: int, came_from: int) -> Leg | None:
    """Rows of the table from the one side (-1: below) towards the other; None where too few rows
    of the band are heard."""
    heard = np.unique(band.row_of(flight.altitude[first:end]))
    if len(heard) < FEWEST_HEARD * band.rows or np.diff(heard).max() > MOST_MISSING + 1:
        return None
    return Leg(flight, DEPARTURE if came_from < 0 else ARRIVAL, first, end)


def shared_wind(some: Sequence[Leg], band: Band) -> Wind:
    """The wind over the legs' own rows."""
    thin = {name: np.concatenate([leg.column(name)[::THINNED] for leg in some])
            for name in ("altitude", "groundspeed", "track")}  # fmt: skip
    climbing = np.concatenate(
        [np.full(len(leg.column("altitude")[::THINNED]), leg.kind == DEPARTURE) for leg in some]
    )
    return wind_of(thin["altitude"], thin["groundspeed"], thin["track"], climbing,
                   np.array(band.knots))  # fmt: skip


def passages(some: Sequence[Leg], band: Band, wind: Wind, warmer: float = 0.0) -> list[Passage]:
    """What each leg is, row by row, in that wind."""
    return [_passage(leg, band, wind, warmer) for leg in some]


def _passage(leg: Leg, band: Band, wind: Wind, warmer: float) -> Passage:
    h, ground, track = (leg.column(name) for name in ("altitude", "groundspeed", "track"))
    true = wind.airspeed(h, ground, track)
    speed = calibrated_airspeed(wind, h, ground, track, warmer)
    lasts = np.gradient(leg.column("seconds"))
    row = band.row_of(h)
    time = np.bincount(row, lasts, band.rows)
    heard = np.flatnonzero(time > 0)
    means = np.bincount(row, lasts * speed, band.rows)[heard] / time[heard]
    known = np.arange(heard[0], heard[-1] + 1)
    miles = np.bincount(row, lasts * true, band.rows) / 3600
    return Passage(
        leg.flight.name,
        leg.flight.aircraft,
        leg.kind,
        known,
        np.interp(known, heard, means),
        miles[known],
    )
