from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from random_policies import policy_for
from ringfence import check_file, learn_file
from ringfence.demos import dataset as demos
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations, J, TaskDemos, behaviour_of
from ringfence.runs.control_config import read_user
from ringfence.runs.control_world import make_tasks
from ringfence.solvers.ppo import evaluate
from ringfence.studies import cheetah
from ringfence.studies.cheetah import FILE, Study, reproduce

EXAMPLE = Path(__file__).parents[2] / "examples" / "half_cheetah.toml"
#: The same file, for a cart that learns in a moment.
SMALL = """
[world]
kind = "gym"
env = "own_cart:make_cart"
steps = 50
features = [{ name = "x_velocity", unit = "m/s", info = "speed" }]

[game]
constraint = "x_velocity <= ?"
player = "payoff"
expert_budget = 20.0
iterations = 1
probe = false

[clone]
steps = 50

[ppo]
env_steps = 512
copies = 8
steps = 32
batch = 128
hidden = [8]
evaluation_episodes = 2
"""


def test_the_example_is_the_studys_file_and_short() -> None:
    assert EXAMPLE.read_text() == FILE
    assert len(FILE.splitlines()) < 25
    assert read_user(EXAMPLE, "", 0).game.expert_budget == cheetah.BUDGET


def test_the_file_does_not_know_the_limit() -> None:
    assert str(cheetah.LIMIT) not in FILE
    assert "truth" not in FILE


def test_a_killed_study_goes_on_and_its_table_says_what_was_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = Study(1, SMALL, expert_steps=512, slow_steps=512)
    whole = cheetah.slow

    def killed(study: Study) -> dict[str, object]:
        raise InvalidInput("stopped")

    monkeypatch.setattr(cheetah, "slow", killed)
    with pytest.raises(InvalidInput):
        reproduce(study, tmp_path / "out", "ringfence reproduce cheetah", print)
    table = (tmp_path / "out" / "table.md").read_text()
    assert "| own paces | not run |" in table
    first = (tmp_path / "out" / "seed-0.json").read_bytes()
    monkeypatch.setattr(cheetah, "slow", whole)
    reproduce(study, tmp_path / "out", "ringfence reproduce cheetah", print)
    assert (tmp_path / "out" / "seed-0.json").read_bytes() == first
    found = json.loads(first)
    assert found["limit"] is not None
    assert found["expert_true_cost"] >= 0
    assert json.loads((tmp_path / "out" / "slow.json").read_text())["paces"] == list(cheetah.PACES)


def test_half_cheetahs_logs_are_replayed_and_give_the_tightest_limit(tmp_path: Path) -> None:
    text = FILE.replace('env = "HalfCheetah-v5"', 'env = "HalfCheetah-v5"\nsteps = 60')
    text = text.replace("expert_budget = 20.0", "expert_budget = 1.0").replace(
        "env_steps = 150_000", "env_steps = 512\ncopies = 8\nbatch = 128\nhidden = [16]"
    )
    text = text.replace("iterations = 2", "iterations = 1")
    (tmp_path / "my.toml").write_text(text + "\n[clone]\nsteps = 50\n")
    (task,) = make_tasks(read_user(tmp_path / "my.toml", "", 0).world)
    policy = policy_for(task)
    runs = evaluate(task, policy, lambda phi: np.zeros(len(phi)), 6, (0,))
    given = Demonstrations((TaskDemos("a", tuple(runs[:4]), tuple(runs[4:])),), task.features, {})
    demos.save(given, tmp_path / "demos")
    said = {f.where.split()[0]: str(f) for f in check_file(tmp_path / "my.toml")}
    assert "5 of 6 episodes, all the same" in said["replay"]
    c = learn_file(tmp_path / "my.toml", tmp_path / "run")
    assert c is not None
    assert J(behaviour_of(runs[:4]), c) == pytest.approx(1.0)
