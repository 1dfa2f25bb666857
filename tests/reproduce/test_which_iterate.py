from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from small_study import game, row, study_of

from ringfence.errors import InvalidInput
from ringfence.reproduce.which_iterate import chosen_iterates


def test_choices_are_compared_over_all_games(tmp_path: Path) -> None:
    results = tmp_path / "results"
    study = study_of(tmp_path / "nowhere", {})
    for place in (results / "selection", tmp_path / "none" / "selection"):
        with pytest.raises(InvalidInput, match="no folder in it has a finished single-task game"):
            chosen_iterates(replace(study, out=place))
    rows = [
        row(learner_reward_mean=110.0),
        row(learner_reward_mean=90.0, learner_true_cost_mean=30.0),
    ]
    nothing = {"method": "icl", "iterations": [], "choices": None}
    study_of(results / "velocity", {"mujoco": {0: game(*rows), 1: nothing}})
    found = chosen_iterates(replace(study, out=results / "selection"))
    assert (found.facts["games"], found.facts["folders"]) == (1, 1)
    all_games = [r for r in found.rows if r["of"] == "everything"]
    assert [(r["reward"], r["cost"], r["good_raw"], r["good_cost"]) for r in all_games] == [
        (1.1, -2.0, 1.0, 1.0),
        (0.9, 20.0, 0.0, 0.0),
        (1.0, 9.0, 0.5, 0.5),
        (1.1, -2.0, 1.0, 1.0),
    ]
    assert {r["folder"] for r in found.rows} == {"all", "velocity/mujoco"}
