"""Counting violations of episodes that run side by side."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from ringfence.binomial import binomial_interval
from ringfence.deploy.violations import COLUMNS, Violations
from ringfence.errors import InvalidInput


def run(counts: Violations, environment: int, costs: list[float]) -> None:
    """A whole episode of these costs; a step violates where it costs."""
    for n, cost in enumerate(costs):
        counts.step(environment, cost, cost - 0.5, ended=n == len(costs) - 1)


def test_an_episode_is_over_where_its_sum_is_a_step_where_raw_is_positive() -> None:
    counts = Violations(1, limit=1.0)
    run(counts, 0, [0.4, 0.6])  # 1.0: at the limit, one step violates
    run(counts, 0, [1.0, 1.0, 0.0])
    assert (counts.episodes, counts.episodes_over) == (2, 1)
    assert (counts.steps, counts.violating_steps) == (5, 3)
    assert (counts.total_cost, counts.worst_cost) == (3.0, 2.0)


def test_rounding_of_a_sum_is_not_a_violation() -> None:
    counts = Violations(1, limit=1.0)
    run(counts, 0, [0.1] * 10)  # 0.9999999999999999
    run(counts, 0, [1.0 + 1e-12])
    run(counts, 0, [1.0 + 1e-6])
    assert counts.episodes_over == 1


def test_environments_are_counted_apart_and_together() -> None:
    counts = Violations(2, limit=1.0)
    counts.step(0, 2.0, 1.0, ended=False)
    run(counts, 1, [0.0])
    counts.step(0, 0.0, -1.0, ended=True)
    assert (counts.episodes, counts.episodes_over, counts.steps) == (2, 1, 3)


def test_an_episode_that_is_left_counts_its_steps_alone() -> None:
    counts = Violations(1, limit=0.0)
    counts.step(0, 2.0, 1.0, ended=False)
    counts.leave(0)
    counts.leave(0)  # nothing has begun
    assert (counts.left, counts.episodes, counts.violating_steps) == (1, 0, 1)
    assert counts.summary().endswith("no episode has finished yet; 1 episodes were left before "
                                     "their end")  # fmt: skip


def test_the_summary_says_the_chance_with_its_interval() -> None:
    counts = Violations(1, limit=1.0)
    for cost in (0.0, 0.0, 0.0, 2.0):
        run(counts, 0, [cost])
    low, high = counts.interval()
    assert (low, high) == binomial_interval(1, 4, 0.95)
    assert "1 of 4 episodes are over it" in counts.summary()
    assert f"{low:.1%} to {high:.1%}" in counts.summary()


def test_negative_costs_have_a_worst_one_too() -> None:
    counts = Violations(1, limit=0.0)
    run(counts, 0, [-3.0])
    run(counts, 0, [-2.0])
    assert counts.worst_cost == -2.0


def test_each_episode_is_a_line_of_the_log(tmp_path: Path) -> None:
    counts = Violations(2, limit=1.0, log=tmp_path / "log.csv")
    run(counts, 1, [0.6, 0.6])
    counts.close()
    with open(tmp_path / "log.csv", newline="") as file:
        header, line = csv.reader(file)
    assert tuple(header) == COLUMNS
    assert line == ["1", "1", "2", "2", "1.2", "1.0", "1"]


def test_a_log_that_is_there_or_can_not_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("mine")
    with pytest.raises(InvalidInput, match="it exists already"):
        Violations(1, 0.0, tmp_path / "log.csv")
    with pytest.raises(InvalidInput, match="can't be written"):
        Violations(1, 0.0, tmp_path / "nowhere" / "log.csv")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(InvalidInput, match="limit on an episode's cost must be a number"):
        Violations(1, value)
    counts = Violations(1, 0.0)
    for cost, raw in ((value, 0.0), (0.0, value)):
        with pytest.raises(InvalidInput, match="look at the environment's info"):
            counts.step(0, cost, raw, ended=False)
