from __future__ import annotations

import numpy as np
import pytest

from ringfence import atmosphere
from ringfence.demos.flights.airspeed import Wind, calibrated_airspeed, wind_of

KNOTS = np.array([4000.0, 8000.0, 12000.0])
BLOWS = Wind(KNOTS, np.array([10.0, 20.0, 35.0]), np.array([-5.0, -20.0, 0.0]))


def flown(n: int = 4000) -> tuple[np.ndarray, ...]:
    """Rows in all directions in that wind, all at 250 kt calibrated but for one in ten."""
    rng = np.random.default_rng(0)
    altitude, heading = rng.uniform(4000, 12000, n), rng.uniform(0, 2 * np.pi, n)
    speed = np.where(np.arange(n) % 10 == 0, 180.0, 250.0)
    true = atmosphere.true(speed, altitude)
    east = true * np.sin(heading) + np.interp(altitude, KNOTS, BLOWS.east)
    north = true * np.cos(heading) + np.interp(altitude, KNOTS, BLOWS.north)
    return altitude, np.hypot(east, north), np.arctan2(east, north), speed


def test_airspeed_takes_the_wind_off_exactly() -> None:
    altitude, ground, track, speed = flown()
    assert calibrated_airspeed(BLOWS, altitude, ground, track) == pytest.approx(speed, abs=1e-9)


def test_the_wind_is_found_though_some_are_slow() -> None:
    altitude, ground, track, _ = flown()
    found = wind_of(altitude, ground, track, np.zeros(len(altitude), bool), KNOTS)
    assert np.abs(found.east - BLOWS.east).max() < 2
    assert np.abs(found.north - BLOWS.north).max() < 2


def test_a_wind_is_said_as_pilots_say_it() -> None:
    north_wind = Wind(np.array([5000.0]), np.array([0.0]), np.array([-20.0]))
    assert north_wind.describe() == "000/20 kt at 5,000 ft"
