"""Options that stand for one entry of the configuration each, and --set for all others."""

from __future__ import annotations

from typing import Any

import pytest

from ringfence.cli.commands import settings_of, world_of
from ringfence.cli.main import parser
from ringfence.cli.options import OPTIONS
from ringfence.errors import InvalidInput
from ringfence.runs.config import FIXED, TABLES, TAGGED, configure, kinds, maker
from ringfence.runs.config import settings_of as settings_class


def entries(table: str) -> set[str]:
    """All that the table can have, of any kind."""
    if table in FIXED:
        return set(FIXED[table].__dataclass_fields__)  # type: ignore[attr-defined]
    package = TAGGED[table][0]
    return {
        n for k in kinds(package) for n in settings_class(maker(package, k)).__dataclass_fields__
    }


@pytest.mark.parametrize("name", list(OPTIONS))
def test_every_option_is_an_entry_of_the_configuration(name: str) -> None:
    table, key = OPTIONS[name][0].split(".")
    assert table in TABLES
    assert key in entries(table)


def settings(*words: str) -> dict[str, Any]:
    return settings_of(parser().parse_args(["learn", *words]))


@pytest.mark.parametrize(
    ("words", "there"),
    [
        ([], {}),
        (["--class", "speed <= ?"], {"game": {"constraint": "speed <= ?"}}),
        (["--over", "x,y"], {"game": {"on": ["x", "y"]}}),
        (["--iterations", "3", "--method", "icl"], {"game": {"iterations": 3, "method": "icl"}}),
        (
            ["--player", "payoff", "--expert-budget", "0.5"],
            {"player": {"kind": "payoff", "expert_budget": 0.5}},
        ),
        (["--solver", "lp"], {"solver": {"kind": "lp"}}),
        (["--steps", "5000"], {"solver": {"env_steps": 5000}}),
        (["--slip", "0.1", "--horizon", "9"], {"world": {"horizon": 9, "slip": 0.1}}),
        (["--truth", "speed <= 1"], {"world": {"truth": "speed <= 1"}}),
        (["--set", "game.buffer=2"], {"game": {"buffer": 2}}),
        (["--set", "solver.hidden=[16, 16]"], {"solver": {"hidden": [16, 16]}}),
        (["--set", "game.extra=0"], {"game": {"extra": 0}}),
        (["--set", "player.network.steps=5"], {"player": {"network": {"steps": 5}}}),
        (["--set", "opening.probe=false"], {"opening": {"probe": False}}),
        (["--set", "experts.noise=0.1"], {"experts": {"noise": 0.1}}),
    ],
)
def test_options_become_a_document(words: list[str], there: dict[str, Any]) -> None:
    assert settings(*words) == there


def test_set_has_the_last_word() -> None:
    words = ["--iterations", "3", "--set", "game.iterations=4", "--set", "game.iterations=5"]
    assert settings(*words) == {"game": {"iterations": 5}}


@pytest.mark.parametrize("text", ["game", "game.buffer", "buffer=2", "gam.buffer=2", "seed=1"])
def test_a_setting_that_names_no_entry_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"write table.key=value, such as solver.env_steps"):
        settings("--set", text)


def world(*words: str) -> dict[str, Any]:
    options = parser().parse_args(["learn", *words])
    found = world_of(options, settings_of(options))
    assert isinstance(found, dict)
    return found


def test_features_of_an_environment_are_keys_of_info_or_columns() -> None:
    words = ["--world", "gym:Pendulum-v1", "--feature", "torque:N m", "--feature", "spin:rad/s=2"]
    found = world(*words, "--horizon", "20", "--truth", "spin <= 1")
    assert found == {
        "kind": "gym",
        "env": "Pendulum-v1",
        "steps": 20,
        "truth": "spin <= 1",
        "features": [
            {"name": "torque", "unit": "N m"},
            {"name": "spin", "unit": "rad/s", "column": 2},
        ],
    }
    config = configure({"world": {**found, "features": found["features"][1:]}})
    assert config.world.features[0].column == 2


def test_a_world_of_ones_own_is_named_by_its_function() -> None:
    assert world("--world", "my_module:make") == {"kind": "my_module:make"}
    assert world("--world", "gym:my_module:make")["env"] == "my_module:make"


def test_settings_of_a_map_are_the_maps() -> None:
    found = world("--slip", "0.1", "--horizon", "30", "--set", "world.name=mine")
    assert (found["slip"], found["horizon"], found["name"]) == (0.1, 30, "mine")
