"""From few demonstrations: exact learners, what an estimate adds, and resampled tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringfence.constraints.written import parse_constraint
from ringfence.objects import TaskDemos
from ringfence.reproduce import conduct, experiment, few_demonstrations
from ringfence.reproduce.demonstrate import configuration
from ringfence.reproduce.few_demonstrations import (
    Floor,
    beside,
    beyond,
    cells_added,
    episode,
    nearest,
    shown,
    trusted,
    ways,
)
from ringfence.reproduce.limit_worlds import STRIDE, Point
from ringfence.reproduce.point_demonstrators import EDGE_IS_OUT, PITCH, axis, best_moves
from ringfence.runs.config import make_world

SMALL = """
about = "few, small"
kind = "few"
[base]
like = "few/table-2"
analysis.resamples = 4
opening.steps = 20
game.iterations = 2
world.tasks = [
  { name = "a", kwargs = { goal = [0.81, 0.81] } },
  { name = "b", kwargs = { goal = [-0.81, 0.81] } },
]
[variants.one]
demonstrations.paths = 2
[[table]]
rows = "few_estimates"
columns = [["estimate", "estimate"], ["seed", "seed"], ["precision", "precision", ".3f"]]
[[table]]
rows = "few_resampled"
columns = [["share", "share"], ["cells", "cells"]]
"""


def floor_of(variant: str) -> Floor:
    file = experiment.read("few")
    config = configuration(file, file.variants[variant], 0)
    world: Any = make_world(config.world)
    text = file.variants[variant].get("training")["constraint"]
    return Floor(config, world, parse_constraint(text, world.features))


@pytest.fixture(scope="module")
def floor() -> Floor:
    return floor_of("table-2")


def test_ways_are_those_of_the_demonstrators_plan(floor: Floor) -> None:
    task = floor.world.tasks[2]
    goal, starts = np.array(task.kwargs["goal"]), nearest(np.array(task.kwargs["starts"]))
    off = beyond(floor.truth, EDGE_IS_OUT)
    found, _ = ways(goal, off, starts, task.horizon, 0, np.random.default_rng(0))
    plan = best_moves(goal, floor.truth, task.horizon)
    at = starts
    for t in range(task.horizon):
        at = at + plan[t][tuple(at.T)]
        assert (found[:, t + 1] == at).all()


def test_a_way_that_cannot_keep_off_ends_outside_as_soon_as_it_can() -> None:
    inside = parse_constraint("x >= 0.5", shared_features())
    off = beyond(inside)
    start = nearest(np.array([[0.33, 0.01]]))
    at, _ = ways(np.array([-0.8, 0.0]), off, start, 6, 0, np.random.default_rng(0))
    assert off[tuple(at[0].T)].tolist() == [True, True] + [False] * 5


def test_an_episode_is_what_the_environment_would_record(floor: Floor) -> None:
    (first, *_) = shown(floor, 2, (0,))
    env = Point(**floor.world.tasks[0].kwargs)
    for t in first.train:
        env.reset(seed=0)
        env._state = t.observations[0].copy()
        for n, action in enumerate(t.actions):
            seen, reward, *_ = env.step(action)
            assert seen == pytest.approx(t.observations[n + 1])
            assert reward == pytest.approx(t.rewards[n])


def test_who_slips_keeps_to_the_truth_and_misses_by_a_node_or_not_at_all() -> None:
    floor = floor_of("slipping-2")
    missed = []
    for d in shown(floor, 4, (0,)):
        for t in d.train:
            assert floor.truth.cost(t.features).max() == 0
            inside = (np.abs(t.features) < axis()[-1]).all(axis=1)
            by = np.diff(t.observations[:, :2], axis=0) - t.actions * STRIDE
            missed.append(by[inside] / PITCH)
    every = np.concatenate(missed)
    assert np.allclose(every, np.rint(every), atol=1e-9)
    assert {-1.0, 0.0, 1.0} == set(np.rint(every).ravel().tolist())


def test_a_point_slips_where_its_world_says_so() -> None:
    env = Point(goal=(0.5, 0.5), starts=[(0.0, 0.0)], slip=0.02)
    env.reset(seed=1)
    ends = [env.step(np.zeros(2))[0][:2].copy() for _ in range(200)]
    by = np.diff(np.array([[0.0, 0.0], *ends]), axis=0)
    assert set(by.round(9).ravel().tolist()) == {-0.02, 0.0, 0.02}


def test_a_clone_is_trusted_until_it_was_too_far_away() -> None:
    goal, none = np.zeros(2), np.zeros((4, 2))
    line = episode(goal, np.array([[0.1 * n, 0.0] for n in range(5)]), none)
    strays = np.array([[0.0, 0.0], [0.1, 0.04], [0.2, 0.06], [0.3, 0.0], [0.4, 0.0]])
    kept = trusted(TaskDemos("a", (line,), ()), [episode(goal, strays, none)], 0.5)
    assert kept.tolist() == [[0.1, 0.04]]
    wider = trusted(TaskDemos("a", (line,), ()), [episode(goal, strays, none)], 1.0)
    assert len(wider) == 4


def test_added_cells_are_new_ones_and_the_truth_says_which_are_forbidden() -> None:
    truth = parse_constraint("x <= 0.1", shared_features())
    xy = np.array([[0.01, 0.01], [0.09, 0.01], [0.09, 0.01]])
    d = TaskDemos("a", (episode(np.zeros(2), xy, np.zeros((2, 2))),), ())
    assert {tuple(p) for p in beside(d).round(2)} == {
        (0.11, 0.01), (0.07, 0.01), (0.09, 0.03), (0.09, -0.01),
    }  # fmt: skip
    again = np.concatenate([beside(d), [[0.09, 0.01]]])
    assert cells_added(truth, [d], [again]) == {"cells_added": 4, "forbidden_cells_added": 1}


def test_a_small_study_has_a_row_per_estimate_and_is_the_same_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_demonstrations, "ROLLED", 8)
    (tmp_path / "small.toml").write_text(SMALL)
    for out in ("a", "b"):
        conduct.run(str(tmp_path / "small.toml"), out=tmp_path / out, say=lambda text: None)
    made, again = (json.loads((tmp_path / o / "table.json").read_text()) for o in ("a", "b"))
    assert made == again
    rows = [r for r in made if r["table"] == "few_estimates" and r["seed"] == 0]
    names = ["plain", *(f"replay within {r}" for r in ("0.25", "0.5", "1")), "next to visited"]
    assert [r["estimate"] for r in rows] == names
    plain, *replays, control = rows
    assert plain["cells_added"] == 0
    added = [r["cells_added"] for r in replays]
    assert added == sorted(added)
    assert 0 <= control["charged_episodes"] <= plain["charged_episodes"] <= 1
    shares = [r for r in made if r["table"] == "few_resampled"]
    assert [r["share"] for r in shares][:2] == ["never", "0% to 10%"]
    assert all(r["truly_forbidden"] <= r["cells"] for r in shares)


def shared_features() -> Any:
    file = experiment.read("few")
    return make_world(configuration(file, file.variants["table-2"], 0).world).features
