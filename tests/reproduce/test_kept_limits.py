"""Limits on small worlds: trainings counted on fresh episodes, and what they are measured by."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_study import POINT

from ringfence.binomial import binomial_interval
from ringfence.constraints.linear import parse_inequality
from ringfence.errors import InvalidInput
from ringfence.objects import Feature, Trajectory
from ringfence.reproduce import kept_limits as limits
from ringfence.reproduce import run
from ringfence.reproduce.experiment import parse, read
from ringfence.reproduce.study import Study
from ringfence.runs import solving
from ringfence.worlds import gym

ASKED = (
    *("env", "limit", "seed", "steps", "reward", "reward_deterministic", "cost"),
    *("cost_deterministic", "violating_episodes", "kept"),
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """results/tiny, of which seed 101 was not run."""
    place = tmp_path_factory.mktemp("limits")
    (place / "tiny.toml").write_text(POINT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        run("tiny.toml", variants=("free", "zero", "fifth"), numbers=[100], say=lambda line: None)
        yield place / "results" / "tiny"


def rows(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "table.json").read_text())
    return found


def test_every_environment_limit_and_seed_has_its_row(tiny: Path) -> None:
    found = rows(tiny)
    assert [(row["variant"], row["seed"]) for row in found] == [
        ("free", 100), ("zero", 100), ("zero", 101), ("fifth", 100), ("fifth", 101),
    ]  # fmt: skip
    assert all(set(ASKED) <= set(row) for row in found)
    assert [row.get("status") for row in found] == [None, None, "not run", None, "not run"]
    assert all(row["env"] == "point" for row in found)
    free, zero, missing, fifth, _ = found
    assert (free["limit"], free["kept"], free["steps"]) == (None, True, 1024)
    assert missing["reward"] is missing["kept"] is None
    assert zero["limit"] == missing["limit"] == 0
    assert fifth["limit"] == pytest.approx(0.2 * free["cost"])
    assert free["cost"] > 0


def test_figures_are_those_of_a_hundred_fresh_episodes(tiny: Path) -> None:
    summary = json.loads((tiny / "zero" / "seed-100.json").read_text())
    (row,) = [row for row in rows(tiny) if row["variant"] == "zero" and row["seed"] == 100]
    for actions, end in (("stochastic", ""), ("deterministic", "_deterministic")):
        counted = summary["limits"][actions]
        assert counted["episodes"] == 100
        assert row[f"reward{end}"] == counted["reward"]
        # One per step: the cost is the steps beyond.
        assert counted["cost"] == pytest.approx(60 * counted["violating_steps"])
    chance = (row["violation_low"], row["violation_high"])
    assert chance == binomial_interval(row["violating_episodes"], 100)
    assert summary["limits"]["constraint"] == "x <= -0.85 m, each step beyond it costs 1"


def test_a_second_time_nothing_is_trained_or_counted(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (tiny / "table.json").read_bytes()
    monkeypatch.setattr(solving._Solve, "run", lambda *_: pytest.fail("trained again"))
    monkeypatch.setattr(limits, "evaluate", lambda *_: pytest.fail("counted again"))
    run("tiny.toml", variants=("free", "zero", "fifth"), numbers=[100], say=lambda line: None)
    assert (tiny / "table.json").read_bytes() == before


def test_a_seed_that_nobody_has_is_refused(tiny: Path) -> None:
    with pytest.raises(InvalidInput, match="--seed 5: no variant"):
        run("tiny.toml", numbers=[100, 5], say=lambda line: None)


# Rows from summaries that are made up ------------------------------------------------------------

COUNTED = {"episodes": 100, "violating_episodes": 0, "violating_steps": 0.0, "length": 60.0}


def counted(reward: float, cost: float, **changes: Any) -> dict[str, Any]:
    return {**COUNTED, "reward": reward, "cost": cost, **changes}


def study(folder: Path, played: dict[str, tuple[dict[str, Any], float]]) -> Study:
    """played: what each variant's seed 100 does, and its delta."""
    text = (
        POINT
        + """
[variants.fifth-at]
like = "fifth"
part = "point"
over = { "solver.fixed_lam" = [0.1, 1.0, 10.0] }
[variants.best]
like = "zero"
part = "other"
reference = { reward = 10.0, spread = 1.0, of = "someone" }
"""
    )
    for name, (figures, delta) in played.items():
        (folder / name).mkdir()
        found = {"stochastic": figures, "deterministic": figures, "constraint": "x <= -0.85"}
        found["random"] = {"reward": -10.0}
        summary = {"delta": delta, "env_steps": 1, "limits": found, "doubts": ["one", "two"]}
        (folder / name / "seed-100.json").write_text(json.dumps(summary))
    return Study(parse("a file", "made-up", text.encode(), folder), (), folder)


def test_the_score_is_against_the_best_fixed_multiplier_within_the_limit(tmp_path: Path) -> None:
    made = study(
        tmp_path,
        {
            "free": (counted(20.0, 10.0, violating_episodes=80), 0.0),
            "fifth": (counted(9.0, 1.9), 2.0),
            "fifth-at-0.1": (counted(15.0, 2.1), 2.0),
            "fifth-at-1.0": (counted(10.0, 2.0), 2.0),
            "fifth-at-10.0": (counted(-9.0, 0.0), 2.0),
        },
    )
    found = limits.limits(made).rows
    assert {row["variant"] for row in found} == {"free", "zero", "fifth", "best"}
    fifth = next(row for row in found if row["variant"] == "fifth")
    assert (fifth["best_multiplier"], fifth["best_reward"]) == (1.0, 10.0)
    assert fifth["score"] == 19 / 20
    assert fifth["reached"] is True
    assert fifth["fixed_multipliers"] == "0.1: 15 at 2.1; 1: 10 at 2; 10: -9 at 0"
    assert (fifth["free_reward"], fifth["free_violating"], fifth["random_reward"]) == (20, 80, -10)
    assert (fifth["seeds_kept"], fifth["seeds_not_run"], fifth["first"]) == (1, 1, True)


@pytest.mark.parametrize(("reward", "reached"), [(9.0, True), (8.9, False)])
def test_a_reference_is_reached_within_its_spread(
    tmp_path: Path, reward: float, reached: bool
) -> None:
    made = study(tmp_path, {"best": (counted(reward, 0.0), 0.0)})
    row = next(row for row in limits.limits(made).rows if row["variant"] == "best")
    assert row["reached"] is reached
    assert (row["reference_of"], row["small"]) == ("someone", False)
    assert row["told"] == "one; two"


@pytest.mark.parametrize(
    ("found", "limit", "kept"),
    [
        (counted(0.0, 25.0), 25.0, True),
        (counted(0.0, 25.1), 25.0, False),
        (counted(0.0, 3.0, violating_episodes=5, violating_steps=0.01), 0.0, True),
        (counted(0.0, 0.1, violating_episodes=6), 0.0, False),
        (counted(0.0, 0.1, violating_steps=0.011), 0.0, False),
        (counted(0.0, 99.0, violating_episodes=100), None, True),
    ],
)
def test_a_limit_is_kept_by_the_mean_and_0_by_nearly_all(
    found: dict[str, Any], limit: float | None, kept: bool
) -> None:
    assert limits.keeps(found, limit) is kept


def test_seeds_are_pooled_with_their_exact_interval() -> None:
    row = {"violating_steps": 0.02, "cost": 1.0, "cost_deterministic": 3.0}
    both = [{**row, "violating_episodes": 3}, {**row, "violating_episodes": 1, "cost": 2.0}]
    found = limits.pooled(both)
    assert (found["pooled_violating"], found["pooled_episodes"]) == (4, 200)
    assert (found["pooled_low"], found["pooled_high"]) == binomial_interval(4, 200)
    assert (found["most_cost"], found["most_cost_deterministic"]) == (2.0, 3.0)


def test_an_episode_violates_beyond_its_limit() -> None:
    c = parse_inequality("x <= 0", [Feature("x", "m")])
    walks = [
        Trajectory(np.zeros((3, 1)), np.zeros((2, 1)), np.ones(2), np.array(phi), False)
        for phi in ([[0.0], [np.e - 1]], [[-1.0], [0.0]])
    ]
    found = limits.figures(walks, c, 0.5)
    assert found["cost"] == pytest.approx(0.5)
    assert (found["violating_episodes"], found["violating_steps"]) == (1, 0.25)
    assert (found["reward"], found["length"]) == (2.0, 2.0)


def test_random_actions_earn_the_tasks_own_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "EPISODES", 5)
    speed = gym.FeatureConfig("speed", column=2)
    task: Any = gym.make(gym.Config("Pendulum-v1", steps=20, features=(speed,))).tasks[0]
    first = limits.random_rewards(task)
    assert first == limits.random_rewards(task)
    assert first is not None
    assert -320 < first["reward"] < -40
    other = replace(task, reward=lambda before, actions, after: np.full(len(before), 0.5))
    assert limits.random_rewards(other) == {"reward": 10.0, "reward_se": 0.0}


def test_the_velocity_benchmark_is_the_published_one() -> None:
    variants = read("limits").variants
    thresholds = {
        "ant": "speed <= 2.6222",
        "halfcheetah": "x_velocity <= 3.2096",
        "hopper": "x_velocity <= 0.7402",
        "walker2d": "x_velocity <= 2.3415",
        "swimmer": "x_velocity <= 0.2282",
        "humanoid": "speed <= 1.4149",
    }
    for name, text in thresholds.items():
        training = variants[f"velocity-{name}"].get("training")
        assert training == {"constraint": text, "activation": "steps", "delta": 25.0}
        assert list(variants[f"velocity-{name}"].numbers) == [100, 101, 102]


def test_every_training_is_at_the_solvers_defaults() -> None:
    for variant in read("limits").variants.values():
        assert set(variant.get("solver")) <= {"kind", "env_steps", "fixed_lam"}
    assert len(read("limits").variants["mujoco-velocity-20"].numbers) == 10
