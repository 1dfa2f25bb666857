from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_study import game, row, study_of

from ringfence.errors import InvalidInput
from ringfence.reproduce.clearance import clearances, deployed, require
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.iterates import figures


def test_selected_policies_are_told_of_a_clearance_and_trained_on(games: Path) -> None:
    played = json.loads((games / "velocity" / "seed-0.json").read_text())
    best = played["iterations"][played["selected"] - 1]
    text = (games / "velocity" / "table.md").read_text()
    error = best["constraint_error"]
    assert f"| selected in the game | 0 | 0.1 | {error:.4f} |" in text
    for name, file, steps in (
        ("the same, told of 0.1", "told", 0),
        ("and trained on", "trained", 512),
    ):
        found = json.loads((games / "velocity" / "clearance" / f"{file}-0.json").read_text())
        assert found["constraint"]["description"] == best["constraint"]["description"]
        assert (found["clearance"], found["env_steps"], found["episodes"]) == (0.1, steps, 4)
        gained = best["expert_reward_mean"] - found["reward"]
        raw = best["expert_true_raw_mean"] - found["true_raw"]
        assert f"| {name} | 0 | 0.1 | {error:.4f} | {gained:.1f} | {raw:.1f} |" in text
    assert "At a clearance" not in (games / "position" / "table.md").read_text()


def test_a_clearance_that_could_only_fail_after_the_games_is_refused() -> None:
    def variant(clearance: float, **tables: object) -> Variant:
        return Variant("a", {"transfer": {"clearance": clearance}, **tables}, 1)

    with pytest.raises(InvalidInput, match="a network has none"):
        require(variant(0.1, game={"constraint": "mlp"}))
    with pytest.raises(InvalidInput, match="see the constraint's value"):
        require(variant(0.1, solver={"augment": False}))
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match="must be above 0 and finite"):
            require(variant(wrong))


def test_a_class_without_the_truth_has_no_error_at_a_clearance(tmp_path: Path) -> None:
    summary = game(row(constraint_error=None))
    settings = {"transfer": {"clearance": 0.1}}
    rows = clearances(study_of(tmp_path, {"a": {0: summary}}, settings=settings)).rows
    assert [r.get("constraint_error", "none") for r in rows][:2] == [None, None]
    assert rows[2]["status"] == "not run"


def test_a_deployed_policy_is_judged_by_its_own_figures() -> None:
    found = {"reward": 120.0, "length": 900.0, "true_raw": -5.0, "true_cost": 4.0}
    assert figures(deployed(row(), found))["reward_gap"] == -20.0
