"""Training on disk: files, refusals before the first step, and resuming to the same bytes."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ringfence.cli import main
from ringfence.errors import InvalidInput
from ringfence.runs.train import TrainConfig, create, drive, read
from ringfence.solvers.ppo import PPOConfig

TINY = TrainConfig(
    command="ringfence solve",
    seed=0,
    world="ant",
    constraint="speed <= 0.75",
    delta=20.0,
    ppo=PPOConfig(
        env_steps=4 * 4 * 64,
        copies=4,
        steps=64,
        batch=128,
        passes=1,
        hidden=(16,),
        evaluation_episodes=2,
        checkpoint_every=1,
    ),
)
RESULT = ("summary.json", "curves.csv", "policy/policy.safetensors", "policy/policy.json")

KILLED = """
import os, signal, sys
from pathlib import Path
from ringfence.runs.train import drive

def shoot(record):
    if record.update == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

drive(Path(sys.argv[1]), shoot)
"""


def quiet(record: object) -> None:
    """Records that nobody watches."""


def result(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in RESULT}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("train") / "run"
    create(run, TINY)
    drive(run, quiet)
    return run


def test_configuration_reads_back(trained: Path) -> None:
    assert read(trained) == TINY


def test_summary_and_curves_tell_the_same_course(trained: Path) -> None:
    summary = json.loads((trained / "summary.json").read_text())
    rows = list(csv.DictReader((trained / "curves.csv").read_text().splitlines()))
    assert len(rows) == 4
    assert summary["env_steps"] == int(rows[-1]["env_steps"]) == TINY.ppo.env_steps
    assert summary["lam"] == pytest.approx(float(rows[-1]["lam"]))
    for kind in ("stochastic", "deterministic"):
        assert summary[kind]["episodes"] == 2
        assert summary[kind]["true_cost"] >= 0.0


def test_picture_is_not_blank(trained: Path) -> None:
    pixels = np.asarray(Image.open(trained / "path.png").convert("RGB")).reshape(-1, 3)
    assert len(np.unique(pixels, axis=0)) > 50


@pytest.mark.parametrize("update", [1, 2, 4])
def test_a_killed_training_resumes_to_the_same_bytes(
    trained: Path, tmp_path: Path, update: int
) -> None:
    run = tmp_path / "run"
    create(run, TINY)
    done = subprocess.run([sys.executable, "-c", KILLED, str(run), str(update)], check=False)
    assert done.returncode == -9
    assert not (run / "summary.json").exists()
    assert main(["resume", str(run)]) == 0
    assert result(run) == result(trained)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"constraint": "height <= 1"}, "no feature 'height'; features are x, y, speed"),
        ({"constraint": "speed < 1"}, "<="),
        ({"delta": -1.0}, "--delta"),
        ({"delta": float("nan")}, "--delta"),
    ],
)
def test_what_can_be_known_is_refused_before_the_first_step(
    tmp_path: Path, change: dict, word: str
) -> None:
    with pytest.raises(InvalidInput, match=word):
        create(tmp_path / "run", replace(TINY, **change))
    assert list(tmp_path.iterdir()) == []


def test_the_ant_has_no_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "--world", "ant", "--out", str(tmp_path / "run")]) == 2
    assert "state a constraint" in capsys.readouterr().err
