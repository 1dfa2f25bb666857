"""The wind that aircraft share, from how their groundspeeds depend on where they fly to.

    groundspeed ~ s[layer, kind] + u(h) sin(track) + v(h) cos(track)

with one speed per layer of altitude and kind (climbing or not), and the wind (u, v) to the east and
north linear between knots of altitude. Least absolute deviations, so that a few slow types or fast
ones don't bend the wind.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.atmosphere import calibrated
from ringfence.objects import Array

LAYER = 1000.0  # ft
#: Of the reweighted least squares: how often, and the deviation, kt, below which all weigh alike.
ROUNDS, SMALL = 12, 2.0


@dataclass(frozen=True, eq=False)
class Wind:
    """knots [k]: ft; east, north [k]: kt, where the air goes to."""

    knots: Array
    east: Array
    north: Array

    def airspeed(self, altitude: Array, groundspeed: Array, track: Array) -> Array:
        """True airspeed, kt [n]."""
        east = groundspeed * np.sin(track) - np.interp(altitude, self.knots, self.east)
        north = groundspeed * np.cos(track) - np.interp(altitude, self.knots, self.north)
        return np.hypot(east, north)

    def describe(self) -> str:
        """As pilots say it: the direction that it comes from, and its strength."""
        return ", ".join(
            f"{np.degrees(np.arctan2(-u, -v)) % 360:03.0f}/{np.hypot(u, v):.0f} kt at {h:,.0f} ft"
            for h, u, v in zip(self.knots, self.east, self.north, strict=True)
        )


def wind_of(
    altitude: Array, groundspeed: Array, track: Array, climbing: NDArray[np.bool_], knots: Array
) -> Wind:
    """The wind over rows [n] of many flights."""
    layer = np.floor(altitude / LAYER) * 2 + climbing
    _, which = np.unique(layer, return_inverse=True)
    hats = np.array([np.interp(altitude, knots, unit) for unit in np.eye(len(knots))]).T
    speeds = np.eye(which.max() + 1)[which.ravel()]
    design = np.hstack([speeds, hats * np.sin(track)[:, None], hats * np.cos(track)[:, None]])
    weight = np.ones(len(altitude))
    for _ in range(ROUNDS):
        normal = design.T @ (design * weight[:, None])
        normal[np.diag_indices_from(normal)] += 1e-9 * len(altitude)  # a knot that no row is near
        fitted = np.linalg.solve(normal, design.T @ (weight * groundspeed))
        weight = 1 / np.maximum(np.abs(groundspeed - design @ fitted), SMALL)
    k = len(knots)
    found = fitted.astype(np.float64)
    return Wind(knots, found[-2 * k : -k], found[-k:])


def calibrated_airspeed(
    wind: Wind, altitude: Array, groundspeed: Array, track: Array, warmer: float = 0.0
) -> Array:
    """kt [n]: what the pilot reads, but for the instrument's error."""
    return calibrated(wind.airspeed(altitude, groundspeed, track), altitude, warmer)
