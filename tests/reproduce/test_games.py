from __future__ import annotations

from pathlib import Path

import pytest

from ringfence.reproduce import games as played
from ringfence.reproduce.experiment import chosen, read
from ringfence.runs import config


def test_a_game_is_found_by_its_settings_and_demonstrations(games: Path) -> None:
    found = read("games.toml")
    plain = found.variants["velocity"]
    run = played.folder_of(found, plain, 0)
    assert (run / "summary.json").is_file()
    assert config.read(run / "config.toml").game.iterations == 2
    for settings in (["solver.passes=2"], ["demos.drop_failed=true"], ["demonstrations.noise=0.5"]):
        (other,) = chosen(found, ["velocity"], settings=settings)
        assert not played.folder_of(found, other, 0).exists()
    assert not played.folder_of(found, plain, 1).exists()


def test_a_game_with_another_name_is_the_same_game(
    games: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = read("games.toml")
    monkeypatch.setattr(played.driver, "drive", lambda *_: pytest.fail("played again"))
    again = played.run_of(found, found.variants["velocity"], 0, print)
    assert again == played.folder_of(found, found.variants["velocity"], 0)
