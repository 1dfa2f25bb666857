"""From nothing to tables on tiny settings; what is done is not done again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ringfence.errors import InvalidInput
from ringfence.reproduce import analyses, experiment, run
from ringfence.runs import driver


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def colours(path: Path) -> int:
    pixels = np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3)
    return len(np.unique(pixels, axis=0))


def test_games_from_nothing_to_tables_and_figures(games: Path) -> None:
    summary = json.loads((games / "position" / "seed-0.json").read_text())
    assert (summary["schema"], summary["true_parameters"]) == (2, {"x": 0.5})
    table = (games / "position" / "table.md").read_text()
    error = summary["iterations"][0]["constraint_error"]
    assert f"| first iteration | 0 | {error:.4f} |" in table
    assert "1 of 1" in table or "0 of 1" in table
    for name in ("curves.png", "paths.png"):
        assert colours(games / "position" / name) > 50
    rows = json.loads((games / "table.json").read_text())
    assert {row["variant"] for row in rows} == {"velocity", "position"}
    assert all(not isinstance(value, dict | list) for row in rows for value in row.values())
    manifest = json.loads((games / "velocity" / "manifest.json").read_text())
    assert (manifest["order"], manifest["seeds"]) == ([0], [0])
    assert manifest["settings"]["transfer"] == {"clearance": 0.1, "episodes": 4}
    assert manifest["experiment_sha256"] == experiment.read("games.toml").sha256
    pages = list(Path("runs/reproduce/games").glob("*/report.html"))
    assert len(pages) == 2


def test_a_second_time_nothing_is_played_and_all_bytes_are_the_same(
    games: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, runs = contents(games), contents(Path("runs"))
    monkeypatch.setattr(driver, "drive", lambda *_: pytest.fail("played again"))
    run("games.toml", say=lambda line: None)
    assert contents(games) == before
    assert {n for n, b in contents(Path("runs")).items() if runs.get(n) != b} == set()


def test_results_of_other_settings_are_neither_mixed_in_nor_replaced(
    games: Path, tmp_path: Path
) -> None:
    before = contents(games)
    longer = (Path("games.toml").read_text()).replace("iterations = 2", "iterations = 3")
    (tmp_path / "games.toml").write_text(longer)
    with pytest.raises(InvalidInput, match=r"other settings \(game.iterations: 2, now 3\); move"):
        run(str(tmp_path / "games.toml"), say=lambda line: None)
    assert contents(games) == before


def test_a_killed_study_goes_on(
    here: Path, games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the second game had not been played yet, and the first seed's page not written."""
    out = tmp_path / "out"
    play = analyses.play_of("game")

    def killed(study: object, variant: experiment.Variant, seed: int) -> object:
        if variant.name == "position":
            raise KeyboardInterrupt
        return play(study, variant, seed)

    monkeypatch.setattr("ringfence.reproduce.conduct.play_of", lambda kind: killed)
    with pytest.raises(KeyboardInterrupt):
        run("games.toml", out=out, say=lambda line: None)
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert (out / "velocity" / "table.md").is_file()
    assert not (out / "position").exists()
    run("games.toml", out=out, say=lambda line: None, command="ringfence reproduce games.toml")
    assert contents(out) == contents(games)


def test_a_variant_of_ones_own_stands_beside_the_files(games: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(games, out)
    run("games.toml", variants=("position",), settings=("game.iterations=1",), out=out,
        say=lambda line: None)  # fmt: skip
    assert (out / "position-iterations-1" / "seed-0.json").is_file()
    rows = json.loads((out / "table.json").read_text())
    names = [row["variant"] for row in rows if row["iterate"] == "selected"]
    assert list(dict.fromkeys(names)) == ["velocity", "position", "position-iterations-1"]


def test_wrong_use_is_said_before_anything_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for arguments, message in (
        ({"workers": 0}, "--workers must be at least 1"),
        ({"seeds": 0}, "--seeds must be at least 1"),
        ({"variants": ("none",)}, "grid has no variant 'none'"),
        ({"settings": ("game=1",)}, "give TABLE.KEY=VALUE"),
    ):
        with pytest.raises(InvalidInput, match=message):
            run("grid", out=out, say=lambda line: None, **arguments)  # type: ignore[arg-type]
    assert not out.exists()
