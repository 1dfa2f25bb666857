"""The wrappers: the right cost on the right step, counted, and cheap."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ringfence.constraints.linear import parse_inequality
from ringfence.constraints.saved import SavedConstraint
from ringfence.deploy.cost import ConstraintCost, Monitor, VectorConstraintCost, VectorMonitor
from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Constraint, Feature
from saved_constraints import random_network

X = (Feature("x", "m"),)
LIMIT = parse_inequality("x <= 0.25", X)


class Walk(gymnasium.Env[Any, Any]):
    """x moves by the action; an episode ends beyond 1, or after `steps` steps."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)

    def __init__(self, steps: int = 7) -> None:
        self.steps = steps

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = 0.0, 0
        return np.array([self.x, self.t]), {}

    def step(self, action):
        self.x += float(np.asarray(action)[0])
        self.t += 1
        ended, cut = self.x > 1, self.t >= self.steps
        return np.array([self.x, self.t]), 0.0, ended, cut, {"x": self.x, "position": self.x}


def displacement(before, actions, after):
    return after[:, :1] - before[:, :1]


def run(env, actions) -> list[dict[str, Any]]:
    """The infos of steps, resetting whenever an episode ends."""
    env.reset(seed=0)
    infos = []
    for action in actions:
        *_, terminated, truncated, info = env.step(action)
        infos.append(info)
        if terminated or truncated:
            env.reset()
    return infos


ACTIONS = [np.array([0.2])] * 4


@pytest.mark.parametrize("features", [None, {"x": "position"}, {"x": 0}])
def test_cost_is_the_constraints_on_the_features_of_the_step(features) -> None:
    infos = run(ConstraintCost(Walk(), LIMIT, features), ACTIONS)
    x = np.array([[0.2], [0.4], [0.6], [0.8]])
    assert np.allclose([i["cost"] for i in infos], LIMIT.cost(x), atol=1e-12)
    assert np.allclose([i["cost_raw"] for i in infos], LIMIT.raw(x), atol=1e-12)
    assert type(infos[0]["cost"]) is float


def test_a_function_gets_the_transition_also_after_a_reset() -> None:
    infos = run(ConstraintCost(Walk(), LIMIT, displacement), [np.array([0.3])] * 9)
    assert [i["cost_raw"] for i in infos] == pytest.approx([0.05] * 9)


class OneArray(Walk):
    """It writes every observation into the same array."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = np.zeros(2)

    def reset(self, *, seed=None, options=None):
        self.seen[:], info = super().reset(seed=seed, options=options)
        return self.seen, info

    def step(self, action):
        self.seen[:], *rest = super().step(action)
        return (self.seen, *rest)


def test_an_environment_may_write_every_observation_into_one_array() -> None:
    infos = run(ConstraintCost(OneArray(), LIMIT, displacement), [np.array([0.3])] * 9)
    assert [i["cost_raw"] for i in infos] == pytest.approx([0.05] * 9)


def test_rewards_observations_and_the_rest_of_info_are_untouched() -> None:
    bare, wrapped = Walk(), ConstraintCost(Walk(), LIMIT)
    bare.reset(seed=0)
    wrapped.reset(seed=0)
    for action in ACTIONS:
        *one, info = bare.step(action)
        *two, more = wrapped.step(action)
        assert np.array_equal(one[0], two[0])
        assert one[1:] == two[1:]
        assert {k: more[k] for k in info} == info


class Costly(Walk):
    """It has a cost of its own: 10 times x."""

    def step(self, action):
        *rest, info = super().step(action)
        return (*rest, info | {"cost": 10 * self.x})


def test_a_cost_that_the_environment_has_is_kept_beside() -> None:
    infos = run(ConstraintCost(Costly(), LIMIT), ACTIONS)
    x = np.array([[0.2], [0.4], [0.6], [0.8]])
    np.testing.assert_allclose([i["env_cost"] for i in infos], 10 * x[:, 0])
    np.testing.assert_allclose([i["cost"] for i in infos], LIMIT.cost(x), atol=1e-12)
    assert all("env_cost" not in i for i in run(ConstraintCost(Walk(), LIMIT), ACTIONS))
    # the constraint may be about that very cost
    own = run(ConstraintCost(Costly(), LIMIT, {"x": "cost"}), ACTIONS)
    np.testing.assert_allclose([i["cost_raw"] for i in own], 10 * x[:, 0] - 0.25)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_in_a_vector_environment_too_in_every_autoreset_mode(mode) -> None:
    """The mean of each copy's costs: 2, 4, .. 12, of which the last ends the episode."""
    envs = SyncVectorEnv([Costly, Costly], autoreset_mode=mode)
    wrapped = VectorConstraintCost(envs, LIMIT)
    wrapped.reset(seed=0)
    for n in range(1, 7):
        *_, terminated, _, info = wrapped.step(np.full((2, 1), 0.2))
        assert terminated.all() == (n == 6)
        there = info["final_info"] if n == 6 and mode == AutoresetMode.SAME_STEP else info
        np.testing.assert_allclose(there["env_cost"], 2.0 * n)
        assert there["_env_cost"].all()
        np.testing.assert_allclose(there["cost"], LIMIT.cost([[0.2 * n]])[0], atol=1e-12)
    if mode == AutoresetMode.NEXT_STEP:  # a step that only resets has no cost of either kind
        *_, info = wrapped.step(np.full((2, 1), 0.2))
        assert "env_cost" not in info
        assert not info["_cost"].any()


def test_a_third_cost_is_refused() -> None:
    twice = ConstraintCost(ConstraintCost(Walk(), LIMIT), LIMIT)
    assert run(twice, ACTIONS)[3]["env_cost"] == run(twice, ACTIONS)[3]["cost"] > 0
    with pytest.raises(InvalidInput, match="'env_cost' already: wrap the environment once"):
        run(ConstraintCost(ConstraintCost(Costly(), LIMIT), LIMIT), ACTIONS)


class Broken(Walk):
    """Gives `value` as x."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def step(self, action):
        *out, _ = super().step(action)
        return *out, {} if self.value is None else {"x": self.value}


def vector(make: Callable[[], gymnasium.Env[Any, Any]], mode=AutoresetMode.NEXT_STEP, n: int = 3):
    return SyncVectorEnv([make] * n, autoreset_mode=mode)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (None, "no info key 'x' for the feature 'x'; after a step it has none"),
        (np.nan, "feature 'x' is not finite"),
        (np.array([1.0, 2.0]), "feature 'x' must be one number per step"),
        ("far", "feature 'x' must be one number per step"),
    ],
)
def test_a_feature_that_is_missing_or_no_number_is_named(value: Any, word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        run(ConstraintCost(Broken(value), LIMIT), ACTIONS)
    envs = VectorConstraintCost(vector(lambda: Broken(value)), LIMIT)
    envs.reset()
    with pytest.raises(InvalidInput, match=word):
        envs.step(np.zeros((3, 1)))


def test_a_path_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"ringfence\.load"):
        ConstraintCost(Walk(), "runs/cart")  # type: ignore[arg-type]


def test_a_function_for_one_feature_is_refused_with_what_there_is() -> None:
    with pytest.raises(InvalidInput, match="may stand in the mapping's place"):
        ConstraintCost(Walk(), LIMIT, {"x": displacement})  # type: ignore[dict-item]


def test_what_cannot_work_is_refused_before_the_first_step() -> None:
    with pytest.raises(InvalidInput, match="columns 0 to 1, a feature asks for 2"):
        ConstraintCost(Walk(), LIMIT, {"x": 2})
    with pytest.raises(InvalidInput, match="no feature 'y'; features are x"):
        ConstraintCost(Walk(), LIMIT, {"y": 0})
    with pytest.raises(InvalidInput, match="use VectorConstraintCost"):
        ConstraintCost(vector(Walk), LIMIT)
    with pytest.raises(InvalidInput, match="use ConstraintCost"):
        VectorConstraintCost(Walk(), LIMIT)
    with pytest.raises(InvalidInput, match="flat Box"):
        ConstraintCost(gymnasium.make("FrozenLake-v1"), LIMIT, {"x": 0})
    with pytest.raises(SolverFailed, match=r"returned shape \(1, 2\), not \(1, 1\)"):
        run(ConstraintCost(Walk(), LIMIT, lambda before, actions, after: after), ACTIONS)


# Vector environments ------------------------------------------------------------------------------


def transitions(envs, actions) -> list[list[float]]:
    """Per copy, the raw values of its real transitions, by the masks."""
    envs.reset(seed=0)
    seen: list[list[float]] = [[] for _ in range(envs.num_envs)]
    for action in actions:
        _, _, terminated, truncated, info = envs.step(action)
        for i in np.flatnonzero(info["_cost"]):
            seen[i].append(float(info["cost_raw"][i]))
            assert info["cost"][i] == LIMIT.activate(info["cost_raw"][i : i + 1])[0]
        assert not info["cost"][~info["_cost"]].any()
        ended = terminated | truncated
        if envs.metadata["autoreset_mode"] == AutoresetMode.DISABLED and ended.any():
            envs.reset(options={"reset_mask": ended})
    return seen


def alone(features, actions) -> list[float]:
    infos = run(ConstraintCost(Walk(), LIMIT, features), actions)
    return [i["cost_raw"] for i in infos]


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("features", [None, {"x": 0}, displacement])
def test_a_vector_environments_transitions_cost_what_single_ones_do(mode, features) -> None:
    """Copies end at different times; the step that only resets one has no cost."""
    actions = np.random.default_rng(0).uniform(-0.2, 1.0, (60, 3, 1))
    seen = transitions(VectorConstraintCost(vector(Walk, mode), LIMIT, features), actions)
    for i in range(3):
        if mode == AutoresetMode.NEXT_STEP:  # the action of a resetting step goes nowhere
            assert 30 < len(seen[i]) < 60
            env, kept, resetting = Walk(), [], False
            env.reset()
            for action in actions[:, i]:
                if resetting:
                    env.reset()
                else:
                    kept.append(action)
                *_, ended, cut, _ = env.step(action) if not resetting else (0, 0, False, False, 0)
                resetting = ended or cut
            expected = alone(features, kept)
        else:
            expected = alone(features, actions[:, i])
        assert seen[i] == pytest.approx(expected)


def test_final_infos_hold_the_last_steps_cost_too() -> None:
    envs = VectorConstraintCost(vector(Walk, AutoresetMode.SAME_STEP), LIMIT)
    envs.reset(seed=0)
    info = envs.step(np.array([[0.5], [1.0], [0.1]]))[-1]
    assert "final_info" not in info
    info = envs.step(np.array([[0.1], [0.5], [0.1]]))[-1]
    assert info["_cost"].tolist() == [True] * 3
    assert info["cost_raw"] == pytest.approx([0.35, 1.25, -0.05])
    assert info["final_info"]["_cost"].tolist() == [False, True, False]
    assert info["final_info"]["cost"][1] == info["cost"][1] > 0


# Monitor ------------------------------------------------------------------------------------------


def test_the_monitor_counts_what_happened(tmp_path: Path) -> None:
    log = tmp_path / "violations.csv"
    env = Monitor(ConstraintCost(Walk(), LIMIT), limit=1.0, log=log)
    # Two episodes of 7 steps: one goes to 0.9 and stays, one never leaves 0.
    run(env, [np.array([0.9]), *[np.array([0.0])] * 6, *[np.array([0.0])] * 7])
    v, cost = env.violations, 7 * np.log1p(0.65)
    assert (v.steps, v.violating_steps, v.episodes, v.episodes_over) == (14, 7, 2, 1)
    assert v.worst_cost == v.total_cost == pytest.approx(cost)
    low, high = v.interval()
    assert (low, high) == pytest.approx((0.012579, 0.987421), abs=1e-6)  # of 1 in 2, exact
    words = env.summary()
    assert "7 of 14 steps violate (50.0%)" in words
    assert "1 of 2 episodes are over it" in words
    assert "1.3% to 98.7%" in words
    env.close()
    rows = list(csv.DictReader(log.open()))
    assert [(r["steps"], r["violating_steps"], r["over"]) for r in rows] == [
        ("7", "7", "1"),
        ("7", "0", "0"),
    ]
    assert float(rows[0]["cost"]) == pytest.approx(cost)


def test_an_episode_left_before_its_end_is_not_an_episode() -> None:
    env = Monitor(ConstraintCost(Walk(), LIMIT), limit=1.0)
    env.reset()
    env.step(np.array([0.9]))
    env.reset()
    assert (env.violations.left, env.violations.episodes, env.violations.violating_steps) == (
        1,
        0,
        1,
    )
    assert "no episode has finished yet; 1 episodes were left" in env.summary()


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("wrapped", ["outside", "inside"])
def test_a_vector_monitor_counts_like_single_ones(mode, wrapped: str) -> None:
    """The cost may come from VectorConstraintCost or from the copies' own wrappers."""
    if wrapped == "outside":
        envs: Any = VectorConstraintCost(vector(Walk, mode), LIMIT)
    else:
        envs = vector(lambda: ConstraintCost(Walk(), LIMIT), mode)
    envs = VectorMonitor(envs, limit=0.8)
    envs.reset(seed=0)
    episodes = over = steps = 0
    running = np.zeros(3)
    resets = np.zeros(3, bool)
    for action in np.random.default_rng(0).uniform(-0.2, 1.0, (80, 3, 1)):
        _, _, terminated, truncated, info = envs.step(action)
        ended = terminated | truncated
        for i in np.flatnonzero(~resets):
            last = wrapped == "inside" and mode == AutoresetMode.SAME_STEP and ended[i]
            running[i] += (info["final_info"] if last else info)["cost"][i]
            steps += 1
            if ended[i]:
                episodes, over, running[i] = episodes + 1, over + (running[i] > 0.8), 0
        if mode == AutoresetMode.NEXT_STEP:
            resets = ended
        if mode == AutoresetMode.DISABLED and ended.any():
            envs.reset(options={"reset_mask": ended})
    v = envs.violations
    assert (v.episodes, v.episodes_over, v.steps, v.left) == (episodes, over, steps, 0)
    assert 0 < over < episodes


def test_the_limit_is_the_saved_constraints_unless_given(tmp_path: Path) -> None:
    saved = SavedConstraint(LIMIT, 2.5, None, {})
    timed = gymnasium.wrappers.TimeLimit(ConstraintCost(Walk(), saved), 5)
    assert Monitor(timed).violations.limit == 2.5
    assert Monitor(timed, limit=1).violations.limit == 1
    assert VectorMonitor(VectorConstraintCost(vector(Walk), saved)).violations.limit == 2.5
    with pytest.raises(InvalidInput, match="needs a limit"):
        Monitor(ConstraintCost(Walk(), LIMIT))
    with pytest.raises(InvalidInput, match="must be a number"):
        Monitor(timed, limit=np.nan)
    (tmp_path / "log.csv").touch()
    with pytest.raises(InvalidInput, match="exists already"):
        Monitor(timed, log=tmp_path / "log.csv")


def test_a_monitor_without_a_cost_says_what_to_do() -> None:
    env = Monitor(Walk(), limit=1.0)
    env.reset()
    with pytest.raises(InvalidInput, match="wrap it in ConstraintCost first"):
        env.step(np.zeros(1))
    envs = VectorMonitor(vector(Walk), limit=1.0)
    envs.reset()
    with pytest.raises(InvalidInput, match="wrap it in ConstraintCost first"):
        envs.step(np.zeros((3, 1)))


class Odd(Walk):
    """Its info has a cost, and a raw value that is no number."""

    def step(self, action):
        *rest, info = super().step(action)
        return (*rest, info | {"cost": 1.0, "cost_raw": np.nan})


def test_a_raw_value_that_is_no_number_is_not_taken_for_safe() -> None:
    env = Monitor(Odd(), limit=1.0)
    env.reset()
    with pytest.raises(InvalidInput, match="its raw value nan"):
        env.step(np.zeros(1))


# Overhead -----------------------------------------------------------------------------------------


def seconds_per_step(env: gymnasium.Env[Any, Any], steps: int = 200) -> float:
    env.reset(seed=0)
    action = np.zeros(1)
    began = time.thread_time()  # what others do on the machine doesn't count
    for _ in range(steps):
        env.step(action)
    return (time.thread_time() - began) / steps


def overhead(constraint: Constraint, features, tries: int = 30) -> tuple[float, float]:
    """Seconds that the wrapper, and wrapper and monitor, add to a step: best of several."""
    bare = Walk(steps=10**9)
    wrapped = ConstraintCost(Walk(steps=10**9), constraint, features)
    monitored = Monitor(ConstraintCost(Walk(steps=10**9), constraint, features), limit=1.0)
    best = np.array(
        [[seconds_per_step(env) for env in (bare, wrapped, monitored)] for _ in range(tries)]
    ).min(axis=0)
    return best[1] - best[0], best[2] - best[0]


SMALL = {
    "linear": (LIMIT, None),
    "mlp 2-32-32-1": (random_network((32, 32)), {"x": 0, "y": 1}),
}


@pytest.mark.parametrize("name", SMALL)
def test_wrapper_and_monitor_add_under_20_microseconds(name: str) -> None:
    constraint, features = SMALL[name]
    both = []
    for _ in range(5):
        both.append(overhead(constraint, features, tries=10)[1])
        if both[-1] < 20e-6:
            return
    pytest.fail(f"{both} s per step")


if __name__ == "__main__":
    for name, (constraint, features) in {
        **SMALL,
        "mlp 2-128-128-1": (random_network((128, 128)), {"x": 0, "y": 1}),
    }.items():
        wrapper, both = overhead(constraint, features)
        print(f"{name}: wrapper {wrapper * 1e6:.1f} us, with monitor {both * 1e6:.1f} us per step")
