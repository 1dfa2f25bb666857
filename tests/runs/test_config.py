"""config.toml: everything written out, read back exactly, and refused by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ringfence.errors import InvalidInput
from ringfence.runs.config import (
    DemosConfig,
    GameConfig,
    RunConfig,
    SolverConfig,
    WorldConfig,
    read,
    to_toml,
)

CONFIG = RunConfig(
    command='ringfence learn --task "goal (0,2)"',
    seed=3,
    world=WorldConfig("tiny", ("S.0", ".#."), 9, 0.1, "exp-distance"),
    demos=DemosConfig("ab" * 32),
    game=GameConfig(tasks=("goal (0,2)",), epsilon=1e-7),
    solver=SolverConfig("lp"),
)


def test_round_trip_is_exact(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(to_toml(CONFIG))
    assert read(path) == CONFIG


def test_defaults_are_written_out() -> None:
    text = to_toml(CONFIG)
    for name in ("iterations = 5", "buffer = 0.0", "temperature = 0.05", 'experts = "sampled"'):
        assert name in text


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("schema = 1", "schema = 2", ["schema 2", "reads 1"]),
        ("seed = 3", 'seed = "3"', ["'seed'", "int"]),
        ("iterations = 5", "iterations = 5.5", ["[game] iterations", "int"]),
        ("iterations = 5", "rounds = 5", ["[game]", "'rounds'", "iterations"]),
        ('kind = "lp"', 'kind = "magic"', ["[solver] kind", "'soft', 'lp'"]),
        ("horizon = 9\n", "", ["[world]", "horizon"]),
        ("slip = 0.1", "slip = nan", ["[world] slip: nan is not finite"]),
        ("[game]", "[game", ["not valid TOML"]),
        ('"goal (0,2)",', "7,", ["[game] tasks", "list of strings"]),
    ],
)
def test_a_bad_entry_is_named(tmp_path: Path, old: str, new: str, words: list[str]) -> None:
    path = tmp_path / "config.toml"
    text = to_toml(CONFIG)
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InvalidInput) as error:
        read(path)
    for word in [str(path), *words]:
        assert word in str(error.value)


def test_what_could_not_be_read_back_is_not_written() -> None:
    endless = replace(CONFIG, game=replace(CONFIG.game, epsilon=float("-inf")))
    with pytest.raises(InvalidInput, match=r"\[game\] epsilon: -inf is not finite"):
        to_toml(endless)


def test_a_folder_without_configuration_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a run directory"):
        read(tmp_path / "config.toml")
