"""Demonstrators of every world: made by its own kind of experts, trained once where they train."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringfence.demos import dataset
from ringfence.errors import InvalidInput
from ringfence.experts.trained import Config
from ringfence.objects import Demonstrations
from ringfence.runs import config as configs
from ringfence.runs.config import make_world
from ringfence.runs.training import make_demonstrations, require_new, train_experts
from small_worlds import GYM, PPO, config_of, once, result

Finished = Callable[[str], Path]
TWO = {**GYM, "tasks": [{"name": "a"}, {"name": "b", "kwargs": {"pay": 2.0}}]}
SETTINGS: Any = configs.tagged("test", "world", TWO)
SOLVER: Any = configs.tagged("test", "solver", PPO)
FEW = {"paths": 2, "heldout": 1, "delta": 5.0}


def made(folder: Path, **more: Any) -> Demonstrations:
    return make_demonstrations(SETTINGS, make_world(SETTINGS), FEW, SOLVER, folder, **more)


@pytest.fixture(scope="session")
def trained(shared: Path) -> Path:
    """A folder of two carts' trained experts, and their demonstrations: for reading only."""

    def make(place: Path) -> None:
        place.mkdir()
        dataset.save(made(place / "expert"), place / "demos")

    return once(shared, "experts", make)


@pytest.mark.parametrize(
    ("kind", "settings", "counts"),
    [
        ("grid", {"paths": 3, "heldout": 2}, (3, 2)),
        ("tables", {"paths": 3, "heldout": 2}, (3, 2)),
        ("ant-maze", {"paths": 2, "heldout": 1}, (2, 1)),
    ],
)
def test_experts_that_need_no_training_make_demonstrations_at_once(
    kind: str, settings: dict[str, int], counts: tuple[int, int], tmp_path: Path
) -> None:
    world_settings = config_of(kind).world
    world = make_world(world_settings)
    demos = make_demonstrations(world_settings, world, settings, None, tmp_path / "expert")
    assert [(len(d.train), len(d.heldout)) for d in demos.tasks] == [counts] * len(world.tasks)
    assert [d.task for d in demos.tasks] == [task.name for task in world.tasks]
    assert not (tmp_path / "expert").exists()
    assert [f for f in world.check(demos) if f.severity != "note"] == []


def test_trained_experts_keep_a_known_truth_for_each_task(trained: Path) -> None:
    demos = dataset.load(trained / "demos")
    assert [(d.task, len(d.train), len(d.heldout)) for d in demos.tasks] == [
        ("a", 2, 1),
        ("b", 2, 1),
    ]
    assert demos.provenance["world"]["truth"] == GYM["truth"]
    assert demos.provenance["delta"] == 5.0
    assert {"ringfence", "jax", "gymnasium"} <= set(demos.provenance["versions"])
    paid = [d.train[0].rewards.sum() / d.train[0].features.sum() for d in demos.tasks]
    np.testing.assert_allclose(paid, [1.0, 2.0], rtol=1e-5)


class Stopped(Exception):
    """In the place of a kill."""


def stop_at(number: int) -> Callable[[dict[str, Any]], None]:
    left = [number]

    def stop(event: dict[str, Any]) -> None:
        left[0] -= 1
        if not left[0]:
            raise Stopped

    return stop


def test_a_killed_training_of_experts_goes_on_to_the_same_bytes(
    trained: Path, tmp_path: Path
) -> None:
    expert, lives = tmp_path / "expert", 0
    while True:
        try:
            demos = made(expert, on_event=stop_at(lives + 2))
            break
        except Stopped:
            lives += 1
    assert lives >= 4  # two updates and the end of each training
    assert dataset.content_hash(demos) == dataset.content_hash(dataset.load(trained / "demos"))
    assert result(expert) == result(trained / "expert")


def test_what_is_trained_is_not_trained_again(trained: Path, tmp_path: Path) -> None:
    expert = Path(shutil.copytree(trained / "expert", tmp_path / "expert"))
    events: list[dict[str, Any]] = []
    demos = made(expert, on_event=events.append)
    assert [e["event"] for e in events] == ["start", "solved", "solved"]
    assert all(e["known"] for e in events[1:])
    assert events[0]["steps"] == 2 * PPO["env_steps"]
    assert dataset.content_hash(demos) == dataset.content_hash(dataset.load(trained / "demos"))


def test_two_workers_train_the_same_experts(trained: Path, tmp_path: Path) -> None:
    demos = made(tmp_path / "expert", workers=2)
    assert dataset.content_hash(demos) == dataset.content_hash(dataset.load(trained / "demos"))


def test_a_finished_runs_policy_can_be_the_expert(finished: Finished, tmp_path: Path) -> None:
    settings = config_of("gym").world
    demos = make_demonstrations(
        settings, make_world(settings), FEW, None, tmp_path / "expert", policy=finished("gym")
    )
    assert [len(d.train) for d in demos.tasks] == [2]
    assert not (tmp_path / "expert").exists()
    with pytest.raises(InvalidInput, match=r"1 policies for 2 tasks \(a, b\)"):
        made(tmp_path / "expert", policy=finished("gym"))


def test_without_a_truth_nobody_is_trained(tmp_path: Path) -> None:
    settings: Any = configs.tagged("test", "world", {**TWO, "truth": ""})
    with pytest.raises(InvalidInput, match="demonstrators need a constraint to keep"):
        make_demonstrations(settings, make_world(settings), FEW, SOLVER, tmp_path / "expert")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("experts", "words"),
    [({"path": 3}, "path: unknown; there are"), ({"paths": 0}, "at least one training")],
)
def test_wrong_settings_of_experts_are_named(
    tmp_path: Path, experts: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        make_demonstrations(SETTINGS, make_world(SETTINGS), experts, SOLVER, tmp_path / "expert")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    require_new(tmp_path / "new")
    with pytest.raises(InvalidInput, match="exists already; choose another --out"):
        require_new(tmp_path)


def test_each_expert_is_of_its_own_seed(trained: Path, tmp_path: Path) -> None:
    expert = Path(shutil.copytree(trained / "expert", tmp_path / "expert"))
    found = train_experts(SETTINGS, make_world(SETTINGS), Config(**FEW), SOLVER, expert)  # type: ignore[arg-type]
    assert found[0]["actor/w0"].tobytes() != found[1]["actor/w0"].tobytes()
