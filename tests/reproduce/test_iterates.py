from __future__ import annotations

from pathlib import Path

import pytest
from small_study import game, row, study_of

from ringfence.reproduce.iterates import (
    as_safe_by_cost,
    as_safe_by_raw,
    choices,
    good,
    iterates,
    parameters,
    seeds_played,
)
from ringfence.reproduce.rows import MEAN, NOT_RUN


def test_a_good_seed_earns_what_experts_do_as_safely_as_they() -> None:
    assert good(row(), as_safe_by_raw)
    assert not good(row(learner_reward_mean=95.9), as_safe_by_raw)
    assert not good(row(learner_true_raw_mean=10.5), as_safe_by_raw)
    assert not good(row(learner_true_raw_mean=9.0, learner_length_mean=500.0), as_safe_by_raw)
    assert good(row(learner_true_cost_mean=11.0), as_safe_by_cost)
    assert not good(row(learner_true_cost_mean=11.1), as_safe_by_cost)
    assert not good(row(learner_reward_mean=95.9), as_safe_by_cost)
    assert good(row(learner_true_raw_mean=None), as_safe_by_raw) is None


def test_seeds_that_were_not_run_are_called_so(tmp_path: Path) -> None:
    study = study_of(tmp_path, {"a": {}}, seeds=2)
    rows = iterates(study).rows
    assert {r["status"] for r in rows} == {NOT_RUN}
    assert {r["seed"] for r in rows} == {0, 1, MEAN}
    assert choices(study).rows == [{"status": NOT_RUN}]
    assert [r["status"] for r in seeds_played(study).rows] == [NOT_RUN] * 2
    assert parameters(study).rows == []


def test_means_are_over_the_seeds_that_were_run_and_say_how_many_were_not(tmp_path: Path) -> None:
    one, two = game(row(constraint_error=0.01)), game(row(constraint_error=0.03))
    study = study_of(tmp_path, {"a": {0: one, 2: two}}, seeds=3)
    (mean,) = [r for r in iterates(study).rows if (r["iterate"], r["seed"]) == ("selected", MEAN)]
    assert (mean["constraint_error"], mean["not_run"]) == (pytest.approx(0.02), 1)
    assert (mean["good_raw"], mean["reward_above"]) == ("2 of 2", -3.5)
    assert mean["reason"] == "why a"


def test_the_way_there_is_the_mean_of_all_iterations(tmp_path: Path) -> None:
    both = game(row(), row(learner_reward_mean=90.5))
    (found,) = [
        r for r in iterates(study_of(tmp_path, {"a": {0: both}})).rows
        if (r["iterate"], r["seed"]) == ("all iterations", 0)
    ]  # fmt: skip
    assert (found["reward_above"], found["good_raw"]) == (-6.5, 0.5)


def test_a_game_that_needed_no_constraint_says_so(tmp_path: Path) -> None:
    nothing = {"outcome": "no constraint needed", "iterations": [], "selected": None}
    rows = iterates(study_of(tmp_path, {"a": {0: nothing}})).rows
    assert rows[0]["status"] == "no constraint needed"


def test_the_error_of_the_mean_is_not_the_mean_of_the_errors(tmp_path: Path) -> None:
    seeds = {
        n: game(row(constraint={"description": "", "parameters": {"limit": limit}}))
        for n, limit in enumerate((0.70, 0.82))
    }
    found = parameters(study_of(tmp_path, {"a": seeds}, seeds=2)).rows[-1]
    assert (found["iterate"], found["parameter"], found["true"]) == ("selected", "limit", 0.75)
    assert found["value"] == pytest.approx(0.76)
    assert found["value_se"] == pytest.approx(0.06)
    assert found["error"] == pytest.approx(0.01)


@pytest.mark.parametrize(
    "changes", [{"class": "linear"}, {"class": "? speed <= ?"}, {"true_parameters": None}]
)
def test_parameters_that_can_not_be_compared_have_no_error(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    assert parameters(study_of(tmp_path, {"a": {0: game(row(), **changes)}})).rows == []


def test_a_seeds_row_has_its_interval_and_minutes(tmp_path: Path) -> None:
    found = {"parameters": {"limit": [0.73, 0.76]}}
    summary = game(row())
    summary["constraint"]["interval"] = found
    study = study_of(tmp_path, {"a": {0: summary}})
    (tmp_path / "a" / "timing.json").write_text('{"seed-0": 90.0}')
    (seed,) = seeds_played(study).rows
    assert (seed["interval"], seed["minutes"]) == ("limit 0.73 to 0.76", 1.5)
