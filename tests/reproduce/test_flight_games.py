from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest

from made_flights import LIMIT, UNTIL, made, write_csv
from ringfence.demos.flights import cleaning, passages, positions
from ringfence.errors import InvalidInput
from ringfence.reproduce import flight_games
from ringfence.reproduce.flight_games import ALTITUDE, SPEED, Settings, Shown

SETTINGS = Settings(
    top=12000.0, height=500.0, knots=4000.0, width=10.0, budgets=(1.0, 2.0, 4.0), spare_fast=True
)


@functools.cache
def shown() -> Shown:
    with tempfile.TemporaryDirectory() as place:
        table = positions.read(write_csv(Path(place) / "a.csv", made()))
    flights, _ = cleaning.clean(table)
    return flight_games.show(passages.legs(flights, SETTINGS.band), SETTINGS)


def test_the_rule_of_made_up_flights_is_found() -> None:
    found = flight_games.learn(shown())
    assert found.flights == 24
    assert not found.slack
    assert not found.apart
    assert found.rule[SPEED] == pytest.approx(LIMIT, abs=5)
    assert found.rule[ALTITUDE] == pytest.approx(UNTIL, abs=500)


def test_tasks_are_kinds_by_how_far_they_fly() -> None:
    tasks = {t.name: t for t in shown().world.settings.tasks}
    assert list(tasks) == ["short departure", "long departure", "short arrival", "long arrival"]
    assert tasks["short arrival"].miles < tasks["long arrival"].miles
    assert len(shown().of_task("long departure")) == 6
    assert tasks["short departure"].fastest == pytest.approx(LIMIT + 50, abs=4)


def test_flights_that_keep_a_rule_exactly_are_calibrated_to_it() -> None:
    one = shown()
    names = one.names()
    config, rule = one.world.settings, np.array([245.0, 9250.0])
    errors = np.random.default_rng(0).normal(0, 3, 50)
    known = [
        flight_games.seen(config, flight_games.fastest(config, t, *rule) + errors[:, None])
        for t in config.tasks
    ]
    learners = flight_games.free_learners(one, names)
    given = flight_games.answer(known, learners, 2.0)
    assert given[SPEED] > rule[SPEED] + 1  # errors alone make the answer looser
    found = flight_games.calibrated(one, names, learners, given, 2.0, errors)
    assert found == pytest.approx(rule, abs=1.0)


def test_who_ignores_the_rule_stands_apart() -> None:
    one = shown()
    fast = [
        p if n else type(p)(p.name, p.aircraft, p.kind, p.rows, p.speed + 40.0, p.miles)
        for n, p in enumerate(one.passages)
    ]
    changed = Shown(SETTINGS, one.legs, one.wind, tuple(fast), one.world, one.task_of)
    assert flight_games.apart(changed, one.names(), UNTIL, 1.0) == {0}


def test_no_flight_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no flight of the table passes"):
        flight_games.show([], SETTINGS)
