"""The standard atmosphere, and the airspeed that a pilot reads in it (ISO 2533; below 36,000 ft).

With p the pressure and a the speed of sound at a pressure altitude, p0 and a0 at sea level:

    impact pressure   q / p0 = p / p0 ((1 + 0.2 (TAS / a)^2)^3.5 - 1)
    calibrated speed  CAS = a0 sqrt(5 ((q / p0 + 1)^(2/7) - 1))

`warmer`: by how many K the air differs from the standard; pressure altitudes know nothing of it.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

SEA_LEVEL_K, LAPSE_K_PER_FT = 288.15, 0.0065 * 0.3048
EXPONENT = 5.25588
SOUND_KT = 661.479  # at sea level

Speed = NDArray[np.float64]


def calibrated(true: ArrayLike, altitude: ArrayLike, warmer: float = 0.0) -> Speed:
    """kt, from true airspeed (kt) at a pressure altitude (ft)."""
    pressure, sound = _air(altitude, warmer)
    q = pressure * ((1 + 0.2 * (np.asarray(true) / sound) ** 2) ** 3.5 - 1)
    return cast(Speed, SOUND_KT * np.sqrt(5 * ((q + 1) ** (2 / 7) - 1)))


def true(calibrated: ArrayLike, altitude: ArrayLike, warmer: float = 0.0) -> Speed:
    """kt, from calibrated airspeed: the inverse of `calibrated`."""
    pressure, sound = _air(altitude, warmer)
    q = (1 + 0.2 * (np.asarray(calibrated) / SOUND_KT) ** 2) ** 3.5 - 1
    return cast(Speed, sound * np.sqrt(5 * ((q / pressure + 1) ** (2 / 7) - 1)))


def _air(altitude: ArrayLike, warmer: float) -> tuple[Any, Any]:
    """p / p0, and the speed of sound in kt."""
    standard = 1 - LAPSE_K_PER_FT * np.asarray(altitude, np.float64) / SEA_LEVEL_K
    return standard**EXPONENT, SOUND_KT * np.sqrt(standard + warmer / SEA_LEVEL_K)
