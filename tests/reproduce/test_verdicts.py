"""The tables of verdicts, on a few data sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringfence.reproduce import verdicts
from ringfence.reproduce.experiment import read
from ringfence.reproduce.pages import write_page
from ringfence.reproduce.simulated import KINDS
from ringfence.reproduce.small_games import WORLDS
from ringfence.reproduce.study import Study


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.chdir(tmp_path)
    return Study(read("verdicts"), (), tmp_path / "results", lambda text: None, seeds=1)


def test_the_page_has_a_row_for_each_kind_and_each_world(study: Study) -> None:
    write_page(study, study.experiment.tables, study.out, ["title"])
    page = (study.out / "table.md").read_text()
    for name in (*KINDS, *WORLDS):
        assert f"\n| {name} |" in page


def test_most_of_a_few_data_sets_are_judged_rightly() -> None:
    rows = [verdicts.kind_row(k, range(4)) for k in range(len(KINDS))]
    judged = [row["right"] for row in rows if "right" in row]
    assert len(judged) == len(KINDS) - 1
    assert sum(judged) / len(judged) > 0.9
    assert all(row["called_saturated"] + row["called_not"] == 4 for row in rows)


def test_a_worlds_row_counts_intervals_that_hold_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates 0.6, 0.62, 0.64 with intervals of which two hold 0.62."""
    outcomes = {0: (0.6, 0.58, 0.61, 0.6, 0.6), 1: (0.62, 0.6, 0.64, 0.61, 0.63),
                2: (0.64, 0.6, 0.68, 0.63, 0.65)}  # fmt: skip
    monkeypatch.setattr(verdicts, "outcome", lambda world, n, resamples: outcomes[n])
    row = verdicts.world_row("road", range(3), 10)
    assert (row["covered"], row["narrow"]) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert row["width"] == pytest.approx(0.05)
    assert row["oracle"] == pytest.approx(0.95 * 0.04)
    assert row["ratio"] == pytest.approx(0.05 / 0.038)
