from __future__ import annotations

import json
from pathlib import Path

import pytest

from made_flights import LIMIT, UNTIL, made, write_csv
from ringfence.reproduce import conduct, flight_pictures, flight_rows
from ringfence.reproduce.rows import Row

FILE = """
about = "made-up flights"
kind = "flights"
[base.flights]
top = 12000.0
height = 500.0
knots = 4000.0
width = 10.0
budgets = [1.0, 2.0]
resamples = 3
[variants.quoted]
flights.half = 1
flights.sizes = [5]
flights.draws = 3
flights.watched_half = 0
flights.classes = ["speed <= ? while altitude <= ?"]
[variants.quoted.flights.evidence]
height = 1000.0
width = 20.0
min_paths = 1
[variants.quoted.flights.sensitivity]
"no wind" = { knots = 0.0 }
[[table]]
rows = "flight_rules"
options.truth = [230.0, 8000.0]
columns = [["part", "part"], ["speed_kt", "speed", ".0f"]]
[[table]]
rows = "flight_breaches"
text = "{watched} flights, {breaking} of them"
columns = [["flight", "flight"]]
[[figure]]
draw = "flights"
file = "flights.png"
options.variant = "quoted"
options.truth = [230.0, 8000.0]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up flights, played; one of the half that is watched breaks the rule."""
    folder = tmp_path_factory.mktemp("flights")
    rows = made(40)
    for row in rows:  # 000001 is of the other half than what is learned from
        row["groundspeed"] += 60.0 * (row["icao24"] == "000001")
    (folder / "mine.toml").write_text(FILE)
    data = write_csv(folder / "a.csv", rows)
    said: list[str] = []
    out = folder / "out"
    conduct.run(str(folder / "mine.toml"), data=data, out=out, say=said.append)
    (folder / "said.txt").write_text("\n".join(said))
    return out


def rows_of(place: Path, name: str) -> list[Row]:
    return [r for r in json.loads((place / "table.json").read_text()) if r["table"] == name]


def test_each_part_has_a_row_with_its_interval(place: Path) -> None:
    rows = rows_of(place, "flight_rules")
    assert [row["part"] for row in rows] == ["all", "departures", "arrivals"]
    for row in rows:
        assert row["speed_low"] <= row["speed_kt"] + 5
        assert row["speed_kt"] - 5 <= row["speed_high"]
        assert row["speed_high"] - row["speed_low"] > 5  # the temperature, of which nobody knows
        assert row["altitude_low"] <= row["altitude_high"]
    assert rows[0]["speed_kt"] == pytest.approx(LIMIT, abs=6)
    assert rows[0]["altitude_ft"] == pytest.approx(UNTIL, abs=600)
    assert rows[0]["speed_error"] == pytest.approx(rows[0]["speed_kt"] / LIMIT - 1)


def test_who_broke_the_rule_is_told_by_name_and_written_without(place: Path) -> None:
    rows = [row for row in rows_of(place, "flight_breaches") if not row.get("facts")]
    worst = rows[0]
    assert worst["excess_kt"] > 30
    assert worst["seconds"] >= 30
    said = (place.parent / "said.txt").read_text()
    assert "000001 FLY1" in said
    assert "FLY1" not in "".join(p.read_text() for p in place.rglob("*.json"))


def test_the_summary_has_what_the_page_is_made_of(place: Path) -> None:
    summary = json.loads((place / "quoted" / "seed-0.json").read_text())
    assert summary["sensitivity"][0]["changed"] == "no wind"
    assert [row["flights"] for row in summary["curve"]] == [5]
    assert len(summary["curve"][0]["rules"]) == 3
    assert summary["games"][0]["constraint"].startswith("speed <= ")
    assert " kt while altitude <= " in summary["games"][0]["constraint"]
    assert sum(summary["evidence"]["counts"].values()) == 10 * 10
    assert sum(map(sum, summary["density"]["departure"])) > 0
    assert {row["learned_on"] for row in summary["crossed"]} == {"departures", "arrivals"}


def test_the_picture_is_drawn(place: Path) -> None:
    assert (place / "flights.png").read_bytes().startswith(b"\x89PNG")
    assert flight_pictures.COLOURS["learned"] != flight_pictures.COLOURS["true"]


def test_a_cell_is_forbidden_only_as_a_whole() -> None:
    from types import SimpleNamespace

    study = SimpleNamespace(options={"truth": [250.0, 10000.0]})
    size = {"height": 1000.0, "width": 20.0}
    cases = {(9500.0, 260.0): True, (10500.0, 260.0): False, (9500.0, 250.0): False}
    for (altitude, speed), expected in cases.items():
        assert flight_rows._forbidden(study, size, altitude, speed) is expected  # type: ignore[arg-type]
