"""The Ant's studies in short form: what is trained once, what tables and figures say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ringfence.cli.main import main
from ringfence.errors import InvalidInput
from ringfence.runs import train
from ringfence.solvers.ppo import PPOConfig
from ringfence.studies import experts, multipliers, resets
from ringfence.studies.experts import Study
from ringfence.studies.trainings import SPEED, Expert, mean_and_error, smooth

TINY = PPOConfig(copies=4, steps=64, batch=256, passes=1, hidden=(16,), evaluation_episodes=2)
VELOCITY = Expert("velocity", SPEED, 1000.0, 3 * 256)
FREE = Expert("unconstrained", train.UNCONSTRAINED, 0.0, 3 * 256)
STUDY = Study("ant", seeds=2, experts=(VELOCITY, FREE), ppo=TINY)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a runs/ of its own, where one of four trainings was done."""
    folder = tmp_path_factory.mktemp("studies")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        one = replace(STUDY, seeds=1)
        experts.reproduce(one, folder / "first", "a command", print, only=("velocity",))
    return folder


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place)
    return place


@pytest.fixture(scope="module")
def with_resets(place: Path) -> Path:
    """Where the study of resets is, its runs beside the others."""
    few = resets.Resets(share=0.5, episodes=2, env_steps=2 * 256)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        resets.reproduce(replace(STUDY, seeds=1), place / "resets", "a command", print, few)
    return place / "resets"


RESET_RUN = Path("runs/reproduce-experts-mujoco/velocity-512-resets-0.5-seed-0")


def colours(path: Path) -> int:
    pixels = np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3)
    return len(np.unique(pixels, axis=0))


def test_a_part_that_was_not_run_says_so(here: Path) -> None:
    table = (here / "first" / "table.md").read_text()
    assert "| unconstrained | 0 | not run |" in table
    assert "velocity: stochastic cost within its limit in every seed: yes" in table
    assert "| standing still |  | deterministic | `0.5 x - y <= 0` | " in table


def test_parts_that_ran_at_different_times_add_up(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, solved = here / "experts", []
    solve = train.PPO.solve
    monkeypatch.setattr(train.PPO, "solve", lambda *a: solved.append(1) or solve(*a))
    experts.reproduce(STUDY, out, "a command", print, only=("unconstrained",))
    assert len(solved) == 2
    table = (out / "table.md").read_text()
    first = json.loads((out / "velocity-seed-0.json").read_text())["stochastic"]
    assert f"| velocity | 0 | {first['reward']:.0f} |" in table
    assert "| velocity | 1 | not run |" in table
    assert "in every seed: yes (1 of 2 seeds not run)" in table
    rewards = [
        json.loads((out / f"unconstrained-seed-{n}.json").read_text())["stochastic"]["reward"]
        for n in (0, 1)
    ]
    assert f"| **unconstrained** | mean | {mean_and_error(rewards, '.0f')} |" in table
    assert "| unconstrained | 1 | stochastic | `speed <= 0.75` | " in table
    assert colours(out / "multiplier.png") > 50


def test_on_the_other_simulator(here: Path) -> None:
    pytest.importorskip("pybullet_envs_gymnasium", reason="needs ringfence[bullet]")
    ppo = replace(TINY, copies=8, batch=512)  # two processes
    out = here / "bullet"
    study = Study("ant-bullet", 1, (replace(FREE, env_steps=512),), ppo)
    experts.reproduce(study, out, "a command", print)
    table = (out / "table.md").read_text()
    assert "| standing still |  | deterministic | `speed <= 0.75` | " in table
    assert "| unconstrained | 0 | stochastic | `0.5 x - y <= 0` | " in table


def test_a_limit_that_is_not_kept_is_said(here: Path) -> None:
    done = experts.collect(STUDY)["velocity"]
    strict = replace(VELOCITY, delta=-1.0)
    cost = done[0].summary["stochastic"]["true_cost"]
    assert f"in every seed: no ({cost:.1f}) (1 of 2" in experts.check(STUDY, strict, done)


def test_standing_still_stands_still(here: Path) -> None:
    still = json.loads((here / "first" / "standing-still.json").read_text())["deterministic"]
    for figures in still.values():
        assert figures["episodes"] == TINY.evaluation_episodes
        assert 900 < figures["reward"] < 1000
        assert figures["speed"] < 0.05
    assert still["speed <= 0.75"]["true_cost"] < 5


def test_runs_of_other_settings_are_neither_mixed_in_nor_gone_on_with(here: Path) -> None:
    other = replace(STUDY, ppo=replace(TINY, passes=2))
    assert experts.collect(other) == {"velocity": {}, "unconstrained": {}}
    with pytest.raises(InvalidInput, match="passes: 1, now 2"):
        experts.reproduce(other, here / "other", "a command", print)


def test_multipliers_share_the_experts_runs(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, solved = here / "multipliers", []
    solve = train.PPO.solve
    monkeypatch.setattr(train.PPO, "solve", lambda *a: solved.append(1) or solve(*a))
    multipliers.reproduce(replace(STUDY, seeds=1), out, "a command", print)
    assert len(solved) == 1  # the classical one alone
    rows = json.loads((out / "results.json").read_text())["rows"]
    assert list(rows) == ["PID", "classical"]
    assert (out / "table.md").read_text().count("| mean |") == 2
    assert colours(out / "multipliers.png") > 50


def test_resets_start_at_the_experts_states(here: Path, with_resets: Path) -> None:
    starts = train.read_starts(RESET_RUN, train.read(RESET_RUN))
    assert starts is not None
    assert starts.shape[1] == 29
    assert "**with (50%)**" in (with_resets / "table.md").read_text()
    assert colours(with_resets / "resets.png") > 50
    rows = json.loads((with_resets / "results.json").read_text())["rows"]
    assert rows["without"][0] != rows["with (50%)"][0]


def test_changed_starts_are_refused(here: Path, with_resets: Path) -> None:
    config = train.read(RESET_RUN)
    with pytest.raises(InvalidInput, match="not the states"):
        train.read_starts(RESET_RUN, replace(config, starts="0" * 64))


def test_overshoot_and_oscillation_of_known_courses() -> None:
    quiet = multipliers.course_figures(np.full(100, 10.0), 20.0)
    assert quiet == {"highest": 10.0, "excess": 0.0, "reached": None, "overshoot": None,
                     "oscillation": 0.0, "share above": 0.0}  # fmt: skip
    peak = np.concatenate([np.full(20, 5.0), np.full(20, 50.0), np.full(60, 15.0)])
    figures = multipliers.course_figures(peak, 20.0)
    assert figures["highest"] == pytest.approx(50.0)
    assert figures["excess"] == pytest.approx(6.0)
    assert figures["overshoot"] == pytest.approx(30.0)
    assert figures["oscillation"] == 0.0
    assert figures["share above"] == pytest.approx(0.2)
    assert figures["reached"] == pytest.approx(0.24)  # the mean of ten is above from the fourth on
    # a cost that begins above the limit and comes down to it has not overshot
    falling = multipliers.course_figures(np.linspace(80.0, 10.0, 100), 20.0)
    assert falling["overshoot"] == 0.0
    assert falling["reached"] is not None
    assert multipliers.cell([None, 1.0], ".1f") == "1.0 (not in all)"
    assert multipliers.cell([None], ".1f") == "never"


def test_smoothing_is_a_trailing_mean() -> None:
    values = np.random.default_rng(0).standard_normal(30)
    expected = [values[max(0, i - 9) : i + 1].mean() for i in range(30)]
    np.testing.assert_allclose(smooth(values), expected)


def test_only_names_experts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert main(["reproduce", "experts", "--only", "speed", "--out", out]) == 2
    assert "there is no expert 'speed'" in capsys.readouterr().err
    assert main(["reproduce", "grid", "--only", "velocity-20", "--out", out]) == 2
    assert list(tmp_path.iterdir()) == []
