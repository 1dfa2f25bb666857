"""One page over several seeds: only seeds of one experiment, their means and errors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from parsed_pages import Page
from written_runs import write_plane_run

from ringfence.errors import InvalidInput
from ringfence.report import page
from ringfence.report.read import read_run
from ringfence.report.seeds import render, require_one_experiment
from ringfence.report.text import figure_text

CONFIG = """schema = 2
command = "ringfence learn --seed {seed}"
seed = {seed}

[world]
kind = "grid"
{world}

[demos]
content_hash = "of seed {seed}"
"""


def run(folder: Path, seed: int = 0, world: str = "", **summary: object) -> Path:
    """A finished run, as far as its kind is concerned."""
    folder.mkdir()
    (folder / "config.toml").write_text(CONFIG.format(seed=seed, world=world))
    (folder / "summary.json").write_text(json.dumps({"tasks": ["a"], **summary}))
    return folder


def refused(runs: list[Path], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        require_one_experiment(runs)


def test_seeds_may_differ_in_command_and_demonstrations(tmp_path: Path) -> None:
    require_one_experiment([run(tmp_path / "a"), run(tmp_path / "b", seed=1)])


def test_a_seed_counts_once(tmp_path: Path) -> None:
    a, b, c = run(tmp_path / "a"), run(tmp_path / "b", seed=1), run(tmp_path / "c")
    refused([a, b, c], "/a and .*/c have the same seed, 0")
    refused([a, a], "/a and .*/a have the same seed, 0")


def test_the_first_difference_is_named(tmp_path: Path) -> None:
    a = run(tmp_path / "a")
    slipping = run(tmp_path / "b", seed=1, world="slip = 0.1")
    refused([a, slipping], r"/a and .*/b are not of one experiment: \[world\] slip differs")
    refused([slipping, a], r"not of one experiment: \[world\] slip differs")
    refused([a, run(tmp_path / "c", seed=1, tasks=["b"])], "one experiment: tasks differs")


def test_a_run_without_a_constraint_is_not_averaged_with_one_that_has(tmp_path: Path) -> None:
    a = run(tmp_path / "a", outcome="constraint")
    b = run(tmp_path / "b", seed=1, outcome="no constraint needed")
    refused([a, b], "/a ended with 'constraint', .*/b with 'no constraint needed'")


def test_an_unfinished_run_is_called_so(tmp_path: Path) -> None:
    a, b = run(tmp_path / "a"), run(tmp_path / "b", seed=1)
    (b / "summary.json").unlink()
    refused([a, b], "/b: unfinished; go on with 'ringfence resume .*/b'")
    with pytest.raises(InvalidInput, match="/b: unfinished; go on with 'ringfence resume"):
        page.render(b)


def test_runs_of_different_experiments_are_refused(
    finished: Path, without_truth: Path, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match=r"\[world\] map differs"):
        page.write_many([finished, without_truth], tmp_path / "out.html")
    with pytest.raises(InvalidInput, match="at least one run"):
        page.write_many([], tmp_path / "out.html")
    assert not list(tmp_path.iterdir())


def test_several_seeds_are_averaged(several: list[Path], tmp_path: Path) -> None:
    out = page.write_many(several, tmp_path / "seeds.html")
    got, runs = Page(out.read_text()), [read_run(run) for run in several]
    rewards = np.array([run.best["learner_reward_mean"] for run in runs])
    mean, se = rewards.mean(), rewards.std(ddof=1) / np.sqrt(len(rewards))
    (section,) = got.find("section", id="seeds")
    rows = got.find("tr", within=section)[1:]
    assert len(rows) == len(runs) + 1
    for row, one in zip(rows, runs, strict=False):
        assert got.values(row)["learner reward"] == one.best["learner_reward_mean"]
    assert f"{figure_text(mean)} \u00b1 {figure_text(se, 2)}" in got.texts[rows[-1]]
    assert not got.find("script")
    assert got.find("svg", id="share-map")


def test_seeds_of_a_continuous_world_have_the_same_charts(tmp_path: Path) -> None:
    runs = [write_plane_run(tmp_path / f"{seed}", seed) for seed in (1, 2)]
    text = page.write_many(runs, tmp_path / "seeds.html").read_text()
    got = Page(text)
    assert "speed <= ? is learned as 0.7 \u00b1 0" in got.text("h1")
    titles = {got.texts[n] for n in got.find("h3")}
    assert {"Learned limit", "Reward per episode", "True raw value per episode"} <= titles
    assert 'class="band"' in text
    assert not got.find("svg", id="share-map")


def test_a_run_that_ended_early_keeps_its_last_value(finished: Path) -> None:
    long = read_run(finished)
    short = replace(long, summary={**long.summary, "iterations": long.rows[:1], "selected": 1})
    assert "A run that ended early keeps its last value" in render([long, short])
