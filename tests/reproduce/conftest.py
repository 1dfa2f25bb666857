"""Small experiments, each played once for all tests: Ants of 30 steps, solves of two rollouts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ringfence.reproduce import run

SOLVER = (
    "{ env_steps = 512, copies = 16, steps = 16, minibatches = 2, passes = 1, hidden = [16], "
    "evaluation_episodes = 2, test_episodes = 4 }"
)
GAMES = f"""
about = "games on a small Ant"
kind = "game"
seeds = 1
shown_like = "velocity"

[base]
world.steps = 30
demonstrations = {{ expert = "expert", paths = 4, heldout = 2 }}
game.iterations = 2
analysis.resamples = 10
opening.steps = 50
solver = {SOLVER}

[experts.expert]
world.kind = "ant"
training = {{ constraint = "speed <= 0.75", delta = 20.0 }}
solver.kind = "ppo"

[experts.on-a-line]
like = "expert"
training.constraint = "0.5 x - y <= 0"

[variants.velocity]
like = "velocity/mujoco"
reason = "told of a clearance, and trained at it"
transfer = {{ clearance = 0.1, episodes = 4 }}

[variants.position]
like = "position/mujoco"
demonstrations.expert = "on-a-line"
"""
TRAININGS = f"""
about = "trainings on a small Ant"
kind = "training"
seeds = 2

[base]
world = {{ kind = "ant", steps = 30 }}
solver = {SOLVER}

[base.training]
constraint = "speed <= 0.75"
delta = 1000.0

[variants.plain]
reason = "plain"

[variants.fixed]
reason = "a multiplier that nothing controls"
solver.fixed_lam = 0.5

[variants.with]
reason = "with"
seeds = 1
training = {{ starts = "plain", start_episodes = 2 }}
solver.start_share = 0.5

[variants.longer]
seeds = 1
training.after = "plain"

[variants.free]
seeds = 1
training.constraint = "none"
training.delta = 0.0
training.judged_under = ["speed <= 0.75", "0.5 x - y <= 0"]

[variants.still]
seeds = 1
training = {{ policy = "standing still", judged_under = ["speed <= 0.75"] }}

[[table]]
rows = "policies"
title = "Policies"
columns = [["variant", "variant"], ["seed", "seed"], ["reward", "reward", ".0f"]]

[[table]]
rows = "judged"
title = "Judged"
columns = [["variant", "variant"], ["constraint", "constraint"], ["reward", "reward", ".0f"]]

[[figure]]
draw = "trainings"
file = "multiplier.png"
options.variants = "*"

[[figure]]
draw = "compared_trainings"
file = "compared.png"
options.panels = [["cost", "cost", "limit"]]
"""


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a runs/ of its own and the files of the experiments."""
    folder = tmp_path_factory.mktemp("experiments")
    (folder / "games.toml").write_text(GAMES)
    (folder / "trainings.toml").write_text(TRAININGS)
    return folder


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(place)
    return place


@pytest.fixture(scope="session")
def games(place: Path) -> Iterator[Path]:
    """results/games of the games, all played."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        yield place / run("games.toml", say=lambda line: None)


@pytest.fixture(scope="session")
def trainings(place: Path) -> Iterator[Path]:
    """results/trainings of the trainings, of which one was not run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        names = ("plain", "with", "longer", "free", "still")
        yield place / run("trainings.toml", variants=names, say=lambda line: None)
