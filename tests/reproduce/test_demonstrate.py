from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ringfence.demos import dataset
from ringfence.errors import InvalidInput
from ringfence.experts.trained import Config
from ringfence.reproduce import demonstrate, experiment
from ringfence.reproduce.experiment import chosen, read


def test_variants_with_the_same_demonstrators_share_their_demonstrations(games: Path) -> None:
    found = read("games.toml")
    (other,) = chosen(found, ["velocity"], settings=["player.weighted=true"])
    same, line = found.variants["velocity"], found.variants["position"]
    documents = [demonstrate.document(found, v, 0) for v in (same, other, line)]
    assert documents[0] == documents[1] != documents[2]
    (wide,) = chosen(found, ["velocity"], settings=["world.full_state=true"])
    assert demonstrate.document(found, wide, 0) == documents[0]
    assert demonstrate.document(found, same, 1) != documents[0]


def test_demonstrations_are_made_by_the_expert_with_the_paths_that_the_file_says(
    games: Path,
) -> None:
    found = read("games.toml")
    shown = demonstrate.demonstrations(found, found.variants["velocity"], 0, print)
    assert [len(t) for t in (shown.tasks[0].train, shown.tasks[0].heldout)] == [4, 2]
    assert shown.provenance["delta"] == 20.0
    assert shown.provenance["world"]["truth"] == "speed <= 0.75"  # type: ignore[index, call-overload]


def test_what_the_file_leaves_out_is_as_everywhere() -> None:
    usual = read("velocity")
    _, experts = demonstrate.making(usual, usual.variants["bullet-saturated"], 3)
    assert experts == {"keep_saturated": 0.05, "seed": 3, "delta": 20.0}
    assert Config(**experts).paths == 20


def test_demonstrations_of_ones_own_are_read_from_beside_the_file(games: Path) -> None:
    found = read("games.toml")
    shown = demonstrate.demonstrations(found, found.variants["velocity"], 0, print)
    dataset.save(shown, Path("mine"))
    own = replace(
        found.variants["velocity"],
        settings=experiment.merged(
            {k: v for k, v in found.variants["velocity"].settings.items() if k != "demonstrations"},
            {"demonstrations": {"path": "mine"}},
        ),
    )
    again = demonstrate.demonstrations(found, own, 0, print)
    assert dataset.content_hash(again) == dataset.content_hash(shown)
    missing = replace(own, settings={**own.settings, "demonstrations": {"path": "nowhere"}})
    with pytest.raises(InvalidInput, match="nowhere"):
        demonstrate.demonstrations(found, missing, 0, print)
