from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from small_study import study_of

from ringfence.reproduce.rows import MEAN, NOT_RUN
from ringfence.reproduce.trainings import cost_figures, course_figures, policies, reasons, smooth

SETTINGS = {"training": {"constraint": "speed <= 0.75", "delta": 20.0}, "solver": {"margin": 0.2}}


def training(cost: float) -> dict[str, object]:
    figures = {"reward": 10.0, "length": 30.0, "speed": 0.5, "true_cost": cost, "true_raw": -1.0}
    return {"stochastic": figures, "deterministic": figures, "lam": 0.5, "env_steps": 512,
            "course": {"highest": 1.0}}  # fmt: skip


def test_a_limit_that_is_not_kept_is_said(tmp_path: Path) -> None:
    seeds = {0: training(19.0), 1: training(21.0)}
    rows = policies(study_of(tmp_path, {"a": seeds}, seeds=3, settings=SETTINGS)).rows
    within = {r["seed"]: r.get("within") for r in rows if r["actions"] == "stochastic"}
    assert within == {0: True, 1: False, 2: None, MEAN: "1 of 2"}
    assert [r["not_run"] for r in rows if r["seed"] == MEAN] == [1, 1]
    assert [r["status"] for r in rows if r["seed"] == 2] == [NOT_RUN] * 2


def test_without_a_limit_there_is_no_cost(tmp_path: Path) -> None:
    free = {"training": {"constraint": "none", "delta": 0.0}}
    rows = policies(study_of(tmp_path, {"a": {0: training(5.0)}}, settings=free)).rows
    assert "true_cost" not in rows[0]
    assert "within" not in rows[0]


def test_a_page_has_every_settings_reason(tmp_path: Path) -> None:
    (found,) = reasons(study_of(tmp_path, {"a": {}}, settings=SETTINGS)).rows
    assert found == {"variant": "a", "settings": "margin = 0.2", "reason": "why a"}


def test_overshoot_and_oscillation_of_known_courses() -> None:
    quiet = cost_figures(np.full(100, 10.0), 20.0)
    assert quiet == {"highest": 10.0, "excess": 0.0, "reached": None, "overshoot": None,
                     "oscillation": 0.0, "share_above": 0.0}  # fmt: skip
    peak = np.concatenate([np.full(20, 5.0), np.full(20, 50.0), np.full(60, 15.0)])
    figures = cost_figures(peak, 20.0)
    assert figures["highest"] == pytest.approx(50.0)
    assert figures["excess"] == pytest.approx(6.0)
    assert figures["overshoot"] == pytest.approx(30.0)
    assert figures["oscillation"] == 0.0
    assert figures["share_above"] == pytest.approx(0.2)
    assert figures["reached"] == pytest.approx(0.24)  # the mean of ten is above from the fourth on
    # a cost that begins above the limit and comes down to it has not overshot
    falling = cost_figures(np.linspace(80.0, 10.0, 100), 20.0)
    assert falling["overshoot"] == 0.0
    assert falling["reached"] is not None


def test_the_multipliers_course_is_told_by_quarters() -> None:
    lam = np.concatenate([np.zeros(50), np.ones(50)])
    figures = course_figures(np.full(100, 10.0), lam, 20.0)
    quarters = [figures[f"quarter_{n}"] for n in (1, 2, 3, 4)]
    assert quarters == [0.0, 0.0, 1.0, 1.0]
    assert (figures["highest"], figures["above_0"]) == (1.0, 0.5)


def test_smoothing_is_a_trailing_mean() -> None:
    values = np.random.default_rng(0).standard_normal(30)
    expected = [values[max(0, i - 9) : i + 1].mean() for i in range(30)]
    np.testing.assert_allclose(smooth(values), expected)


def test_a_tables_figures_are_those_of_its_summaries(trainings: Path) -> None:
    rows = json.loads((trainings / "table.json").read_text())
    table = (trainings / "table.md").read_text()
    for seed in (0, 1):
        summary = json.loads((trainings / "plain" / f"seed-{seed}.json").read_text())
        reward = summary["stochastic"]["reward"]
        assert f"| plain | {seed} | {reward:.0f} |" in table
        (found,) = [
            r for r in rows
            if (r.get("variant"), r.get("seed"), r.get("actions")) == ("plain", seed, "stochastic")
        ]  # fmt: skip
        assert (found["reward"], found["highest"]) == (reward, summary["course"]["highest"])
    assert "| still | `speed <= 0.75` |" in table
    assert "| free | `0.5 x - y <= 0` |" in table
    assert "fixed" not in table  # it was not run
