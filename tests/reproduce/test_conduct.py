"""From nothing to tables on tiny settings; what is done is not done again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from PIL import Image

from ray_nodes import needs_ray, nodes_of
from ringfence.demos import dataset
from ringfence.errors import InvalidInput
from ringfence.reproduce import analyses, experiment, run
from ringfence.runs import driver
from small_worlds import demos_of, document, result


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


# On many machines --------------------------------------------------------------------------------


def study_of_carts(folder: Path, seeds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a study of small games in an environment of one's own, to work in."""
    folder.mkdir()
    monkeypatch.chdir(folder)
    dataset.save(demos_of("gym"), folder / "shown")
    tables = {k: v for k, v in document("gym").items() if k not in ("command", "seed")}
    file = {
        "about": "carts",
        "kind": "game",
        "seeds": seeds,
        "base": {**tables, "demonstrations": {"path": "shown"}},
        "variants": {"plain": {}},
        "table": [{"rows": "iterates", "columns": [["seed", "seed"]]}],
    }
    (folder / "carts.toml").write_text(tomli_w.dumps(file))


@pytest.mark.ray
@needs_ray
def test_a_study_of_six_seeds_on_two_nodes_has_the_bytes_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its seeds are driven at once: solves of different seeds run side by side."""
    study_of_carts(tmp_path / "here", 6, monkeypatch)
    run("carts.toml", say=lambda line: None)
    study_of_carts(tmp_path / "there", 6, monkeypatch)
    lines: list[str] = []
    with nodes_of(2) as nodes:
        run("carts.toml", on=nodes.address, say=lines.append)
    begun = [n for n, line in enumerate(lines) if line.endswith(": begins")]
    assert begun == list(range(6))
    here, there = tmp_path / "here", tmp_path / "there"
    games = sorted(p.name for p in (here / "runs" / "reproduce" / "games").iterdir())
    assert len(games) == 6
    for name in games:
        one, other = (f / "runs" / "reproduce" / "games" / name for f in (here, there))
        assert result(one) == result(other)
    for path in (*(f"seed-{n}.json" for n in range(6)), "manifest.json"):  # tables have minutes
        one, other = (f / "results" / "carts" / "plain" / path for f in (here, there))
        assert one.read_bytes() == other.read_bytes(), path


@pytest.mark.ray
@needs_ray
def test_trainings_of_a_study_are_solved_elsewhere_to_the_same_bytes(
    here: Path, trainings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trainings.toml").write_text((here / "trainings.toml").read_text())
    with nodes_of(1) as nodes:
        run("trainings.toml", variants=("longer",), on=nodes.address, say=lambda line: None)
    for name in ("plain-seed-0", "longer-seed-0"):
        (one,) = (here / "runs" / "reproduce" / "trainings").glob(f"{name}-*")
        (other,) = (tmp_path / "runs" / "reproduce" / "trainings").glob(f"{name}-*")
        mine = {n: c for n, c in result(other).items() if not n.startswith("checkpoint")}
        assert mine == {n: c for n, c in result(one).items() if not n.startswith("checkpoint")}
