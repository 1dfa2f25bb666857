"""What every world is, and what every kind of world has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringfence.errors import InvalidInput
from ringfence.objects import Behaviour
from ringfence.runs.config import kinds, make_world, tagged
from ringfence.worlds.grid import maze
from ringfence.worlds.world import Unknown, World, require_fields

TABLES: dict[str, dict[str, Any]] = {
    "grid": {"map": ["S.#0", "...."]},
    "ant-maze": {"map": ["S.#0", "...."]},
    "ant": {},
    "ant-bullet": {},
    "gym": {"env": "Pendulum-v1", "full_state": True},
    "flights": {
        "tasks": [
            {
                "name": "up",
                "kind": "departure",
                "miles": 1.0,
                "gain": 10.0,
                "loss": 5.0,
                "fastest": 300.0,
                "entry": [180.0, 220.0],
                "leaves": [180.0, 300.0],
            }
        ]
    },
    "tables": {
        "transition": [[[[0, 1.0]]]],
        "tasks": [{"name": "stay", "reward": [[1.0]]}],
        "horizon": 2,
    },
}


@pytest.mark.parametrize("kind", [kind for kind in kinds("worlds") if kind != "python"])
def test_every_kind_is_a_world(kind: str) -> None:
    if kind == "ant-bullet":
        pytest.importorskip("pybullet")
    world = make_world(tagged("test", "world", {"kind": kind, **TABLES[kind]}))
    for name in vars(World):
        if not name.startswith("_"):
            assert hasattr(world, name), name
    assert [f.name for task in world.tasks for f in task.features] == [
        f.name for _ in world.tasks for f in world.features
    ]
    assert world.experts in ("optimal", "walking", "trained")
    names = [f.name for f in world.features]
    for view in world.views():
        assert all(0 <= column < len(names) for column in view["columns"])
    assert set(world.defaults({})) <= {"game", "player", "opening", "solver"}


def test_an_unknown_truth_says_nothing() -> None:
    pi = Behaviour(np.zeros((1, 1)), np.ones(1), 0.0, 0.0, 1.0, None)
    assert not Unknown().known
    assert Unknown().true_cost(pi) is Unknown().true_raw(pi) is None


def test_a_cells_task_is_found_by_its_name() -> None:
    cells = maze().cells
    assert cells.task("goal (3,9)").name == "goal (3,9)"


def test_a_new_task_has_all_its_entries_and_no_other() -> None:
    require_fields("a map", {"goal": (1, 2), "start": (0, 0), "reward": None}, ("goal", "start"))
    with pytest.raises(InvalidInput, match="described by --goal, --start; 'start' is missing"):
        require_fields("a map", {"goal": (1, 2)}, ("goal", "start"))
    with pytest.raises(InvalidInput, match="'speed' is unknown"):
        require_fields("a map", {"goal": 1, "start": 2, "speed": 3}, ("goal", "start"))
    with pytest.raises(InvalidInput, match="described by nothing"):
        require_fields("a place", {"goal": 1}, ())
