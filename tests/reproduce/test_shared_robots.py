"""Limits that a robot's tasks share: compared with the truth, and with simpler readers."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringfence.constraints.written import parse_class, parse_constraint
from ringfence.objects import Feature, Trajectory
from ringfence.reproduce import run, shared_robots
from ringfence.reproduce.experiment import CONFIG, read
from ringfence.reproduce.shared_robots import as_good, errors, numbers, side_by_side
from ringfence.runs.config import configure

EXAMPLE = Path(__file__).parents[2] / "examples" / "half_cheetah_tasks.toml"
FEATURES = (Feature("x", "m"), Feature("y", "m"), Feature("speed", "m/s"))
CLASS = "? x + ? y <= 1 and speed <= ?"
SMALL = """
about = "two goals of a small Ant"
kind = "shared-robots"
seeds = 1

[variants.both]
[variants.both.world]
kind = "ant"
steps = 20
tasks = [
  { name = "east", kwargs = { goal = [3.0, 0.0] } },
  { name = "north", kwargs = { goal = [0.0, 3.0] } },
]

[variants.both.training]
constraint = "x + y <= 1 and speed <= 5"
delta = 2.0

[variants.both.demonstrations]
paths = 3
heldout = 2
env_steps = 512

[variants.both.game]
constraint = "? x + ? y <= 1 and speed <= ?"
iterations = 1
extra = 0

[variants.both.player]
kind = "payoff"
expert_budget = 2.0

[variants.both.opening]
steps = 20
probe = false

[variants.both.analysis]
resamples = 5

[variants.both.solver]
env_steps = 512
copies = 16
steps = 16
minibatches = 2
passes = 1
hidden = [16]
evaluation_episodes = 2

[variants.one]
like = "both"
game.tasks = ["east"]

[[table]]
rows = "shared_robots"
columns = [["method", "method"], ["error", "error", ".2%"]]
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("jax")
    folder = tmp_path_factory.mktemp("robots")
    (folder / "small.toml").write_text(SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(shared_robots, "FRESH", 2)
        run("small.toml", say=lambda line: None)
    return folder


def rows_of(played: Path) -> list[dict[str, Any]]:
    table = json.loads((played / "results/small/table.json").read_text())
    return [row for row in table if row.get("seed") == 0]


def test_a_game_stands_beside_simpler_readers_of_the_same_demonstrations(played: Path) -> None:
    methods = [row["method"] for row in rows_of(played) if row["variant"] == "both"]
    assert methods == [
        "ringfence", "experts' extreme value", "single-task (east)", "single-task (north)",
        "average of single-task", "maximum of single-task",
    ]  # fmt: skip
    alone = [row["method"] for row in rows_of(played) if row["variant"] == "one"]
    assert alone == ["ringfence", "experts' extreme value"]


def test_every_row_has_all_columns_of_shared_constraints(played: Path) -> None:
    for row in rows_of(played):
        assert {"world", "constraint_class", "tasks", *shared_robots.COLUMNS} <= set(row)
        assert row["error"] >= 0
        assert row["angle_error"] is not None
        assert row["iou"] is None
    assert [row["tasks"] for row in rows_of(played) if row["method"] == "ringfence"] == [2, 1]


def test_games_on_some_tasks_use_the_demonstrators_of_all(played: Path) -> None:
    made = list((played / "runs/reproduce/demonstrations").glob("*-experts"))
    assert len(made) == 1


def test_a_half_plane_is_off_by_an_angle_and_a_distance() -> None:
    form = parse_class(CLASS, FEATURES)
    true = parse_constraint("0.5 x + 0 y <= 1 and speed <= 2", FEATURES)  # 2 m east
    turned = parse_constraint("0 x - 0.4 y <= 1 and speed <= 2.1", FEATURES)  # 2.5 m south
    found = errors(form, numbers(form, turned), numbers(form, true))
    assert found["angle_error"] == pytest.approx(90.0)
    assert found["offset_error"] == pytest.approx(0.5)
    assert found["limit_error"] == pytest.approx(0.05)
    assert found["error"] == pytest.approx(np.hypot(0.5, 0.4) / 0.5)
    same = errors(form, numbers(form, true), numbers(form, true))
    assert same["error"] == same["angle_error"] == same["offset_error"] == 0


def test_learners_are_judged_by_their_worst_task_and_limit() -> None:
    def episode(x: float, reward: float) -> Trajectory:
        phi = np.array([[x, 0.0, 0.0]])
        return Trajectory(np.zeros((2, 1)), np.zeros((1, 1)), np.array([reward]), phi, False)

    truth = parse_constraint("x <= 0 and speed <= 1", FEATURES)
    fine = side_by_side([episode(-1.0, 10.0)], [episode(-1.0, 10.0)], truth)
    worse = side_by_side([episode(np.e - 1, 9.0)], [episode(0.0, 10.0)], truth)
    assert worse["costs"] == pytest.approx([1.0, 0.0])
    # A cost of 1 where the demonstrator's is 0 counts as much as a tenth more of theirs.
    assert as_good([fine, worse]) == pytest.approx({"reward_below": 0.1, "cost_above": 0.1})


def test_the_example_is_the_game_of_the_experiment_and_knows_no_limit() -> None:
    text = EXAMPLE.read_text()
    assert len(text.splitlines()) < 30
    assert "truth" not in text
    example = tomllib.loads(text)
    example.pop("demos")
    game = read("multitask").variants["cheetah-3"]
    tables = {t: game.get(t) for t in CONFIG if t in game.settings}
    assert configure(tables) == configure(example)
