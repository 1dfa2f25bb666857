"""Finished small runs for the report: with a truth, without one, and of a linear constraint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ringfence.demos.dataset import content_hash
from ringfence.experts.optimal import ExpertConfig, make_demonstrations
from ringfence.runs.config import DemosConfig, GameConfig, RunConfig, SolverConfig, WorldConfig
from ringfence.runs.learn import create, drive
from ringfence.runs.worlds import make_world

MAP = ("S.#..0", "..#...", "..#..1", "......")
HORIZON = 14


def make_run(run: Path, truth: bool = True, seed: int = 0, **game: Any) -> Path:
    """Learn from the map's experts; without `truth` the learner's map shows no walls."""
    lines = MAP if truth else tuple(line.replace("#", ".") for line in MAP)
    experts = ExpertConfig(paths=3, heldout=2, seed=seed)
    demos = make_demonstrations(make_world(WorldConfig("small", MAP, HORIZON)), experts)
    config = RunConfig(
        command=f"ringfence learn --world small.txt --seed {seed}",
        seed=seed,
        world=WorldConfig("small", lines, HORIZON),
        demos=DemosConfig(content_hash(demos)),
        game=GameConfig(**game),
        solver=SolverConfig(),
    )
    create(run, config, demos)
    drive(run, 1, lambda event: None)
    return run


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="session")
def finished(folder: Path) -> Path:
    return make_run(folder / "finished")


@pytest.fixture(scope="session")
def without_truth(folder: Path) -> Path:
    return make_run(folder / "without-truth", truth=False)


@pytest.fixture(scope="session")
def linear(folder: Path) -> Path:
    """One task, a linear constraint on (row, col)."""
    one = {"method": "icl", "tasks": ("goal (0,5)",), "restricted": False, "iterations": 3}
    return make_run(folder / "linear", constraint_class="linear", **one)


@pytest.fixture(scope="session")
def several(folder: Path) -> list[Path]:
    return [make_run(folder / f"seed-{seed}", seed=seed) for seed in range(3)]
