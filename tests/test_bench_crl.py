from __future__ import annotations

import json

import pytest

from ringfence import bench_crl
from ringfence.bench_crl import BenchConfig
from ringfence.solvers.ppo import PPOConfig

SMALL = BenchConfig(
    rounds=1, updates=2, ppo=PPOConfig(copies=8, steps=16, batch=64, passes=1, hidden=(16, 16))
)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_crl, "WARM_UP", 1)


def test_ratios_are_of_the_speeds_beside_them():
    lines: list[str] = []
    numbers = bench_crl.bench_mujoco(SMALL, lines.append)
    ratio = numbers["mujoco_training_steps_per_s"] / numbers["mujoco_ceiling_steps_per_s"]
    assert numbers["mujoco_fraction_of_ceiling"] == pytest.approx(ratio)
    assert numbers["mujoco_cpu_fraction"] > 0
    assert any("simulator alone" in line for line in lines)


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
