"""The driver: what a run learns, that no truth can reach it, and the summary's contract."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from small_run import MAP, quiet, result, small

from ringfence.constraints.files import load_document
from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.runs.learn import create, drive

ROW = {
    "i", "constraint", "constraint_error", "delta", "learner_reward", "expert_reward",
    "learner_true_raw", "expert_true_raw", "learner_true_cost", "expert_true_cost", "lam",
    "env_steps",
}  # fmt: skip


def test_the_small_wall_is_learned(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    chosen = summary["iterations"][summary["selected"] - 1]
    assert chosen["learner_true_cost"] == [0.0, 0.0]
    assert np.allclose(chosen["learner_reward"], chosen["expert_reward"])
    # The wall, and the one cell that none of three paths per task happened to cross.
    assert chosen["constraint"]["description"].endswith("row 0-2 x col 2; row 3 x col 0")


def test_summary_has_the_contracts_fields(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    top = {"schema", "command", "world", "method", "seed", "versions", "tasks", "iterations"}
    assert top | {"selected", "heldout", "env_steps"} <= set(summary)
    for i, row in enumerate(summary["iterations"], start=1):
        assert set(row) >= ROW
        assert row["i"] == i
        assert len(row["learner_reward"]) == len(summary["tasks"])
        assert row["learner_reward_mean"] == pytest.approx(np.mean(row["learner_reward"]))


def test_the_selected_constraint_is_one_of_the_iterates(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    iterate = finished / "constraints" / f"c_{summary['selected'] - 1:03d}"
    for name in ("constraint.json", "weights.safetensors"):
        assert (finished / "constraint" / name).read_bytes() == (iterate / name).read_bytes()
    _, document = load_document(finished / "constraint")
    assert document["delta"] == 0.0


def test_no_learning_or_selection_step_can_read_the_truth(tmp_path: Path, finished: Path) -> None:
    """The same demonstrations in a world with another truth, or none: the same constraint."""
    expected = result(finished)
    for n, lines in enumerate(
        [("S..0", "##..", "....", "...1"), tuple(s.replace("#", ".") for s in MAP)]
    ):
        run = tmp_path / f"{n}"
        create(run, *small(lines))
        drive(run, 1, quiet)
        learned = result(run)
        for name in expected:
            if name != "summary.json":
                assert learned[name] == expected[name], name
        ours, theirs = (json.loads(r["summary.json"]) for r in (learned, expected))
        assert ours["selected"] == theirs["selected"]
        assert (
            ours["iterations"][0]["learner_true_cost_mean"]
            != (theirs["iterations"][0]["learner_true_cost_mean"])
        )


def test_an_unknown_truth_is_null_never_zero(tmp_path: Path) -> None:
    run = tmp_path / "run"
    create(run, *small(tuple(line.replace("#", ".") for line in MAP)))
    summary = drive(run, 1, quiet)
    for row in summary["iterations"]:
        assert row["learner_true_cost"] == [None, None]
        assert row["learner_true_cost_mean"] is None
        assert row["constraint_error"] is None


@pytest.mark.parametrize("game", [
    {"player": "ftrl"},
    {"method": "icl", "tasks": ("goal (0,3)",)},
    {"method": "icl", "tasks": ("goal (0,3)",), "buffer": 2.0, "anneal": 1.0},
    {"method": "icl", "tasks": ("goal (0,3)",), "constraint_class": "linear", "restricted": False},
])  # fmt: skip
def test_other_games_end_with_a_constraint(tmp_path: Path, game: dict) -> None:
    run = tmp_path / "run"
    create(run, *small(**game))
    summary = drive(run, 1, quiet)
    load_document(run / "constraint")
    assert all(np.isfinite(row["learner_reward_mean"]) for row in summary["iterations"])


@pytest.mark.parametrize(
    ("game", "word"),
    [
        ({"method": "icl"}, "one task, 2 are given"),
        ({"tasks": ("goal (9,9)",)}, r"'goal \(9,9\)' is not in the world"),
        ({"iterations": 0}, "at least 1 iteration"),
    ],
)
def test_a_game_that_cannot_be_played_is_refused(tmp_path: Path, game: dict, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        create(tmp_path / "run", *small(**game))
    assert list(tmp_path.iterdir()) == []


def test_a_constraint_that_shuts_the_experts_out_is_said(tmp_path: Path) -> None:
    """Unrestricted FTRL puts cost on experts' cells: limit 0 can't be kept."""
    run = tmp_path / "run"
    create(run, *small(player="ftrl", restricted=False))
    with pytest.raises(InfeasibleLimit, match=r"iteration 3, goal \(0,3\)"):
        drive(run, 1, quiet)


def test_an_existing_folder_is_never_written_to(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/mine").touch()
    with pytest.raises(InvalidInput, match="exists and is not a run"):
        create(tmp_path / "run", *small())
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine"]


def test_an_empty_folder_becomes_the_run(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    create(tmp_path / "run", *small())
    assert (tmp_path / "run/config.toml").is_file()
    with pytest.raises(InvalidInput, match="exists already; go on with 'ringfence resume"):
        create(tmp_path / "run", *small())


def test_the_working_folder_does_not_become_a_run(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="exists and is not a run"):
        create(Path("."), *small())
