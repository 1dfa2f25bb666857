"""Tasks that Python objects describe: environments of closures, and why they stay here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from own_cart import Cart
from ringfence.errors import InvalidInput
from ringfence.objects import Feature
from ringfence.worlds.python import Config, environments, make
from ringfence.worlds.sim.replay import trial

SPEED = (Feature("speed", "m/s"),)


def test_each_maker_is_a_task_with_its_name() -> None:
    world = environments(
        {"fast": Cart, "slow": lambda: Cart(pay=-1.0)}, SPEED, {"speed": "speed"}, steps=20
    )
    assert [task.name for task in world.tasks] == ["fast", "slow"]
    assert [task.horizon for task in world.tasks] == [20, 20]
    fast, slow = (trial(task) for task in world.tasks)  # type: ignore[arg-type]
    np.testing.assert_array_equal(fast.rewards, -slow.rewards)
    np.testing.assert_array_equal(fast.features[:, 0], fast.rewards)


@pytest.mark.parametrize(
    "sources",
    [None, {"speed": 0}, lambda before, actions, after: after],
    ids=["info", "column", "function"],
)
def test_features_come_from_info_a_column_or_a_function(sources: Any) -> None:
    world = environments({"cart": Cart}, SPEED, sources, steps=20)
    run = trial(world.tasks[0])  # type: ignore[arg-type]
    np.testing.assert_allclose(run.features[:, 0], run.observations[1:, 0], atol=1e-6)


def test_a_new_task_is_another_function() -> None:
    world = environments({"cart": Cart}, SPEED, None, steps=20)
    with pytest.raises(InvalidInput, match="another function that makes one"):
        world.new_task({"name": "other"})


def test_nothing_else_can_make_such_a_world_and_it_says_why() -> None:
    with pytest.raises(InvalidInput, match=r"functions: a.*can't be resumed, and workers"):
        make(Config("functions: a"))
