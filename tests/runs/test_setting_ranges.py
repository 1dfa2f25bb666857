"""Settings out of their range are refused wherever they come from."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import ringfence
from ringfence.errors import InvalidInput
from ringfence.runs.config import configure
from ringfence.runs.setting_ranges import RANGES, check_ranges, within
from small_worlds import document


@pytest.mark.parametrize(
    ("number", "interval", "inside"),
    [
        (0, "[0, 1]", True),
        (0, "(0, 1]", False),
        (1, "[0, 1)", False),
        (1e300, "[0, inf)", True),
        (math.inf, "[0, inf)", False),
        (math.nan, "[0, inf)", False),
        (-1, "[0, inf)", False),
    ],
)
def test_an_interval_is_read_as_mathematics_does(
    number: float, interval: str, inside: bool
) -> None:
    assert within(number, interval) == inside


@pytest.mark.parametrize(
    ("kind", "tables", "words"),
    [
        (
            "gym",
            {"solver": {"discount": -1.0}},
            r"\[solver\] PPO: discount must be in \[0, 1\], got -1.0",
        ),
        ("gym", {"solver": {"gae": 1.5}}, r"gae must be in \[0, 1\], got 1.5"),
        ("gym", {"solver": {"hidden": [16, 0]}}, r"hidden: \(16, 0\) is not in"),
        ("gym", {"opening": {"steps": 10**9}}, r"\[opening\] steps"),
        ("grid", {"game": {"iterations": 10**6}}, r"\[game\] iterations: 1000000 is not in"),
        ("grid", {"analysis": {"resamples": 10**9}}, r"\[analysis\] resamples"),
        ("grid", {"world": {"slip": 1.5}}, r"\[world\] slip"),
    ],
)
def test_a_setting_out_of_its_range_is_named(kind: str, tables: dict, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        configure(document(kind, **tables))


def test_counts_of_experts_have_an_end() -> None:
    with pytest.raises(InvalidInput, match=r"paths: 1000000 is not in \[1, 10000\]"):
        ringfence.make_demonstrations("maze", {"paths": 10**6})


def test_every_default_is_in_its_range() -> None:
    for kind in ("grid", "tables", "gym", "ant", "ant-maze"):
        configure(document(kind))


def test_intervals_are_well_formed() -> None:
    for ranges in RANGES.values():
        for interval in ranges.values():
            low, high = (float(x) for x in interval[1:-1].split(","))
            assert low < high
            assert (interval[0] in "[(", interval[-1] in "])") == (True, True)


def test_settings_of_no_range_are_left_alone() -> None:
    check_ranges("here", "world", Path())
