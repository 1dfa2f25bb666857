"""Made-up flights with a known rule and a known wind, as rows of a table."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ringfence import atmosphere

#: kt up to ft; where the air goes to, kt east and north.
LIMIT, UNTIL, WIND = 230.0, 8000.0, (25.0, -15.0)
LOW, HIGH, STEP = 2500.0, 12500.0, 2.0
Rows = list[dict[str, Any]]


def made(flights: int = 24, limit: float = LIMIT, until: float = UNTIL) -> Rows:
    """Departures and arrivals in turn, in all directions; 50 kt faster where the rule ends."""
    rows: Rows = []
    for n in range(flights):
        up, climb = n % 2 == 0, (30.0 if n % 2 == 0 else 22.0) * (1 + 0.3 * (n % 5) / 5)  # ft/s
        height = np.arange(LOW, HIGH, climb * STEP)
        above = (height - until) / climb  # s since the rule ended, or until it begins
        speed = limit + 50 * np.clip(above / 40, 0, 1)
        if not up:
            height, speed = height[::-1], speed[::-1]
        angle = 2 * np.pi * n / flights + 0.3 * np.sin(np.arange(len(height)) / 30)
        true = atmosphere.true(speed, height)
        east, north = true * np.sin(angle) + WIND[0], true * np.cos(angle) + WIND[1]
        hours = STEP / 3600
        latitude = 48.0 + np.cumsum(north) * hours / 60
        longitude = 2.0 + np.cumsum(east) * hours / 60 / np.cos(np.radians(latitude))
        for k in range(len(height)):
            rows.append({
                "timestamp": int(1000 * (1_600_000_000 + 100 * n + STEP * k)),
                "icao24": f"{n:06x}", "callsign": f"FLY{n}", "altitude": float(height[k]),
                "groundspeed": float(np.hypot(east[k], north[k])),
                "track": float(np.degrees(np.arctan2(east[k], north[k])) % 360),
                "vertical_rate": float((1 if up else -1) * climb * 60),
                "latitude": float(latitude[k]), "longitude": float(longitude[k]),
                "onground": False,
            })  # fmt: skip
    return rows


def write_csv(path: Path, rows: Sequence[dict[str, Any]], columns: Sequence[str] = ()) -> Path:
    names = list(columns or rows[0])
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path
