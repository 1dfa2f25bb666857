from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from ringfence.errors import InvalidInput
from ringfence.reproduce import experiment
from ringfence.reproduce.experiment import CONFIG, chosen, differences, parse, read
from ringfence.reproduce.flight_games import Settings
from ringfence.reproduce.flight_study import Plan
from ringfence.runs.config import build, configure, tagged

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", experiment.names())
def test_every_variant_of_a_built_in_experiment_can_be_played(name: str) -> None:
    found = read(name)
    for variant in [*found.variants.values(), *found.experts.values()]:
        tables = {t: variant.get(t) for t in CONFIG if t in variant.settings}
        if "training" in variant.settings:
            tagged(name, "world", variant.get("world"))
            tagged(name, "solver", variant.get("solver"))
        elif found.file.kind == "flights":
            given = variant.get("flights")
            own = {k: v for k, v in given.items() if k in Plan.__dataclass_fields__}
            build(name, own, Plan)
            build(name, {k: v for k, v in given.items() if k not in own}, Settings)
        elif found.file.kind != "levels":  # whose flights are all there is to choose
            configure(tables, f"{name}/{variant.name}")


def test_all_of_todays_experiments_are_there() -> None:
    assert experiment.names() == [
        "ablation", "baselines", "cheetah", "experts", "few", "flights", "grid", "levels", "limits",
        "maze", "multitask", "noisy", "point-maze", "position", "resets", "selection", "unseen",
        "velocity", "verdicts",
    ]  # fmt: skip


def test_a_variant_is_its_base_what_it_is_like_and_its_own() -> None:
    bullet = read("velocity").variants["bullet-saturated-stop-1"]
    assert bullet.get("world") == {"kind": "ant-bullet", "truth": "speed <= 0.75"}
    assert bullet.get("demonstrations")["keep_saturated"] == 0.05
    assert (bullet.get("game")["iterations"], bullet.get("game")["stop_share"]) == (10, 1.0)
    noisy = read("noisy").variants["position-bullet"]
    assert noisy.get("solver") == {"kind": "ppo", "env_steps": 50_000}
    assert noisy.get("demonstrations")["noise"] == 0.5
    usual = read("velocity").variants["mujoco"]
    assert read("ablation").variants["usual"].settings == usual.settings
    without = read("ablation").variants["no-clone"]
    assert without.get("opening") == {"probe": False, "kind": "none", "initial": "free"}


def test_a_variant_goes_over_values_and_seeds_begin_where_the_file_says() -> None:
    text = """
about = "several"
first_seed = 100
seeds = 2
[variants.one]
part = "all"
reference = { reward = 3.0, of = "someone" }
solver.margin = 0.3
[variants.at]
like = "one"
part = "all"
seeds = 1
over = { "solver.margin" = [0.1, 0.2] }
"""
    found = experiment.parse("a file", "several", text.encode(), Path())
    margins = {name: v.get("solver")["margin"] for name, v in found.variants.items()}
    assert margins == {"one": 0.3, "at-0.1": 0.1, "at-0.2": 0.2}
    assert [list(v.numbers) for v in found.variants.values()] == [[100, 101], [100], [100]]
    assert [v.reference for v in found.variants.values()] == [
        {"reward": 3.0, "of": "someone"}, {}, {},
    ]  # fmt: skip
    assert len(chosen(found, only=["all"])) == 3


def test_every_expert_has_the_one_setting_and_only_its_number_of_steps() -> None:
    variants = read("experts").variants.values()
    assert {tuple(v.get("solver")) for v in variants} == {("kind",), ("kind", "env_steps")}
    both = {v.name.partition("-")[2] for v in variants}
    assert {v.name for v in variants} == {f"{s}-{v}" for s in ("mujoco", "bullet") for v in both}


def test_the_ablations_games_are_all_different() -> None:
    variants = read("ablation").variants.values()
    assert len({json.dumps(v.settings, sort_keys=True) for v in variants}) == 7
    assert {v.get("demonstrations")["expert"] for v in variants} == {"experts/mujoco-velocity-20"}


def test_every_mistake_of_a_file_is_a_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        """
        sed = 1
        kind = "gane"
        [variants.a]
        plyer.kind = "x"
        demonstrations.nois = 1
        [[table]]
        rows = "iterate"
        """
    )
    with pytest.raises(InvalidInput) as wrong:
        read(str(file))
    lines = str(wrong.value).splitlines()
    assert all(line.startswith(str(file)) for line in lines)
    for part in ("about: missing", "sed: unknown", "variants.a.plyer: unknown", "nois: unknown",
                 '"gane" is not one of', '"iterate" is not one of iterates'):  # fmt: skip
        assert any(part in line for line in lines), part
    file.write_text(
        """
        about = "x"
        default = ["z"]
        [variants.a]
        like = "b"
        [variants.b]
        like = "a"
        [variants.c]
        like = "velocity/none"
        """
    )
    with pytest.raises(InvalidInput) as wrong:
        read(str(file))
    for part in ("like itself", "no variant 'velocity/none'", "no variant 'z'"):
        assert part in str(wrong.value)
    file.write_text("about = ")
    with pytest.raises(InvalidInput, match="not valid TOML"):
        read(str(file))
    with pytest.raises(InvalidInput, match="there is no experiment 'velocty'; there are: abl"):
        read("velocty")
    with pytest.raises(InvalidInput, match="no such file"):
        read("nowhere.toml")


def test_variants_are_chosen_by_name_and_by_part() -> None:
    experts = read("experts")
    assert "bullet-velocity-20" not in [v.name for v in chosen(experts)]
    every = chosen(experts, ["bullet-*"], only=["velocity-20"])
    assert [v.name for v in every] == ["bullet-velocity-20"]
    assert [v.seeds for v in chosen(experts, ["mujoco-position-20"], seeds=5)] == [5]
    for arguments, message in (
        ({"patterns": ["speed"]}, "experts has no variant 'speed'; it has: mujoco-velocity-20"),
        ({"only": ["speed"]}, "experts has no part 'speed'; its parts are: standing-still"),
        ({"seeds": 0}, "--seeds must be at least 1, got 0"),
    ):
        with pytest.raises(InvalidInput, match=message):
            chosen(experts, **arguments)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="selection plays nothing"):
        chosen(read("selection"), settings=["solver.margin=1"])


def test_settings_make_a_new_variant_that_says_them() -> None:
    (gentle,) = chosen(read("velocity"), settings=["solver.margin=0.3", "player.kind=payoff"])
    assert gentle.name == "mujoco-margin-0.3-kind-payoff"
    assert gentle.get("solver")["margin"] == 0.3
    assert gentle.get("player") == {"kind": "payoff"}
    for wrong, message in (
        ("margin=0.3", "give TABLE.KEY=VALUE"),
        ("solvr.margin=0.3", "with a table of world, "),
        ("demonstrations.nois=1", "demonstrations.nois: unknown"),
    ):
        with pytest.raises(InvalidInput, match=message):
            chosen(read("velocity"), settings=[wrong])


def test_differences_are_in_words() -> None:
    one, other = {"solver": {"passes": 1, "margin": 0.2}}, {"solver": {"passes": 2, "margin": 0.2}}
    assert differences(one, other) == "solver.passes: 1, now 2"
    assert differences(one, one) == ""


def test_the_cheetahs_example_is_the_game_of_its_experiment_and_knows_no_limit() -> None:
    text = (ROOT / "examples" / "half_cheetah.toml").read_text()
    assert len(text.splitlines()) < 30
    assert "1.37" not in text
    assert "truth" not in text
    example = tomllib.loads(text)
    example.pop("demos")
    game = read("cheetah").variants["gym"]
    tables = {t: game.get(t) for t in CONFIG if t in game.settings}
    assert configure(tables) == configure(example)


def test_a_variant_of_a_kind_of_its_own_takes_nothing_from_the_base() -> None:
    text = b"""
about = "two kinds"
kind = "game"
[base]
world = { kind = "gym", env = "Mine-v0" }
[variants.plain]
[variants.other]
kind = "training"
world.kind = "ant"
[variants.alike]
like = "other"
solver.env_steps = 5
"""
    variants = parse("a file", "kinds", text, Path()).variants
    assert [v.kind for v in variants.values()] == ["game", "training", "training"]
    assert variants["plain"].get("world")["env"] == "Mine-v0"
    assert variants["other"].get("world") == {"kind": "ant"}
    assert variants["alike"].settings == {"world": {"kind": "ant"}, "solver": {"env_steps": 5}}
