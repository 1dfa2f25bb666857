"""A table of aircraft positions, one row per aircraft and second, as receivers of ADS-B give it.

    timestamp      s since 1970, or ms, or a date; of the row
    icao24         the aircraft's address; callsign: the flight's
    altitude       ft, pressure altitude
    groundspeed    kt
    track          degrees from north, clockwise, over the ground
    vertical_rate  ft/min
    latitude, longitude   degrees
    onground       optional

JSON (a list of rows), CSV, either of them with .gz, Parquet (with pyarrow), or the wheel of the
package `traffic`, which holds such a table. Units are not believed: heights are compared with
vertical rates, speeds with positions.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import Array

NUMBERS = ("altitude", "groundspeed", "track", "vertical_rate", "latitude", "longitude")
NAMES = ("icao24", "callsign")
#: In the wheel: climbs and descents around Paris, 2021-10-07; and who flew over Switzerland,
#: 2018-08-01.
PARIS, SWITZERLAND = "quickstart", "switzerland"
IN_WHEEL = "traffic/data/samples/collections/{}.json.gz"
#: Rows that agree within this factor are in the unit that they are compared in.
SAME_UNIT = 1.15
#: Other units in which tables come, as a factor of ours.
OTHER_UNITS = {
    "altitude": {"m": 0.3048},
    "groundspeed": {"km/h": 1.852, "m/s": 0.514444, "mph": 1.150779},
}
#: What others call our columns.
ALSO_CALLED = {
    "timestamp": ("time", "ts"),
    "altitude": ("baroaltitude", "geoaltitude", "alt_baro", "alt"),
    "groundspeed": ("velocity", "gs", "speed"),
    "track": ("heading", "trk"),
    "vertical_rate": ("vertrate", "vs", "roc", "baro_rate"),
    "latitude": ("lat",),
    "longitude": ("lon", "long", "lng"),
    "icao24": ("hex", "icao"),
    "callsign": ("flight", "ident"),
}
OURS = {"altitude": "ft", "groundspeed": "kt"}
#: Of one aircraft between two rows that are compared, s.
APART = (5.0, 60.0)
FEWEST_PAIRS = 50
EARTH_NM = 3440.065


@dataclass(frozen=True, eq=False)
class Table:
    """Columns [n] in the units above; NaN where a row lacks a number."""

    timestamp: Array
    icao24: NDArray[np.str_]
    callsign: NDArray[np.str_]
    altitude: Array
    groundspeed: Array
    track: Array
    vertical_rate: Array
    latitude: Array
    longitude: Array
    onground: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.timestamp)

    def of(self, rows: Any) -> Table:
        """Some of the rows."""
        return Table(*(getattr(self, f.name)[rows] for f in fields(self)))


def read(place: str | Path | None, sample: str = PARIS) -> Table:
    """The table in a file; without one, that of an installed `traffic`. sample: of its wheel."""
    path = installed(sample) if place is None else Path(place)
    try:
        table = columns(path, rows_of(path, sample))
    except FileNotFoundError:
        raise InvalidInput(f"{path}: no such file") from None
    require_units(path, table)
    return table


def installed(sample: str) -> Path:
    """The table of the package `traffic`, found without importing it."""
    found = find_spec("traffic")
    for folder in (found.submodule_search_locations or ()) if found else ():
        if (path := Path(folder).parent / IN_WHEEL.format(sample)).is_file():
            return path
    raise InvalidInput(
        "no flights: give --data with the wheel of traffic 2.13 or a table of your own "
        "(docs/flights.md says how to get it), or install traffic"
    )


# Files -------------------------------------------------------------------------------------------


def rows_of(path: Path, sample: str) -> Mapping[str, Sequence[Any]]:
    """Column name -> values, as the file has them."""
    name = path.name.removesuffix(".gz")
    try:
        if name.endswith(".whl"):
            with zipfile.ZipFile(path) as wheel:
                return _json(gzip.decompress(wheel.read(IN_WHEEL.format(sample))))
        if name.endswith(".parquet"):
            return _parquet(path)
        content = path.read_bytes()
        content = gzip.decompress(content) if path.name.endswith(".gz") else content
        if name.endswith(".json"):
            return _json(content)
        if name.endswith(".csv"):
            return _csv(content.decode())
    except FileNotFoundError:
        raise
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, csv.Error) as problem:
        raise InvalidInput(
            f"{path}: can't be read as a table of positions ({type(problem).__name__}: {problem}); "
            "was it cut short? Fetch it again"
        ) from None
    raise InvalidInput(
        f"{path}: a table of positions is .json, .csv (or either with .gz), .parquet, or the wheel "
        "of traffic (.whl)"
    )


def _json(content: bytes) -> Mapping[str, Sequence[Any]]:
    rows = json.loads(content)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("not a list of rows")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _csv(content: str) -> Mapping[str, Sequence[Any]]:
    reader = csv.reader(io.StringIO(content))
    head = next(reader, [])
    rows = [row for row in reader if row]
    cut = next((n for n, row in enumerate(rows) if len(row) != len(head)), None)
    if cut is not None:
        raise ValueError(f"row {cut + 1} has {len(rows[cut])} of {len(head)} columns")
    return (
        dict(zip(head, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(head, ())
    )


def _parquet(path: Path) -> Mapping[str, Sequence[Any]]:
    if find_spec("pyarrow") is None:
        raise InvalidInput(f"{path}: to read Parquet, install pyarrow; or save the table as CSV")
    if not path.is_file():
        raise FileNotFoundError
    from pyarrow import parquet  # type: ignore[import-not-found]

    found: Mapping[str, Sequence[Any]] = parquet.read_table(path).to_pydict()
    return found


# Columns -----------------------------------------------------------------------------------------


def columns(path: Path, found: Mapping[str, Sequence[Any]]) -> Table:
    needed = ("timestamp", *NAMES, *NUMBERS)
    for name in needed:
        if name not in found:
            others = [n for n in found if n not in needed]
            near = [n for n in others if n in ALSO_CALLED.get(name, ())]
            near = near or get_close_matches(name, others, 1)
            guess = f"; is it {near[0]!r}? Rename it" if near else "; add it"
            have = ", ".join(found) or "none"
            raise InvalidInput(f"{path}: no column {name!r} (columns: {have}){guess}")
    if not len(found["timestamp"]):
        raise InvalidInput(f"{path}: no rows")
    ground = found.get("onground")
    grounded = [False] * len(found["timestamp"]) if ground is None else map(_yes, ground)
    made: dict[str, Any] = {
        "timestamp": np.array([_time(path, value) for value in found["timestamp"]]),
        "onground": np.array(list(grounded)),
    }
    for name in NAMES:
        made[name] = np.array(["" if v is None else str(v).strip() for v in found[name]])
    made |= {name: _numbers(path, name, found[name]) for name in NUMBERS}
    return Table(**made)


def _yes(value: Any) -> bool:
    return str(value).lower() in ("true", "1")


def _numbers(path: Path, name: str, values: Sequence[Any]) -> Array:
    try:
        found = np.array([np.nan if v in (None, "") else v for v in values], np.float64)
    except (TypeError, ValueError) as problem:
        raise InvalidInput(f"{path}: column {name!r} has what is no number ({problem})") from None
    if not np.isfinite(found).any():
        raise InvalidInput(f"{path}: column {name!r} is empty")
    return found


def _time(path: Path, value: Any) -> float:
    """s since 1970."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if np.isfinite(number):
        return number / 1000 if number > 1e11 else number
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    except ValueError:
        raise InvalidInput(f"{path}: timestamp {value!r} is no time") from None


# Units -------------------------------------------------------------------------------------------


def require_units(path: Path, table: Table) -> None:
    """Refuse a table whose heights or speeds are in another unit, or can't be told."""
    first, second = pairs(table)
    if len(first) < FEWEST_PAIRS:
        raise InvalidInput(
            f"{path}: {len(first)} pairs of rows of one aircraft, {APART[0]:g} to {APART[1]:g} s "
            f"apart and in flight; {FEWEST_PAIRS} are needed to tell its units"
        )
    a, b = table.of(first), table.of(second)
    seconds = b.timestamp - a.timestamp
    moved = _distance(a, b) / seconds * 3600
    _require_unit(path, "groundspeed", (a.groundspeed + b.groundspeed) / 2, moved, 80.0)
    climbed = np.abs(b.altitude - a.altitude) / seconds * 60
    _require_unit(path, "altitude", climbed, np.abs(a.vertical_rate + b.vertical_rate) / 2, 600.0)


def _require_unit(path: Path, name: str, given: Array, known: Array, least: float) -> None:
    """given in units of known: 1, where both are in our unit."""
    fast = known > least
    if fast.sum() < FEWEST_PAIRS:
        raise InvalidInput(f"{path}: too few rows to tell the unit of {name!r}")
    ratio = float(np.median(given[fast] / known[fast]))
    if 1 / SAME_UNIT < ratio < SAME_UNIT:
        return
    others = OTHER_UNITS[name].items()
    guess = [unit for unit, factor in others if 1 / SAME_UNIT < ratio / factor < SAME_UNIT]
    against = "the positions" if name == "groundspeed" else "vertical_rate (in ft/min)"
    looks = f": it looks like {guess[0]}" if guess else ""
    raise InvalidInput(
        f"{path}: column {name!r} is {ratio:.3g} times what {against} say{looks}; give it in "
        f"{OURS[name]}"
    )


def pairs(table: Table) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of one flight, in the air, that follow each other at some distance in time."""
    known = np.isfinite([getattr(table, name) for name in NUMBERS]).all(axis=0) & ~table.onground
    index = np.flatnonzero(known)
    order = index[np.lexsort((table.timestamp[index], table.callsign[index], table.icao24[index]))]
    first: list[int] = []
    second: list[int] = []
    last = -1
    for row in order:
        same = last >= 0 and table.icao24[last] == table.icao24[row]
        same = same and table.callsign[last] == table.callsign[row]
        since = table.timestamp[row] - table.timestamp[last] if same else np.inf
        if since < APART[0]:
            continue
        if since <= APART[1]:
            first.append(int(last))
            second.append(int(row))
        last = int(row)
    return np.array(first, np.intp), np.array(second, np.intp)


def _distance(a: Table, b: Table) -> Array:
    """nm along the ground, of places near each other."""
    mean = np.radians((a.latitude + b.latitude) / 2)
    north = np.radians(b.latitude - a.latitude)
    east = np.radians(b.longitude - a.longitude) * np.cos(mean)
    return np.asarray(EARTH_NM * np.hypot(north, east))
