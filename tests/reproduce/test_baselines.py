from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_study import game, row, study_of

from ringfence.reproduce import baselines, run
from ringfence.reproduce.baselines import methods


def test_chou_et_al_from_nothing_to_a_table(
    games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the demonstrations that the games have made."""
    monkeypatch.setattr(baselines, "EPISODES", 16)
    text = Path("games.toml").read_text().replace('kind = "game"', 'kind = "chou"')
    text = text.replace('shown_like = "velocity"\n', "")
    table = '\n[[table]]\nrows = "methods"\ncolumns = [["method", "method"]]\n'
    (tmp_path / "chou.toml").write_text(text + table + 'options.games.velocity = ["mujoco"]\n')
    before = list(Path("runs/reproduce/demonstrations").iterdir())
    out = tmp_path / "results" / "chou"
    run(str(tmp_path / "chou.toml"), variants=("velocity",), out=out, say=lambda line: None)
    assert list(Path("runs/reproduce/demonstrations").iterdir()) == before
    summary = json.loads((out / "velocity" / "seed-0.json").read_text())
    assert (summary["method"], summary["episodes"]) == ("chou", 16)
    assert summary["env_steps"] == (512 if summary["result"] is None else 1024)
    first = (out / "velocity" / "seed-0.json").read_bytes()
    run(str(tmp_path / "chou.toml"), variants=("velocity",), out=out, say=lambda line: None)
    assert (out / "velocity" / "seed-0.json").read_bytes() == first


def test_icl_stands_beside_it_and_what_was_not_run_is_called_so(tmp_path: Path) -> None:
    chou = {"result": row(constraint_error=0.3), "env_steps": 600}
    study_of(tmp_path / "velocity", {"mujoco": {0: game(row()), 1: game(row())}})
    games = {"velocity-mujoco": ["mujoco", "mujoco-weighted"]}
    study = study_of(tmp_path / "baselines", {"velocity-mujoco": {0: chou}}, games=games)
    rows = methods(study).rows
    assert [r["method"] for r in rows] == [
        *["ICL, mujoco"] * 3, *["ICL, mujoco-weighted"] * 3, "Chou et al.",
    ]  # fmt: skip
    assert (rows[2]["iterate"], rows[2]["with_constraint"]) == ("selected", "2 of 2")
    assert {r["status"] for r in rows[3:6]} == {"not run"}
    assert (rows[6]["constraint_error"], rows[6]["env_steps"]) == (0.3, 600)


def test_a_seed_in_which_nobody_earned_more_counts_as_run(tmp_path: Path) -> None:
    nobody = {"result": None, "env_steps": 500}
    study = study_of(tmp_path / "baselines", {"velocity": {0: nobody}}, games={"velocity": []})
    (found,) = methods(study).rows
    assert found["with_constraint"] == "0 of 1"
    assert "constraint_error" not in found
