from __future__ import annotations

import gzip
import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from made_flights import made, write_csv
from ringfence.demos.flights import positions
from ringfence.errors import InvalidInput

ROWS = made(4)


def test_json_csv_gz_and_the_wheel_are_one_table(tmp_path: Path) -> None:
    content = json.dumps(ROWS).encode()
    (tmp_path / "a.json").write_bytes(content)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(content))
    with zipfile.ZipFile(tmp_path / "traffic-2.13-py3-none-any.whl", "w") as wheel:
        wheel.writestr(positions.IN_WHEEL.format(positions.PARIS), gzip.compress(content))
    write_csv(tmp_path / "a.csv", ROWS)
    found = [positions.read(path) for path in sorted(tmp_path.iterdir())]
    assert len(found) == 4
    assert all(len(table) == len(ROWS) for table in found)
    for table in found[1:]:
        assert table.altitude == pytest.approx(found[0].altitude)
        assert table.timestamp.tolist() == found[0].timestamp.tolist()
        assert table.callsign.tolist() == found[0].callsign.tolist()


def test_times_may_be_seconds_milliseconds_or_dates(tmp_path: Path) -> None:
    dated = [{**row, "timestamp": "2020-09-13T12:26:40Z"} for row in ROWS[:1]]
    path = tmp_path / "a.csv"
    assert positions._time(path, dated[0]["timestamp"]) == 1_600_000_000
    assert positions._time(path, 1_600_000_000) == positions._time(path, 1_600_000_000_000)
    with pytest.raises(InvalidInput, match=r"timestamp 'noon' is no time"):
        positions._time(path, "noon")


def test_missing_numbers_are_nan_and_grounds_are_read(tmp_path: Path) -> None:
    rows = [dict(row) for row in ROWS]
    rows[3]["altitude"], rows[4]["onground"] = None, True
    table = positions.read(write_csv(tmp_path / "a.csv", rows))
    assert np.flatnonzero(np.isnan(table.altitude)).tolist() == [3]
    assert np.flatnonzero(table.onground).tolist() == [4]


def test_parquet_is_read_where_pyarrow_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setattr(positions, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match="install pyarrow"):
        positions.read(path)
    monkeypatch.setattr(positions, "find_spec", lambda name: object())
    columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
    fake = ModuleType("pyarrow")
    fake.parquet = SimpleNamespace(  # type: ignore[attr-defined]
        read_table=lambda path: SimpleNamespace(to_pydict=lambda: columns)
    )
    monkeypatch.setitem(sys.modules, "pyarrow", fake)
    assert len(positions.read(path)) == len(ROWS)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"altitude": "alt_baro"}, r"no column 'altitude'.*is it 'alt_baro'\? Rename it"),
        ({"groundspeed": "ground_speed"}, r"no column 'groundspeed'"),
    ],
)
def test_renamed_columns_are_asked_about(
    tmp_path: Path, changed: dict[str, str], message: str
) -> None:
    rows = [{changed.get(name, name): value for name, value in row.items()} for row in ROWS]
    with pytest.raises(InvalidInput, match=message):
        positions.read(write_csv(tmp_path / "a.csv", rows))


@pytest.mark.parametrize(
    ("column", "factor", "unit"),
    [
        ("altitude", 0.3048, "looks like m; give it in ft"),
        ("groundspeed", 1.852, "looks like km/h; give it in kt"),
        ("groundspeed", 0.514444, "looks like m/s; give it in kt"),
        ("altitude", 3.0, "times what vertical_rate"),
    ],
)
def test_other_units_are_refused(tmp_path: Path, column: str, factor: float, unit: str) -> None:
    rows = [{**row, column: factor * row[column]} for row in ROWS]
    with pytest.raises(InvalidInput, match=unit):
        positions.read(write_csv(tmp_path / "a.csv", rows))


def test_empty_cut_and_wrong_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such file"):
        positions.read(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match="no rows"):
        positions.read(write_csv(tmp_path / "empty.csv", [], list(ROWS[0])))
    with pytest.raises(InvalidInput, match="column 'track' is empty"):
        positions.read(write_csv(tmp_path / "blank.csv", [{**row, "track": ""} for row in ROWS]))
    with pytest.raises(InvalidInput, match="'track' has what is no number"):
        positions.read(write_csv(tmp_path / "words.csv", [{**row, "track": "N"} for row in ROWS]))
    whole = write_csv(tmp_path / "whole.csv", ROWS).read_bytes()
    (tmp_path / "cut.csv").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidInput, match=r"has \d+ of 10 columns.*cut short"):
        positions.read(tmp_path / "cut.csv")
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(json.dumps(ROWS).encode())[:-20])
    with pytest.raises(InvalidInput, match="cut short"):
        positions.read(tmp_path / "cut.json.gz")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(InvalidInput, match=r"is \.json, \.csv"):
        positions.read(tmp_path / "a.txt")
    with pytest.raises(InvalidInput, match="needed to tell its units"):
        positions.read(write_csv(tmp_path / "few.csv", ROWS[:40]))


def test_without_a_file_the_way_to_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"give --data with the wheel of traffic 2\.13"):
        positions.read(None)
