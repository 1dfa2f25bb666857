"""What is worth a chart: the same for every world, and means over several runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from parsed_pages import Page

from ringfence.report.charts import charts_of, column, mean_se, over_runs, violation_gap
from ringfence.report.read import Run, read_run
from ringfence.report.sections.iterations import charts


@pytest.fixture
def run(finished: Path) -> Run:
    return read_run(finished)


def test_every_world_has_the_same_charts_where_they_are_known(run: Run, speed: Path) -> None:
    def titles(one: Run) -> list[str]:
        return [Page(chart).text("h3") for chart in charts([one], one.selected)]

    common = ["Reward per episode", "True cost per episode"]
    shared = ["Cost under the learned constraint"]
    best = "Best payoff left to the constraint player"
    assert titles(run) == [*common, "Overlap with the true walls", *shared,
                           "Regret bound on the violation gap", best]  # fmt: skip
    data = read_run(speed)
    assert titles(data) == ["Learned limit", *common, "True raw value per episode", *shared, best]


def test_the_truth_is_drawn_beside_a_parameter_of_its_scale(speed: Path) -> None:
    summary = read_run(speed).summary
    assert [line.name for line in charts_of(summary)[0].lines] == ["learned", "truth"]
    free = {**summary, "class": "? speed <= ?"}
    assert [line.name for line in charts_of(free)[0].lines] == ["learned"]


def test_the_gap_is_a_mean_over_iterations_so_far() -> None:
    rows = [
        {"i": i, "learner_true_cost_mean": cost, "expert_true_cost_mean": 1.0}
        for i, cost in ((1, 3.0), (2, 1.0), (3, None))
    ]
    assert violation_gap(rows) == [2.0, 1.0, None]


def test_standard_error_needs_all_values() -> None:
    assert mean_se([1.0, 3.0]) == (2.0, pytest.approx(1.0))
    assert mean_se([1.0]) == (1.0, None)
    assert mean_se([1.0, None]) == (None, None)


def test_a_run_that_ended_early_keeps_its_last_value(run: Run) -> None:
    shorter = replace(run, summary={**run.summary, "iterations": run.rows[:1], "selected": 1})
    means, _ = over_runs([run.summary, shorter.summary], column("bound"))
    first, last = (row["bound"] for row in (run.rows[0], run.rows[-1]))
    assert len(means) == len(run.rows)
    assert means[-1] == pytest.approx((first + last) / 2)
