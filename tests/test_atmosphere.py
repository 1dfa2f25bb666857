from __future__ import annotations

import numpy as np
import pytest

from ringfence import atmosphere


def test_at_sea_level_both_speeds_are_the_same() -> None:
    speeds = np.array([0.0, 100.0, 250.0, 350.0])
    assert atmosphere.calibrated(speeds, 0.0) == pytest.approx(speeds, abs=1e-9)


def test_true_is_the_inverse_of_calibrated() -> None:
    speed, altitude = np.meshgrid([120.0, 250.0, 330.0], [0.0, 5000.0, 10000.0, 30000.0])
    there = atmosphere.true(speed, altitude, warmer=7.0)
    assert atmosphere.calibrated(there, altitude, warmer=7.0) == pytest.approx(speed, abs=1e-9)


def test_the_air_at_10_000_ft_is_that_of_the_standard() -> None:
    pressure, sound = atmosphere._air(10000.0, 0.0)
    assert pressure == pytest.approx(0.6877, abs=1e-4)  # ISO 2533: 696.8 hPa
    assert sound == pytest.approx(638.3, abs=0.1)


def test_warm_air_makes_a_true_speed_read_lower() -> None:
    cold, warm = (float(atmosphere.calibrated(290.0, 10000.0, k)) for k in (-5.0, 5.0))
    # Dynamic pressure goes with density: half of the temperature's relative change.
    assert (cold - warm) / 250 == pytest.approx(10 / (2 * 268.3), rel=0.05)
