"""Planes and distributions: lines stand where the constraints' edges are."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from parsed_pages import Page
from written_runs import PLANE

from ringfence.constraints.linear import LinearConstraint
from ringfence.report.draw.svg_plane import (
    LEFT,
    RIGHT,
    WIDTH,
    Plane,
    budgets,
    distribution,
    from_above,
    histograms,
    same_scale,
)
from ringfence.report.read import Run, read_run

SPEED = 2


@pytest.fixture
def run(speed: Path) -> Run:
    return read_run(speed)


def drawn_at(svg: str, kind: str) -> float:
    """The speed at which an upright line of a class stands."""
    (x,) = re.findall(rf'd="M([\d.]+) [\d.]+L\1 [\d.]+" class="{kind}"', svg)
    return 0.995 * (float(x) - LEFT) / (WIDTH - LEFT - RIGHT)


@pytest.mark.parametrize(
    ("weight", "offset"), [(0.2372, 0.1557), (2.0, 1.3), (1.6, 1.0), (-1.0, -0.4)]
)
def test_lines_stand_at_the_edge_whatever_the_scale(run: Run, weight: float, offset: float) -> None:
    learned = LinearConstraint(PLANE, np.array([0.0, 0.0, weight]), offset)
    one = replace(run, learned=(learned,), learners=run.learners[:1])
    svg = distribution(one, SPEED, "view")
    (bound,) = re.findall(r'<g class="series bound">.*?</g>', svg)
    assert drawn_at(bound, "main") == pytest.approx(offset / weight, abs=6e-3)
    assert drawn_at(svg, "outline truth") == pytest.approx(0.75, abs=6e-3)


def test_a_distribution_counts_every_step_once(run: Run) -> None:
    bins, groups = histograms(run, SPEED)
    assert len(groups) == 1 + len(run.learned)
    for shares in groups:
        assert set(shares) == {"all", "0", "1"}
        for share in shares.values():
            assert len(share) == len(bins) - 1
            assert share.sum() == pytest.approx(1, abs=0.01)  # all but the rarest highest speeds


def test_a_run_without_its_ledger_has_experts_only(run: Run) -> None:
    bare = replace(run, learners=((None, None),) * 3)
    assert histograms(bare, SPEED)[1][1]["all"].sum() == 0
    assert "series expert" in distribution(bare, SPEED, "view")
    assert 'data-layer="visits"' not in from_above(bare, (0, 1), "view")


def test_paths_from_above_belong_to_tasks_and_iterations(run: Run) -> None:
    got = Page(from_above(run, (0, 1), "view"))
    for k in "01":
        assert got.find("g", data_layer="paths", data_task=k)
        for i in "123":
            assert got.find("g", data_layer="visits", data_task=k, data_i=i)
    assert not got.find("path", class_="truth")  # the truth is on speed alone


def test_what_was_learned_beside_the_curve_of_budgets_is_drawn(run: Run) -> None:
    rows = [dict(row) for row in run.rows]
    rows[1]["constraint"] = {**rows[1]["constraint"], "parameters": {"limit": 1.2}}
    far = replace(run, summary={**run.summary, "iterations": rows})
    assert len(re.findall(r'class="main"', budgets(far))) == 2
    assert "limit in speed" in budgets(run)
    assert "outline truth" in budgets(run)


def test_a_plane_of_no_extent_can_still_be_drawn() -> None:
    plane = Plane(np.zeros(2), np.zeros(2), ("a", "b"))
    assert np.isfinite(plane.place(np.zeros((1, 2)))).all()
    assert plane.upright(5.0) is None


def test_what_is_round_is_drawn_round() -> None:
    low, high = same_scale(np.array([-1.0, 0.0]), np.array([1.0, 1.0]))
    assert (low <= [-1, 0]).all()
    assert (high >= [1, 1]).all()
    square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    corner, right, top = Plane(low, high, ("x", "y")).place(square)
    assert right[0] - corner[0] == pytest.approx(right[1] - top[1])
