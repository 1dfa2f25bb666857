"""The examples do what they say, where what they need is installed."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from ringfence.api import read_task
from ringfence.runs.config import configure, make_world, read_user

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_a_file_describes_a_game_and_another_a_new_task_of_its_world() -> None:
    game = configure(read_user(EXAMPLES / "half_cheetah.toml"))
    settings, solver, _ = read_task(str(EXAMPLES / "half_cheetah_frugal.toml"))
    assert make_world(settings).features == make_world(game.world).features
    assert [task.name for task in make_world(settings).tasks] == ["frugal"]
    assert solver["kind"] == game.solver.kind == "ppo"


def test_sb3_violates_less_with_the_learned_cost_as_a_penalty() -> None:
    pytest.importorskip("stable_baselines3")
    free, penalised = runpy.run_path(str(EXAMPLES / "sb3_penalty.py"))["main"]()
    assert free.episodes == penalised.episodes == 20
    assert free.violating_steps > 0.5 * free.steps
    assert free.episodes_over == 20
    assert penalised.violating_steps < 0.25 * free.violating_steps
    assert penalised.total_cost < 0.1 * free.total_cost
