"""A policy that is only watched, and what the constraint player gets to see of episodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from line_task import Line, line_problem
from random_policies import policy_for
from ringfence.errors import InvalidInput
from ringfence.objects import Solution, Trajectory, behaviour_of
from ringfence.solvers.collecting import evaluate, no_augmentation
from ringfence.solvers.solver import PICTURED, THINNED
from ringfence.solvers.watching import Watcher, told
from ringfence.worlds.grid import read_map

LINE = Line()
START = policy_for(LINE)


def episode(reward: float) -> Trajectory:
    n = 10
    phi = np.full((n, 2), reward)
    return Trajectory(np.zeros((n + 1, 2)), np.zeros((n, 1)), np.full(n, reward), phi, False)


def test_what_is_watched_is_the_given_policy_and_nothing_is_trained() -> None:
    problem = replace(line_problem(), start=START)
    found = Watcher(5)(problem)
    runs = evaluate(LINE, START, no_augmentation, 5, problem.seed)
    assert (found.env_steps, found.lam) == (0, 0.0)
    assert found.behaviour.reward == behaviour_of(runs).reward
    np.testing.assert_array_equal(found.behaviour.features, behaviour_of(runs).features)
    assert all(np.array_equal(found.policy[k], START[k]) for k in START)


def test_its_key_names_the_policy_and_not_the_constraint() -> None:
    usual = {name: name for name in ("schema", "world", "task", "start", "seed", "constraint")}
    assert Watcher(5).key(line_problem(), usual) == {
        **{name: name for name in ("schema", "world", "task", "start", "seed")},
        "episodes": 5,
    }


def test_it_stays_what_it_is_in_every_role() -> None:
    watcher = Watcher(3)
    assert watcher.free() is watcher.watch() is watcher
    assert watcher.learns
    assert watcher.episodes(line_problem(), Watcher(2)(replace(line_problem(), start=START)), 1,
                            (0,)) is None  # fmt: skip


def test_a_finite_task_has_nothing_to_watch() -> None:
    task = read_map("S0", horizon=2).tasks[0]
    with pytest.raises(InvalidInput, match=r"has no simulator: PPO can't solve it"):
        Watcher(2)(replace(line_problem(), task=task, start=START))


def test_some_episodes_are_kept_thinned_for_pictures() -> None:
    episodes = [episode(1.0)] * (PICTURED + 2)
    found = told(line_problem(), Solution({}, 0.0, behaviour_of(episodes), 0), episodes)
    assert len(found.pictured) == PICTURED
    np.testing.assert_array_equal(found.pictured[0], episodes[0].features[::THINNED])
    assert found.shown is found.behaviour


def test_failed_episodes_are_hidden_where_that_is_asked_for() -> None:
    episodes = [episode(r) for r in (1.0, 1.0, 1.0, 1.01, 0.0)]
    whole = Solution({}, 0.0, behaviour_of(episodes), 0)
    assert told(line_problem(), whole, episodes).succeeded is None
    found = told(replace(line_problem(), drop_failed=True), whole, episodes)
    assert found.shown.episodes == 4
    assert found.behaviour is whole.behaviour
    assert found.shown.reward == pytest.approx(10.025)
    same = told(replace(line_problem(), drop_failed=True), whole, episodes[:4])
    assert same.succeeded is None
