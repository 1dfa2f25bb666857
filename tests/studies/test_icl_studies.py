"""`reproduce velocity|position|noisy|baselines` on tiny budgets: files, tables, figures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ringfence.runs.control_config import ITERATION
from ringfence.solvers.ppo import PPOConfig
from ringfence.studies import icl
from ringfence.worlds import ant

TINY = {
    "copies": 16,
    "steps": 16,
    "batch": 128,
    "passes": 1,
    "hidden": (16,),
    "evaluation_episodes": 2,
}
PPO = PPOConfig(**{**ITERATION, **TINY})
EXPERT = PPOConfig(**TINY)


@pytest.fixture(autouse=True)
def short_episodes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ants of 30 steps, and runs/ in a folder of the test's own."""
    monkeypatch.setattr(ant.AntTask.__init__, "__defaults__", ((1.0, 0.0), 30, False, 2))
    monkeypatch.chdir(tmp_path)


def tiny(experiment: icl.Experiment, **changes: object) -> icl.Study:
    small = replace(
        experiment,
        expert=replace(experiment.expert, env_steps=512),
        iterations=2,
        steps=512,
    )
    return icl.Study("ant", small, seeds=1, ppo=PPO, expert_ppo=EXPERT, **changes)  # type: ignore[arg-type]


def test_position_from_nothing_to_table_and_figures(tmp_path: Path) -> None:
    study, out, said = tiny(icl.POSITION_), tmp_path / "results", []
    icl.reproduce(replace(study, seeds=1), out, "ringfence reproduce position", said.append)
    summary = json.loads((out / "seed-0.json").read_text())
    assert summary["true_parameters"] == {"x": 0.5}
    table = (out / "table.md").read_text()
    error = summary["iterations"][0]["constraint_error"]
    assert f"| first iteration | 0 | {error:.4f} |" in table
    assert "1 of 1" in table
    for name in ("curves.png", "paths.png"):
        pixels = np.asarray(Image.open(out / name).convert("RGB")).reshape(-1, 3)
        assert len(np.unique(pixels, axis=0)) > 50
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    icl.reproduce(study, out, "ringfence reproduce position", said.append)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before
