"""The examples do what they say, where what they need is installed."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringfence
from random_policies import policy_for
from ringfence.api import read_task
from ringfence.cli.main import main
from ringfence.demos.dataset import save
from ringfence.experts.trained import Config as TrainedConfig
from ringfence.experts.trained import roll_out
from ringfence.runs.config import configure, make_world, read_user

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_a_file_describes_a_game_and_another_a_new_task_of_its_world() -> None:
    game = configure(read_user(EXAMPLES / "half_cheetah.toml"))
    settings, solver, _ = read_task(str(EXAMPLES / "half_cheetah_frugal.toml"))
    assert make_world(settings).features == make_world(game.world).features
    assert [task.name for task in make_world(settings).tasks] == ["frugal"]
    assert solver["kind"] == game.solver.kind == "ppo"


def test_one_call_learns_the_limit_that_three_tasks_share(tmp_path: Path) -> None:
    """At tiny scale: of untrained demonstrators, who are all there is to be learned from."""
    pytest.importorskip("jax")
    game, steps = EXAMPLES / "half_cheetah_tasks.toml", 30
    tasks: Any = make_world(replace(configure(read_user(game)).world, steps=steps)).tasks
    policies = [policy_for(task, seed=k) for k, task in enumerate(tasks)]
    shown = roll_out(tasks, "|x_velocity| <= 9", TrainedConfig(paths=3, heldout=2), policies, {})
    save(shown, tmp_path / "demos")
    small = {"env_steps": 256, "copies": 8, "steps": 16, "minibatches": 2, "passes": 1}
    small |= {"evaluation_episodes": 2}
    words = ["learn", str(game), "--demos", str(tmp_path / "demos"), "--out", str(tmp_path / "run")]
    settings = {"world.steps": steps, "player.expert_budget": 0.5, "opening.steps": 20}
    settings |= {f"solver.{name}": value for name, value in small.items()}
    settings |= {"analysis.resamples": 5}
    for name, value in settings.items():
        words += ["--set", f"{name}={value}"]
    assert main(words) == 0
    c = ringfence.load(tmp_path / "run").constraint
    costs = [c.cost(t.features).sum() for d in shown.tasks for t in d.train]
    per_task = np.mean(np.reshape(costs, (3, 3)), axis=1)
    assert per_task.max() == pytest.approx(0.5)  # the task that uses its budget up sets the limit


def test_sb3_violates_less_with_the_learned_cost_as_a_penalty() -> None:
    pytest.importorskip("stable_baselines3")
    free, penalised = runpy.run_path(str(EXAMPLES / "sb3_penalty.py"))["main"]()
    assert free.episodes == penalised.episodes == 20
    assert free.violating_steps > 0.5 * free.steps
    assert free.episodes_over == 20
    assert penalised.violating_steps < 0.25 * free.violating_steps
    assert penalised.total_cost < 0.1 * free.total_cost
