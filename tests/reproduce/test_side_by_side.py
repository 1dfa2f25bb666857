"""Trainings in processes of their own leave what a single process would."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_study import POINT

from ringfence.reproduce import run
from ringfence.reproduce.experiment import parse
from ringfence.reproduce.side_by_side import play, waves
from ringfence.reproduce.study import Study

WRONG = """
[variants.wrong]
like = "free"
training.constraint = "y <= 1"
"""


def test_what_others_need_comes_first_and_once(tmp_path: Path) -> None:
    experiment = parse("a file", "tiny", POINT.encode(), tmp_path)
    free, zero, fifth = experiment.variants.values()
    made = Study(experiment, (), tmp_path)
    alone = waves(made, [(fifth, 100), (fifth, 101)])
    assert alone == ([("free", 100)], [("fifth", 100), ("fifth", 101)])
    every = waves(made, [(fifth, 101), (zero, 100), (free, 100)])
    assert every == ([("free", 100), ("zero", 100)], [("fifth", 101)])


def test_what_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "point.toml").write_text(POINT + WRONG)
    monkeypatch.chdir(tmp_path)
    assert "there is no feature 'y'" in play("point.toml", (), "out", "wrong", 100)


def test_two_processes_leave_the_bytes_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tiny.toml").write_text(POINT)
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    run("tiny.toml", variants=("zero",), numbers=[101], workers=2, say=said.append)
    assert "zero, seed 101: played" in said
    assert "zero, seed 101: 100 fresh episodes, deterministic" in capfd.readouterr().out
    before = Path("results/tiny/zero/seed-101.json").read_bytes()
    Path("runs").rename("elsewhere")
    run("tiny.toml", variants=("zero",), numbers=[101], say=said.append)
    assert Path("results/tiny/zero/seed-101.json").read_bytes() == before
