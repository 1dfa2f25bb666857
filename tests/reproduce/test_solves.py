from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from ringfence.errors import InvalidInput
from ringfence.reproduce import experiment, run, solves
from ringfence.runs import solving

WEIGHTS = "policy/policy.safetensors"


def folder(name: str) -> Path:
    found = experiment.read("trainings.toml")
    return solves.folder_of(found, found.variants[name], 0)


def test_a_training_goes_on_from_another(trainings: Path) -> None:
    on = folder("longer")
    first = safetensors.numpy.load_file(folder("plain") / WEIGHTS)
    begun = safetensors.numpy.load_file(on / "start.safetensors")
    assert all(np.array_equal(begun[name], first[name]) for name in first)
    assert (on / WEIGHTS).read_bytes() != (folder("plain") / WEIGHTS).read_bytes()


def test_episodes_start_at_the_states_of_another(trainings: Path) -> None:
    states = safetensors.numpy.load_file(folder("with") / "states.safetensors")["states"]
    assert states.shape[1] == 29
    both = [
        json.loads((trainings / name / "seed-0.json").read_text())["stochastic"]
        for name in ("plain", "with")
    ]
    assert both[0] != both[1]


def test_what_another_experiment_trained_is_not_trained_again(
    trainings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path("trainings.toml").read_text().replace("[variants.plain]", "[variants.renamed]")
    (tmp_path / "other.toml").write_text(text.replace('"plain"', '"renamed"'))
    made: list[Path] = []
    create = solving.create
    monkeypatch.setattr(
        solving, "create", lambda out, *a, **k: made.append(out) or create(out, *a, **k)
    )
    out = tmp_path / "out"
    run(str(tmp_path / "other.toml"), variants=("renamed", "fixed"), seeds=1, out=out,
        say=lambda line: None)  # fmt: skip
    assert len(made) == 1  # the classical one alone
    first = (trainings / "plain" / "seed-0.json").read_bytes()
    assert (out / "renamed" / "seed-0.json").read_bytes() == first
    for name in ("multiplier.png", "compared.png"):
        assert (out / name).stat().st_size > 5_000


def test_other_settings_are_another_training(trainings: Path) -> None:
    found = experiment.read("trainings.toml")
    (other,) = experiment.chosen(found, ["plain"], settings=["solver.passes=2"])
    assert not solves.folder_of(found, other, 0).exists()


def test_standing_still_stands_still(trainings: Path) -> None:
    summary = json.loads((trainings / "still" / "seed-0.json").read_text())
    figures = summary["judged"]["deterministic"]["speed <= 0.75"]
    assert figures["episodes"] == solves.EPISODES
    assert 25 < figures["reward"] < 35  # 1 a step, for 30 steps
    assert figures["speed"] < 0.3
    assert list(summary["judged"]) == ["deterministic"]


def test_an_unknown_training_is_named(trainings: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no training 'experts/none'"):
        solves.referred(experiment.read("trainings.toml"), "experts/none")


@pytest.mark.bullet
def test_on_the_other_simulator(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pybullet_envs_gymnasium", reason="needs ringfence[bullet]")
    monkeypatch.setattr(solves, "EPISODES", 2)
    text = Path("trainings.toml").read_text().replace('"ant", steps = 30', '"ant-bullet"')
    (tmp_path / "bullet.toml").write_text(text)
    out = tmp_path / "out"
    run(str(tmp_path / "bullet.toml"), variants=("free", "still"), out=out, say=lambda line: None)
    table = (out / "table.md").read_text()
    assert "| still | `speed <= 0.75` |" in table
    assert "| free | `0.5 x - y <= 0` |" in table
