"""config.toml: every default written out, read back exactly, each mistake named in a line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from ringfence.errors import InvalidInput
from ringfence.runs import config as configs
from ringfence.runs.config import (
    TABLES,
    Config,
    Game,
    Opening,
    agree,
    configure,
    kinds,
    make_solver,
    make_world,
    merged,
    read,
    read_user,
    setting,
    to_toml,
    world_table,
)
from small_worlds import config_of, document, every_world, of_kinds

Finished = Callable[[str], Path]


def tiny() -> Config:
    return configure(
        {
            "command": 'ringfence learn --task "goal (0,2)"',
            "seed": 3,
            "world": {"kind": "grid", "name": "tiny", "map": ["S.0", ".#."], "horizon": 9,
                      "slip": 0.1, "reward": "exp-distance"},
            "demos": {"content_hash": "ab" * 32},
            "game": {"tasks": ["goal (0,2)"], "epsilon": 1e-7},
            "solver": {"kind": "lp"},
        }
    )  # fmt: skip


# Files -------------------------------------------------------------------------------------------


@every_world
def test_a_configuration_is_read_back_exactly(kind: str, tmp_path: Path) -> None:
    config, path = config_of(kind), tmp_path / "config.toml"
    path.write_text(to_toml(config))
    agree(tmp_path, trust=True)
    assert read(path) == config
    assert to_toml(read(path)) == path.read_text()


def test_other_numbers_are_read_back_exactly(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(to_toml(tiny()))
    assert read(tmp_path / "config.toml") == tiny()


def test_defaults_are_written_out() -> None:
    text = to_toml(config_of("grid"))
    for entry in ("iterations = 5", "buffer = 0.0", "temperature = 0.05", 'experts = "sampled"',
                  "extra = 5", "resamples = 200", "restricted = true"):  # fmt: skip
        assert f"\n{entry}\n" in text


def test_a_runs_file_needs_no_world_to_be_read(
    tmp_path: Path, finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The world's own defaults are written out, whatever they are in another version."""
    monkeypatch.setenv("RINGFENCE_CACHE", str(tmp_path / "cache"))  # where nothing was agreed to
    text = (finished("gym") / "config.toml").read_text().partition("\n")[2]
    (tmp_path / "config.toml").write_text(text.replace("own_cart:make_cart", "gone:make"))
    with pytest.raises(InvalidInput, match=r"names code .*env = 'gone:make'.*--trust"):
        read(tmp_path / "config.toml")
    agree(tmp_path, trust=True)
    config = read(tmp_path / "config.toml")
    assert config.solver.kind == "ppo"
    assert config.game.epsilon == -1.0
    with pytest.raises(InvalidInput, match="No module named 'gone'"):
        make_world(config.world)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("seed = 3", 'seed = "3"', ["seed: '3'", "a whole number"]),
        ("seed = 3", "seed = -3", ["seed: -3", "at least 0"]),
        ("seed = 3", "seed = true", ["seed: True", "a whole number"]),
        ("iterations = 5", "iterations = 5.5", ["[game] iterations: 5.5", "integer"]),
        ("iterations = 5", "iterations = 0", ["[game] iterations: 0", "at least 1"]),
        ("iterations = 5", "rounds = 5", ["[game] rounds: unknown", "there are", "iterations"]),
        ('kind = "lp"', 'kind = "magic"', ["[solver] kind: 'magic'", "lp, planner, ppo, soft"]),
        ("slip = 0.1", "slip = nan", ["[world] slip: nan is not finite", "give a number"]),
        ("map = [", 'nam = "x"\nmap = [', ["[world] nam: unknown", "there are map"]),
        ("horizon = 9", 'horizon = "9"', ['[world] horizon: "9"', "integer"]),
        ('reward = "exp-distance"', 'reward = "far"', ['"far"', "'goal' or 'exp-distance'"]),
        ("[game]", "[game", ["not valid TOML"]),
        ('"goal (0,2)",', "7,", ["[game] tasks.0: 7", "string"]),
        ("[analysis]", "[section]", ["'section' is unknown", "analysis"]),
        ("buffer = 0.0", "buffer = -1.0", ["[game] buffer: -1.0", "at least 0"]),
        ("heldout = 0.3", "heldout = 1.0", ["[demos] heldout: 1.0", "between 0 and 1"]),
        ("resamples = 200", "resamples = -1", ["[analysis] resamples: -1", "at least 0"]),
    ],
)
def test_a_bad_entry_is_named_with_file_table_key_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, words: list[str]
) -> None:
    path, text = tmp_path / "config.toml", to_toml(tiny())
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InvalidInput) as error:
        read(path)
    (line,) = str(error.value).splitlines()
    for word in [str(path), *words]:
        assert word in line


def test_several_mistakes_are_several_lines() -> None:
    with pytest.raises(InvalidInput) as error:
        configure(
            document(
                "grid",
                seed=-1,
                game={"rounds": 5, "buffer": "none"},
                solver={"heat": 1.0},
                analysis={"resamples": "many"},
                clone={},
                ppo={},
            ),
            "my.toml",
        )
    lines = str(error.value).splitlines()
    for words in (
        "my.toml: 'clone' is unknown; there are schema, command, seed, world, demos",
        "my.toml: 'ppo' is unknown",
        "my.toml: [game] rounds: unknown; there are method",
        'my.toml: [game] buffer: "none" is not a number',
        "my.toml: [solver] heat: unknown; there are",
        'my.toml: [analysis] resamples: "many" is not',
        "my.toml: seed: -1 is not a whole number",
    ):
        assert sum(line.startswith(words) for line in lines) == 1, words
    assert len(lines) == 7


def test_a_world_with_mistakes_does_not_hide_those_of_other_tables() -> None:
    with pytest.raises(InvalidInput) as error:
        configure({"world": {"kind": "grid", "slip": "0", "nam": "x"}, "game": {"rounds": 1}})
    lines = str(error.value).splitlines()
    assert [line.split(":")[1].strip() for line in lines] == [
        "[world] map", "[world] slip", "[world] nam", "[game] rounds",
    ]  # fmt: skip
    with pytest.raises(InvalidInput, match=r"kind: 'moon' is not one of ant, .*\n.*\[game\] rou"):
        configure({"world": {"kind": "moon"}, "game": {"rounds": 1}, "solver": {"env_steps": 1}})


@pytest.mark.parametrize("table", TABLES)
def test_a_value_in_the_place_of_a_table_is_refused(table: str) -> None:
    with pytest.raises(InvalidInput, match=rf"\[{table}\] must be a table .* not 3"):
        configure({**document("grid"), table: 3})


def test_what_could_not_be_read_back_is_not_written() -> None:
    endless = replace(tiny(), game=replace(tiny().game, epsilon=float("-inf")))
    with pytest.raises(InvalidInput, match=r"game epsilon: -inf is not finite"):
        to_toml(endless)


def test_a_folder_without_configuration_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a run directory"):
        read(tmp_path / "config.toml")


# Versions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", ["1", "3", '"two"'])
def test_a_run_of_another_schema_is_refused_with_the_version_that_wrote_it(
    tmp_path: Path, schema: str
) -> None:
    (tmp_path / "config.toml").write_text(f"schema = {schema}\nseed = 0\n")
    (tmp_path / "summary.json").write_text(json.dumps({"versions": {"ringfence": "0.1.7"}}))
    with pytest.raises(InvalidInput) as error:
        read(tmp_path / "config.toml")
    (line,) = str(error.value).splitlines()
    for words in (
        f"schema {schema.replace(chr(34), chr(39))}, written by ringfence 0.1.7",
        f"this is {version('ringfence')}, which reads schema 2",
        "use the version that wrote it, or learn again",
        "its constraint still loads",
    ):
        assert words in line


@pytest.mark.parametrize("summary", [None, "{", "[]", '{"versions": {}}'])
def test_an_unfinished_run_of_an_older_schema_is_refused_too(
    tmp_path: Path, summary: str | None
) -> None:
    (tmp_path / "config.toml").write_text("schema = 1\n")
    if summary is not None:
        (tmp_path / "summary.json").write_text(summary)
    with pytest.raises(InvalidInput, match=r"schema 1, written by ringfence of before 0\.2"):
        read(tmp_path / "config.toml")


def test_a_users_file_may_say_no_schema_but_no_other_one(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text('[world]\nkind = "ant"\n')
    assert read_user(path)["schema"] == 2
    path.write_text("schema = 1\n")
    with pytest.raises(InvalidInput, match=r"my\.toml: schema 1, this version reads 2"):
        read_user(path)
    with pytest.raises(InvalidInput, match="no such file; give a TOML file"):
        read_user(tmp_path / "none.toml")


# Defaults ----------------------------------------------------------------------------------------


def test_every_continuous_world_has_the_same_policy_player_unless_an_entry_is_given() -> None:
    cart = {
        "kind": "gym",
        "env": "own_cart:make_cart",
        "steps": 50,
        "features": [{"name": "speed"}],
    }
    games = [{"world": {"kind": "ant"}}, {"world": {"kind": "ant-bullet"}}, {"world": cart}]
    one, *others = (configure(game).solver for game in games)
    assert others == [one, one]
    given = configure(games[1] | {"solver": {"learning_rate": 2e-4}}).solver
    assert given == replace(one, learning_rate=2e-4)


def test_a_worlds_defaults_are_not_those_of_another_kind_of_solver() -> None:
    config = configure(document("ant-maze", solver={"kind": "soft", "temperature": 0.1}) | {
        "solver": {"kind": "soft", "temperature": 0.1}})  # fmt: skip
    assert asdict(config.solver) == {"kind": "soft", "temperature": 0.1}


def test_a_given_entry_leaves_the_worlds_other_defaults() -> None:
    config = configure({"world": {"kind": "ant"}, "game": {"iterations": 3}})
    assert (config.game.iterations, config.game.buffer, config.game.anneal) == (3, 20.0, 10.0)
    assert config.opening.kind == "clone"


@of_kinds("gym")
def test_several_tasks_make_a_multi_task_game(kind: str) -> None:
    two = {"tasks": [{"name": "a"}, {"name": "b"}]}
    assert config_of(kind).game.method == "icl"
    assert config_of(kind, world=two).game.method == "mt-icl"


def test_c_1_answers_to_the_clone_unless_it_is_said_otherwise() -> None:
    assert Opening("clone").first == "clone"
    assert Opening("clone", initial="free").first == "free"
    assert Opening("none").first == "none"
    assert Opening("clone").probes
    assert not Opening("none").probes
    assert Opening("none", probe=True).probes
    with pytest.raises(InvalidInput, match='initial = "clone" needs kind = "clone"'):
        Opening("none", initial="clone")


@pytest.mark.parametrize(
    "entry", [{"steps": 0}, {"batch": 0}, {"learning_rate": 0.0}, {"steps": -1}]
)
def test_a_clone_needs_steps(entry: dict[str, Any]) -> None:
    (name,) = entry
    with pytest.raises(InvalidInput, match=rf"\[opening\] {name}: {entry[name]} is not"):
        Opening("clone", **entry)


@pytest.mark.parametrize("name", ["buffer", "anneal", "stop_share"])
def test_a_game_gives_and_takes_nothing_negative(name: str) -> None:
    with pytest.raises(InvalidInput, match=rf"\[game\] {name}: -1.0 is not at least 0"):
        Game(**{name: -1.0})  # type: ignore[arg-type]


# Kinds -------------------------------------------------------------------------------------------


def test_a_kind_is_a_module_with_a_make() -> None:
    assert {"grid", "tables", "gym", "ant", "ant-bullet", "ant-maze"} <= set(kinds("worlds"))
    assert set(kinds("players")) == {"regression", "ftrl", "payoff", "patches"}
    assert {"soft", "lp", "lagrangian", "planner", "ppo"} <= set(kinds("solvers"))


def test_a_kind_of_ones_own_has_settings_of_its_own() -> None:
    config = config_of(
        "grid", solver={"kind": "mortal_solvers:failing", "notes": "x", "words": "no"}
    )
    assert (config.solver.words, config.solver.deaths) == ("no", 1)
    assert make_solver(config.solver).learns is False
    with pytest.raises(InvalidInput, match=r"\[solver\] notes: missing"):
        config_of("grid", solver={"kind": "mortal_solvers:failing"})


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("mortal_solvers:nothing", "no attribute 'nothing'"),
        ("own_cart:make_cart", "annotate its first parameter with the dataclass"),
        ("nowhere:make", "No module named 'nowhere'"),
        ("magic", "'magic' is not one of lagrangian, lp, planner, ppo, soft"),
        (3, "3 is not the name of a kind"),
    ],
)
def test_a_kind_that_is_none_is_refused(kind: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        config_of("grid", solver={"kind": kind})


# Words of the command line -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("solver.env_steps=100000", {"solver": {"env_steps": 100000}}),
        ("solver.hidden=[8, 8]", {"solver": {"hidden": [8, 8]}}),
        ("player.network.hidden=[8]", {"player": {"network": {"hidden": [8]}}}),
        ("player.network.spread=0.5", {"player": {"network": {"spread": 0.5}}}),
        ("world.kwargs.wind.speed=2.5", {"world": {"kwargs": {"wind": {"speed": 2.5}}}}),
        ("opening.probe=false", {"opening": {"probe": False}}),
        ("game.constraint=speed <= ?", {"game": {"constraint": "speed <= ?"}}),
        ('game.constraint="speed <= ?"', {"game": {"constraint": "speed <= ?"}}),
        ("game.method = icl", {"game": {"method": "icl"}}),
        ("experts.delta=0.3", {"experts": {"delta": 0.3}}),
    ],
)
def test_a_setting_is_a_value_of_toml_or_a_word(text: str, found: dict[str, Any]) -> None:
    assert setting(text) == found


def test_settings_of_nested_keys_reach_the_configuration() -> None:
    given = document("ant-maze")
    for text in ("player.network.hidden=[8]", "player.network.steps=7", "game.iterations=1"):
        given = merged(given, setting(text))
    config = configure(given)
    assert (config.player.network.hidden, config.player.network.steps) == ((8,), 7)
    assert config.player.network.batch == 64  # beside them, as it was
    with pytest.raises(InvalidInput, match=r"network\.depth: unknown; there are hidden, learning"):
        configure(merged(given, setting("player.network.depth=2")))


@pytest.mark.parametrize("text", ["env_steps=1", "solver.env_steps", "solver", "moon.x=1", "=", ""])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"write table\.key=value.*tables are world, demos"):
        setting(text)


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("ant", {"kind": "ant"}),
        ("ant-bullet", {"kind": "ant-bullet"}),
        ("gym:Pendulum-v1", {"kind": "gym", "env": "Pendulum-v1"}),
        ("gym:own_cart:make_cart", {"kind": "gym", "env": "own_cart:make_cart"}),
        ("my_world:make", {"kind": "my_world:make"}),
    ],
)
def test_a_word_means_a_world(text: str, table: dict[str, Any]) -> None:
    assert world_table(text) == table


def test_a_map_is_read_into_the_table(tmp_path: Path) -> None:
    path = tmp_path / "yard.txt"
    path.write_text("S#0\n...\n")
    grid = world_table(str(path), slip=0.25, horizon=None)
    assert (grid["kind"], grid["name"], grid["map"]) == ("grid", "yard", ["S#0", "..."])
    assert (grid["slip"], grid["horizon"]) == (0.25, 6)
    maze = world_table(f"ant-maze:{path}", horizon=400)
    assert (maze["kind"], maze["name"], maze["horizon"]) == ("ant-maze", "ant-maze-yard", 400)
    assert (
        world_table("maze")["horizon"]
        == configs.make_world(configure({"world": world_table("maze")}).world).tasks[0].horizon
    )


def test_merging_goes_table_by_table_and_changes_neither() -> None:
    base = {"game": {"iterations": 5, "on": ["x"]}, "seed": 1}
    over = {"game": {"on": ["y"]}, "seed": 2}
    assert merged(base, over) == {"game": {"iterations": 5, "on": ["y"]}, "seed": 2}
    assert base == {"game": {"iterations": 5, "on": ["x"]}, "seed": 1}
