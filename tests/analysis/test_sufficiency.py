from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringfence
from played_games import drive, played
from ringfence.analysis import sufficiency, theory
from ringfence.analysis.sufficiency import changed_cells, needed, relative_width
from ringfence.cli.main import main
from ringfence.errors import InvalidInput
from ringfence.objects import NotHere, TaskDemos, behaviour_of
from ringfence.runs import driver


def test_a_width_is_relative_and_the_widest() -> None:
    rng = np.random.default_rng(0)
    samples = np.stack([rng.normal(100, 1, 4000), rng.normal(10, 1, 4000)], axis=1)
    assert relative_width(samples) == pytest.approx(1.96 / 10, rel=0.05)


def test_cells_that_never_change_have_no_spread() -> None:
    same = np.tile([1.0, 0.0, 1.0], (5, 1))
    assert changed_cells(same) == 0
    other = same.copy()
    other[0] = [1.0, 1.0, 0.0]  # one in common of three
    assert changed_cells(other) == pytest.approx((1 - 1 / 3) / 5)


def test_a_spread_that_falls_like_a_root_needs_the_square() -> None:
    curve = [{"factor": f, "spread": 0.1 / f**0.5} for f in (0.25, 0.5, 1.0, 2.0)]
    found = needed(curve, 0.1, 0.05, 30)
    assert found["slope"] == pytest.approx(0.5)
    assert found["needed"] == 120
    assert needed(curve, 0.1, 0.2, 30)["more"] == 0
    flat = [{"factor": f, "spread": 0.1} for f in (0.25, 0.5, 1.0, 2.0)]
    assert needed(flat, 0.1, 0.05, 30)["more"] is None


def steady(n: int, spread: float) -> tuple[Any, ...]:
    rng = np.random.default_rng(n)
    return tuple(drive(*(1.0 + spread * rng.normal(size=3))) for _ in range(n))


def test_more_demonstrations_of_the_task_that_varies_are_asked_for() -> None:
    sure, unsure = (TaskDemos(name, steady(8, s), ()) for name, s in (("a", 0.001), ("b", 0.2)))
    behaviours = tuple(behaviour_of(d.train) for d in (sure, unsure))
    two = [replace(r, solutions=r.solutions * 2, deltas=(0.0, 0.0)) for r in played().records]
    game = played(demos=(sure, unsure), experts=behaviours, heldout=behaviours, records=two)
    found = sufficiency.sufficiency(game, 0.01)
    assert not isinstance(found, NotHere)
    assert found["ask_for"] == "b"
    assert found["now"] > 0.01
    assert found["more"] == found["needed"] - 16
    spreads = [row["spread"] for row in found["curve"]]
    assert spreads[0] > spreads[-1]
    said = " ".join(sufficiency.in_words(found))
    assert f"about {found['more']} more demonstrations are needed" in said
    assert "most useful are those of 'b'" in said


def test_the_lemma_stands_beside_it_and_is_called_vacuous() -> None:
    found = sufficiency.sufficiency(played(), 0.05)
    assert not isinstance(found, NotHere)
    lemma = found["theory"]
    assert lemma["tasks_needed"] == theory.tasks_needed(0.05, 0.05, 20, 2.0)
    assert lemma["vacuous"]
    assert "vacuous" in sufficiency.in_words(found)[-1]


def test_a_table_has_a_spread_too_and_the_run_stays_as_it_was(tmp_path: Path) -> None:
    learned = ringfence.learn("maze", settings={"analysis": {"resamples": 0}})
    run = learned.save(tmp_path / "run")
    before = {p: p.read_bytes() for p in sorted(run.rglob("*")) if p.is_file()}
    found = ringfence.plan(run, 0.3)
    assert {p: p.read_bytes() for p in sorted(run.rglob("*")) if p.is_file()} == before
    assert found["measure"] == "share of forbidden cells"
    assert found["curve"][0]["spread"] > found["curve"][-1]["spread"] > 0
    assert len(found["tasks"]) == len(learned.summary["tasks"])
    assert found["theory"]["class_size_log2"] == 100
    assert main(["plan", str(run), "--spread", "0.3", "--out", str(tmp_path / "plan.json")]) == 0
    assert json.loads((tmp_path / "plan.json").read_text()) == found


def test_what_has_no_measure_is_said(tmp_path: Path) -> None:
    first = played(i=1)
    assert "answers to no learner" in str(sufficiency.sufficiency(first, 0.1))
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        sufficiency.sufficiency(played(), 0.0)
    with pytest.raises(InvalidInput, match="not a finished run"):
        driver.replay(tmp_path)
