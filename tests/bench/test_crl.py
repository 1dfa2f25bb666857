from __future__ import annotations

import json

import numpy as np
import pytest

from ringfence.bench import crl as bench_crl
from ringfence.bench.crl import BenchConfig
from ringfence.solvers.ppo import PPOConfig, first_learner, make_collector
from ringfence.worlds.ant import AntTask

SMALL = BenchConfig(
    rounds=1, updates=2, ppo=PPOConfig(copies=8, steps=16, minibatches=2, passes=1, hidden=(16, 16))
)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_crl, "WARM_UP", 1)


def test_ratios_are_of_the_speeds_beside_them():
    lines: list[str] = []
    numbers = bench_crl.bench_mujoco(SMALL, lines.append)
    ratio = numbers["mujoco_training_steps_per_s"] / numbers["mujoco_ceiling_steps_per_s"]
    assert numbers["mujoco_fraction_of_ceiling"] == pytest.approx(ratio)
    assert any("simulator alone" in line for line in lines)


def test_a_tape_replays_what_the_policy_did():
    task, ppo = AntTask(), SMALL.ppo
    problem = bench_crl._problem(task)
    collector = make_collector(problem, ppo)
    policy = first_learner(problem, task, ppo).policy()
    tape = bench_crl.record(collector, policy, ppo.copies)
    episodes = collector.episodes(policy, ppo.copies, False, tape.seed)
    simulator = task.simulator(ppo.copies)
    simulator.reset(np.arange(ppo.copies), tape.starts(range(ppo.copies)))
    for t in range(5):
        seen = simulator.step(tape.actions[t]).features
        assert np.array_equal(seen, [e.features[t] for e in episodes])


def test_what_is_not_installed_is_null_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "stable_baselines3", None)
    monkeypatch.setitem(__import__("sys").modules, "pybullet", None)
    lines: list[str] = []
    numbers = bench_crl.bench_crl(SMALL, lines.append)
    assert numbers["mujoco_over_sb3"] is None
    assert numbers["bullet_fraction_of_ceiling"] is None
    assert any("ringfence[peers]" in line for line in lines)
    assert any("ringfence[bullet]" in line for line in lines)
    assert json.loads(json.dumps(numbers)) == numbers
