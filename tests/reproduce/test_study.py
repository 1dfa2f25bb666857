from __future__ import annotations

import json
from pathlib import Path

import pytest

from ringfence.errors import InvalidInput
from ringfence.reproduce.experiment import Variant, read
from ringfence.reproduce.study import (
    NOT_RECORDED,
    found_variants,
    kept,
    key_of,
    note,
    note_seconds,
    place,
    refuse_other_results,
    telling,
)

VARIANT = Variant("mujoco", {"solver": {"margin": 0.2}}, 3, "why")


def test_a_folder_is_found_by_what_determines_it_whatever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = place("games", "one", {"a": 1})
    assert first.name == f"one-{key_of({'a': 1})}"
    first.mkdir(parents=True)
    assert place("games", "other", {"a": 1}) == first
    assert place("games", "one", {"a": 2}) != first


def test_a_part_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert kept("part", {"a": 1}, lambda: [1, 2]) == [1, 2]
    assert kept("part", {"a": 1}, lambda: pytest.fail("made again")) == [1, 2]


def test_the_manifest_has_the_order_of_play(tmp_path: Path) -> None:
    experiment = read("velocity")
    for seed in (2, 0, 2):
        note(tmp_path, experiment, "ringfence reproduce velocity", "1.0", VARIANT, seed)
    found = json.loads((tmp_path / "manifest.json").read_text())
    assert (found["order"], found["seeds"]) == ([2, 0], [0, 2])
    assert found["settings"] == VARIANT.settings
    assert found["experiment_sha256"] == experiment.sha256


def test_an_order_that_was_not_recorded_stays_so(tmp_path: Path) -> None:
    document = {"order": NOT_RECORDED, "seeds": [0, 1]}
    (tmp_path / "manifest.json").write_text(json.dumps(document))
    note(tmp_path, read("velocity"), "", "1.0", VARIANT, 2)
    found = json.loads((tmp_path / "manifest.json").read_text())
    assert (found["order"], found["seeds"]) == (NOT_RECORDED, [0, 1, 2])


def test_results_of_other_settings_are_refused(tmp_path: Path) -> None:
    refuse_other_results(VARIANT, tmp_path)  # nothing is there
    note(tmp_path, read("velocity"), "", "1.0", VARIANT, 0)
    refuse_other_results(VARIANT, tmp_path)
    other = Variant("mujoco", {"solver": {"margin": 0.8}}, 3)
    with pytest.raises(InvalidInput, match=r"\(solver.margin: 0.2, now 0.8\); move it away or"):
        refuse_other_results(other, tmp_path)


def test_variants_of_ones_own_are_found_by_their_manifests(tmp_path: Path) -> None:
    experiment = read("velocity")
    for name in ("mine", "bullet"):
        own = Variant(name, {}, 2, "mine")
        note(tmp_path / name, experiment, "", "1.0", own, 1)
    found = found_variants(experiment, tmp_path, [experiment.variants["mujoco"]])
    assert [v.name for v in found] == ["mujoco", "bullet", "mine"]
    assert (found[-1].seeds, found[-1].reason) == (2, "mine")


def test_seconds_are_kept_by_seed(tmp_path: Path) -> None:
    for seed in (0, 1):
        note_seconds(tmp_path / "timing.json", seed, 1.5)
    assert json.loads((tmp_path / "timing.json").read_text()) == {"seed-0": 1.5, "seed-1": 1.5}


def test_events_become_lines() -> None:
    said: list[str] = []
    tell = telling(said.append)
    tell({"event": "start"})
    row = {"i": 1, "total": 2, "constraint": {"description": "speed <= 1"}}
    tell({"event": "iteration", **row, "learner_reward_mean": 10.0})
    numbers = {"updates": 100, "reward_rate": 5.0, "cost": 1.0, "lam": 0.5}
    tell({"event": "update", "update": 49, **numbers})
    tell({"event": "update", "update": 50, **numbers})
    assert said == [
        "  iteration 1/2: speed <= 1; learners earn 10",
        "  update 50/100  reward 5  cost 1.0  lam 0.500",
    ]
