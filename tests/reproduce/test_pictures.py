"""Figures from the committed tables and summaries; a picture that can't be drawn is left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ringfence.reproduce import pictures
from ringfence.reproduce.experiment import read
from ringfence.reproduce.study import Study, found_variants

RESULTS = Path(__file__).parents[2] / "results"


def study(name: str, *variants: str) -> Study:
    experiment = read(name)
    chosen = [experiment.variants[v] for v in variants]
    found = chosen or found_variants(experiment, RESULTS / name, [])
    return Study(experiment, tuple(found), RESULTS / name)


def colours(path: Path) -> int:
    pixels = np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3)
    return len(np.unique(pixels, axis=0))


@pytest.mark.parametrize(
    ("draw", "made"),
    [
        ("curves", study("velocity", "mujoco")),
        ("curves", study("position", "mujoco-mlp-full-state")),
        ("path_curve", study("grid")),
        ("maze_curves", study("maze")),
        ("unseen", study("unseen")),
    ],
)
def test_a_figure_is_drawn_from_committed_results(draw: str, made: Study, tmp_path: Path) -> None:
    path = tmp_path / "figure.png"
    getattr(pictures, draw)(made, path)
    assert colours(path) > 50


def test_without_its_run_a_figure_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "figure.png"
    pictures.paths(study("position", "mujoco"), path)
    pictures.evidence(study("maze"), path)
    pictures.floor_panels(study("maze"), path)
    pictures.point_panels(study("point-maze"), path)
    panels = {"panels": [["cost", "cost", "limit"]], "variants": "*"}
    pictures.trainings(replace(study("experts"), options=panels), path)
    pictures.compared_trainings(replace(study("resets"), options=panels), path)
    assert not path.exists()
