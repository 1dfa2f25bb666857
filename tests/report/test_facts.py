"""What a run found, in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ringfence.report import facts
from ringfence.report.cells import Learned
from ringfence.report.read import read_run


def test_a_constraint_is_said_in_a_few_words(finished: Path, linear: Path, speed: Path) -> None:
    run = read_run(finished)
    count = int(run.chosen.forbidden.sum())
    assert facts.rule(run) == f"{count} of 24 cells are forbidden"
    assert facts.title(run) == f"2 tasks share one constraint: {facts.rule(run)}"
    for folder in (linear, speed):
        one = read_run(folder)
        assert facts.rule(one) == one.best["constraint"]["description"]
    assert facts.title(read_run(linear)) == facts.rule(read_run(linear))  # one task


def test_differences_from_the_truth_are_counted_and_named() -> None:
    walls = np.array([[True, False], [False, False]])
    learned = Learned(np.zeros((2, 2)), ~walls)
    said = facts.difference(walls, learned)
    assert said == (
        "it forbids 3 free cells at (0,1), (1,0) and (1,1) and it misses 1 wall cell at (0,0)"
    )
    assert "cell for cell" in facts.difference(walls, Learned(np.zeros((2, 2)), walls))


def test_each_iteration_says_reward_and_cost(speed: Path, finished: Path) -> None:
    said = " ".join(facts.iteration(read_run(speed), 0))
    for part in ("c1: speed <= 0.9", "Learners earn", "may cost", "True cost", "failed"):
        assert part in said
    on_map = " ".join(facts.iteration(read_run(finished), 0))
    assert "the constraint forbids 0 of 24 cells" in on_map
    assert "it misses 3 wall cells" in on_map
    assert "Steps in walls" in on_map


def test_visitors_are_counted_by_path(finished: Path) -> None:
    run = read_run(finished)
    assert run.cells is not None
    seen = facts.visitors(run, run.cells)
    assert seen[(0, 0)] == [(k, len(group)) for k, group in enumerate(run.experts)]
    assert (0, 2) not in seen  # a wall


def test_every_cell_has_its_facts(finished: Path) -> None:
    run = read_run(finished)
    assert run.cells is not None
    said = facts.cell_facts(run, run.cells)
    assert "A start." in said[(0, 0)]
    assert "The goal of task goal (0,5)." in said[(0, 5)]
    assert "In truth it is forbidden." in said[(0, 2)]
    assert "No expert was here." in said[(0, 2)]
    assert any("proven forbidden" in fact for fact in said[(0, 2)])
