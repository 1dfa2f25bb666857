"""Evidence on continuous worlds as a run makes it: which cells, whose policies, within which
budget; and what a transfer makes of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crossing_world
from crossing_world import Config, tasks_of, truly_forbidden
from ringfence import api
from ringfence.analysis.evidence import document
from ringfence.analysis.evidence.sampled import SampledEvidence
from ringfence.constraints.family import make_family
from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour, Feature, NotHere, Solution
from ringfence.runs import driver
from ringfence.runs.config import configure
from ringfence.runs.witnessing import evidence_grid, stated_budget, steadied
from small_worlds import config_of, demos_of, result

ANALYSIS = {"slack": 0.01, "episodes": 12}
NARROWED = {**ANALYSIS, "narrowing": 5}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("crossing") / "run"
    crossing_world.play(place, analysis=NARROWED)
    return place


def labels_of(run: Path) -> SampledEvidence:
    found = document.read(run / "evidence.json")
    assert isinstance(found, SampledEvidence)
    return found


def test_the_games_learners_are_witnesses_and_what_they_show_is_true(run: Path) -> None:
    found, world = labels_of(run), tasks_of(Config(seed=3))[0]
    assert found.conflicts
    bad = truly_forbidden(found.grid, world)
    assert all(bad[list(c.cells)].any() for c in found.conflicts)
    assert not (found.proven & ~bad).any()


def test_a_run_counts_its_labels_and_says_what_the_constraint_makes_of_them(run: Path) -> None:
    summary = json.loads((run / "summary.json").read_text())
    written = json.loads((run / "evidence.json").read_text())
    assert summary["evidence"] == labels_of(run).counts()
    assert "evidence" not in summary["not_here"]
    relation = written["relation"]
    assert relation["contradicted"] == 0
    assert relation["implicated"] + relation["confirmed"] > 0
    assert written["next"][0]["score"] >= written["next"][-1]["score"] > 0
    assert set(labels_of(run).doubts) <= set(summary["doubts"])


def test_narrowing_keeps_its_budget_and_its_policies_are_in_the_ledger(
    run: Path, tmp_path: Path
) -> None:
    crossing_world.play(tmp_path / "plain", analysis=ANALYSIS)
    before, after = labels_of(tmp_path / "plain"), labels_of(run)
    assert 0 < after.candidates - before.candidates <= 5
    sizes = [min(len(c.cells) for c in found.conflicts) for found in (before, after)]
    assert sizes[1] <= sizes[0]
    ledgers = [len(list((place / "ledger").iterdir())) for place in (tmp_path / "plain", run)]
    assert ledgers[1] - ledgers[0] == after.candidates - before.candidates


def test_two_workers_and_a_stopped_run_come_to_the_same_bytes(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ringfence.runs.witnessing.label", stopped)
        with pytest.raises(KeyboardInterrupt):
            crossing_world.play(tmp_path / "stopped", analysis=NARROWED)
    driver.drive(tmp_path / "stopped", 2)
    assert result(tmp_path / "stopped") == result(run)


def test_a_finished_run_is_labelled_again_with_other_settings(run: Path, tmp_path: Path) -> None:
    again = Path(shutil.copytree(run, tmp_path / "again"))
    text = (again / "config.toml").read_text()
    assert 'cells = ""' in text
    other = text.replace('cells = ""', 'cells = "table(x by 0.25, y by 0.25)"')
    other = (
        "\n".join(line for line in other.splitlines() if not line.startswith("# SHA-256")) + "\n"
    )
    (again / "config.toml").write_text(other)
    driver.drive(again)
    assert labels_of(again).grid.size.tolist() == [0.25, 0.25]
    assert labels_of(run).grid.size.tolist() == [0.5, 0.5]
    rows = [
        json.loads((place / "summary.json").read_text())["iterations"] for place in (run, again)
    ]
    assert rows[0] == rows[1]  # the game is as it was


def test_a_solver_without_fresh_episodes_has_no_witnesses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crossing_world.ClosedForm, "episodes", lambda *_: None)
    summary = crossing_world.play(tmp_path / "run")
    assert summary["evidence"] is None
    assert "can't play its policies" in summary["not_here"]["evidence"]


# Which cells, and which budget -------------------------------------------------------------------


def grid_of(**tables: Any) -> Any:
    config = config_of("gym", **tables)
    pieces = driver.assemble(config, demos_of("gym"))
    return evidence_grid(config, pieces.family, pieces.shown)


def test_cells_are_those_that_are_named_or_the_classes_own() -> None:
    assert grid_of(analysis={"cells": "table(speed by 0.125)"}).size.tolist() == [0.125]
    own = grid_of(game={"constraint": "table(speed by 0.5)"}, player={"kind": "regression"})
    assert own.size.tolist() == [0.5]
    assert grid_of().columns == (0,)
    with pytest.raises(InvalidInput, match="analysis"):
        grid_of(analysis={"cells": "speed by 2"})


def test_a_class_on_many_features_has_no_cells_until_some_are_named() -> None:
    config = config_of("gym")
    shown = driver.assemble(config, demos_of("gym")).shown
    many = make_family("mlp", (), tuple(Feature(name, "1") for name in "abcd"), None, None)
    found = evidence_grid(config, many, shown)
    assert isinstance(found, NotHere)
    assert "analysis.cells" in found.reason


@pytest.mark.parametrize(
    ("game", "player", "budget"),
    [
        ({"method": "mt-icl"}, {"kind": "regression"}, 0.0),
        ({"method": "icl"}, {"kind": "regression"}, None),
        ({"method": "icl"}, {"kind": "payoff", "expert_budget": 20.0}, 20.0),
    ],
)
def test_the_budget_is_the_stated_one_or_that_of_several_tasks_which_is_0(
    game: dict[str, Any], player: dict[str, Any], budget: float | None
) -> None:
    table: dict[str, Any] = {"constraint": "linear" if player["kind"] == "regression" else "x <= ?"}
    config = configure(
        {
            "command": "",
            "seed": 0,
            "world": {"kind": "crossing_world:make"},
            "game": {**game, **table},
            "player": player,
        }
    )
    assert stated_budget(config) == budget


def test_a_trained_policy_is_a_witness_without_its_noise() -> None:
    pi = Behaviour(np.zeros((1, 1)), np.ones(1), 0, 0, 1, 1)
    noisy = Solution({"actor/w0": np.ones(2), "actor/log_std": np.zeros(2, np.float32)}, 0, pi, 0)
    steady = steadied(noisy)
    assert np.exp(steady.policy["actor/log_std"]).max() < 1e-8
    assert steady.policy["actor/w0"] is noisy.policy["actor/w0"]
    assert noisy.policy["actor/log_std"].tolist() == [0, 0]
    plain = Solution({"pi": np.ones(2)}, 0, pi, 0)
    assert steadied(plain) is plain


# Transfers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("unknown", ["avoid", "allow"])
def test_a_new_task_keeps_to_known_cells_if_it_shall_and_says_whether_it_is_covered(
    run: Path, unknown: str
) -> None:
    solved = api.transfer(run, {"seed": 5}, unknown=unknown).summary
    assert solved["unknown"] == unknown
    assert (solved["leaving_episodes"] == 0) == (unknown == "avoid")
    assert solved["covered"] == (unknown == "avoid")
    assert bool(solved["unknown_cells"]) == (unknown == "allow")


def test_without_a_word_any_cell_may_be_used_that_is_not_forbidden(run: Path) -> None:
    assert api.transfer(run, {"seed": 5}).summary["unknown"] == "allow"
