"""A summary is refused for the first thing that is wrong, in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ringfence.report.validate import check_summary


@pytest.fixture
def summary(speed: Path) -> Any:
    return json.loads((speed / "summary.json").read_text())


def test_a_written_summary_is_whole(summary: Any, finished: Path, floor: Path) -> None:
    for one in (
        summary,
        *(json.loads((r / "summary.json").read_text()) for r in (finished, floor)),
    ):
        check_summary(one)


def refused(summary: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_summary(summary)


def test_lists_by_task_have_an_entry_for_each(summary: Any) -> None:
    summary["iterations"][1]["learner_reward"] = [1.0]
    refused(summary, "iteration 2: learner_reward: .*at least 2 items")


def test_what_can_not_be_had_is_null(summary: Any) -> None:
    summary["iterations"][0]["learner_reward"] = [1.0, None]
    summary["iterations"][0]["lam"] = None
    check_summary(summary)
    summary["iterations"][0]["learner_reward"] = [1.0, float("nan")]
    refused(summary, "finite number")


def test_iterations_are_counted_from_one(summary: Any) -> None:
    summary["iterations"][1]["i"] = 5
    refused(summary, "iteration 2 is called 5")


def test_a_view_shows_features_that_are_there(summary: Any) -> None:
    summary["views"] = [{"kind": "line", "columns": [3]}]
    refused(summary, r"a line of columns \[3\], there are 3 features")
    summary["views"] = [{"kind": "plane", "columns": [0]}]
    refused(summary, r"a plane of columns \[0\]")
    summary["views"] = [{"kind": "globe", "columns": [0, 1]}]
    refused(summary, "kind: Input should be 'map', 'floor', 'plane' or 'line'")


def test_an_outcome_and_its_numbers_agree(summary: Any) -> None:
    refused({**summary, "constraint": None}, "constraint is null")
    refused({**summary, "outcome": "no constraint needed"}, "not what was tried")


def test_what_older_runs_lack_may_be_missing_but_not_wrong(summary: Any) -> None:
    interval = summary["constraint"]["interval"]
    assert "curve" not in interval
    point = {"budget": 20.0, "parameter": 0.7, "low": 0.6, "high": 0.8}
    interval |= {"words": "covers other learners", "curve": [point]}
    check_summary(summary)
    interval["curve"] = [{**point, "low": "0.6"}]
    refused(summary, "constraint interval curve 0 low")
    interval |= {"curve": None, "words": 5}
    refused(summary, "constraint interval words")
