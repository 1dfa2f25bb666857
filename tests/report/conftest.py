"""Finished small runs for the report: played ones on a map, written ones on a plane and a floor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from parsed_pages import Page
from written_runs import write_floor_run, write_plane_run

from ringfence import api
from ringfence.report import page

MAP = ("S.#..0", "..#...", "..#..1", "......")
HORIZON = 14


def play(run: Path, truth: bool = True, demos: Any = None, seed: int = 0, **settings: Any) -> Path:
    """Learn from the map's experts; without `truth` the learner's map shows no walls."""
    lines = MAP if truth else tuple(line.replace("#", ".") for line in MAP)
    path = run.parent / f"{run.name}.txt"
    path.write_text("\n".join(lines) + "\n")
    settings = {"world": {"name": "small", "horizon": HORIZON}, **settings}
    command = f"ringfence learn --world small.txt --seed {seed}"
    api.learn(str(path), demos, seed=seed, settings=settings, command=command, out=run)
    return run


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="session")
def finished(folder: Path) -> Path:
    return play(folder / "finished")


@pytest.fixture(scope="session")
def without_truth(folder: Path, finished: Path) -> Path:
    return play(folder / "without-truth", truth=False, demos=finished / "demos")


@pytest.fixture(scope="session")
def linear(folder: Path) -> Path:
    """One task, a linear constraint on (row, col)."""
    game = {"method": "icl", "tasks": ["goal (0,5)"], "constraint": "linear", "iterations": 3}
    return play(folder / "linear", game=game, player={"restricted": False})


@pytest.fixture(scope="session")
def several(folder: Path) -> list[Path]:
    return [play(folder / f"seed-{seed}", seed=seed) for seed in range(3)]


@pytest.fixture(scope="session")
def speed(folder: Path) -> Path:
    """A continuous world with one parameter, its interval and its curve of budgets."""
    return write_plane_run(folder / "speed")


@pytest.fixture(scope="session")
def floor(folder: Path) -> Path:
    """The Ant's floor, with walks."""
    return write_floor_run(folder / "floor")


@pytest.fixture(scope="session")
def parsed(finished: Path) -> Page:
    return Page(page.render(finished))
