"""Courses of trainings as pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from test_figures import require_picture

from ringfence.report.draw.training_curves import (
    Course,
    Panel,
    comparison_figure,
    courses_figure,
    mean_course,
)

STEPS = np.linspace(0, 2e6, 50)


def course(level: float, count: int = 50) -> Course:
    columns = {"cost": level * np.exp(-STEPS / 1e6), "lam": STEPS / 1e6, "reward": -STEPS}
    return Course(STEPS[:count], {name: values[:count] for name, values in columns.items()})


def test_courses_of_groups_and_seeds_are_drawn(tmp_path: Path) -> None:
    groups = {"velocity": {0: course(30), 1: course(25)}, "position": {}}
    limits = {"velocity": 20.0, "position": 20.0}
    require_picture(courses_figure(groups, limits, tmp_path / "a.png").read_bytes())


def test_groups_are_compared_in_panels(tmp_path: Path) -> None:
    groups = {"pid": [course(30), course(28)], "gradient": [course(40)]}
    panels = [Panel("cost", "cost of an episode", limit=20.0), Panel("reward", "reward")]
    require_picture(comparison_figure(groups, panels, tmp_path / "a.png").read_bytes())


def test_a_mean_goes_as_far_as_all_courses() -> None:
    found = mean_course([course(10), course(20, count=30)])
    assert len(found.steps) == 30
    np.testing.assert_allclose(found.columns["cost"], 15 * np.exp(-STEPS[:30] / 1e6))
