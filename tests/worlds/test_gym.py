from __future__ import annotations

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from random_policies import policy_for
from ringfence.constraints.linear import parse_inequality
from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Feature, Problem
from ringfence.solvers.ppo import PPO, PPOConfig
from ringfence.worlds.gym import Config, FeatureConfig, GymSimulator, GymTask, GymTaskConfig, make
from ringfence.worlds.sim.replay import trial
from ringfence.worlds.sim.rollouts import CollectorSpec


def spin(before, actions, after):
    """The pendulum's angular speed."""
    return np.abs(after[:, 2:3])


class Walk(gymnasium.Env):
    """x moves by the action; x is in `info`; ends beyond 1."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gymnasium.spaces.Box(-2.0, 2.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-0.1, 0.1)
        return np.array([self.x], np.float32), {}

    def step(self, action):
        self.x += 0.1 * float(action[0])
        return np.array([self.x], np.float32), self.x, abs(self.x) > 1, False, {"x": self.x}


def make_walk():
    return Walk()


PENDULUM = GymTask("Pendulum-v1", (Feature("spin", "rad/s"),), transition=spin)
WALK = GymTask(f"{__name__}:make_walk", (Feature("x", "m"),), steps=50)


def test_steps_like_the_environment_itself():
    sim = GymSimulator(PENDULUM, 3)
    sim.reset(np.arange(3), [np.random.default_rng(i) for i in range(3)])
    env = gymnasium.make("Pendulum-v1")
    seed = int(np.random.default_rng(1).integers(2**31))
    expected, _ = env.reset(seed=seed)
    for action in np.random.default_rng(5).uniform(-2, 2, (20, 3, 1)):
        step = sim.step(action)
        expected, reward, *_ = env.step(action[1].astype(np.float32))
        np.testing.assert_array_equal(step.observations[1], expected)
        assert step.rewards[1] == reward
        assert step.features[1, 0] == abs(expected[2])


def test_registered_limit_and_action_box_are_the_environments():
    assert PENDULUM.horizon == 200
    assert PENDULUM.action_high.tolist() == [2.0]


def test_features_come_from_info_and_episodes_end_by_themselves():
    collector = WALK.collector(CollectorSpec(4, lambda p: p[:, 0], (0,)))
    policy = policy_for(WALK)
    policy["actor/b1"] += 2
    chunk = collector.collect(policy, 60, 0)
    assert chunk.terminated.any()
    beyond = np.abs(chunk.features[..., 0]) > 1
    assert np.array_equal(beyond, chunk.terminated)
    runs = collector.episodes(policy, 4, deterministic=True, seed=(1,))
    assert all(r.terminated and len(r) < 50 and r.actions.max() <= 2 for r in runs)


def test_restored_collector_goes_on_with_the_same_bytes():
    spec, policy = CollectorSpec(4, lambda p: p[:, 0], (0,)), policy_for(WALK)
    collector, other = WALK.collector(spec), WALK.collector(spec)
    collector.collect(policy, 30, 0)
    other.restore(collector.save())
    one, two = collector.collect(policy, 30, 1), other.collect(policy, 30, 1)
    for name, value in one.arrays().items():
        assert np.array_equal(value, two.arrays()[name]), name


def test_ppo_solves_a_gymnasium_environment():
    config = PPOConfig(
        env_steps=16_384, copies=8, steps=64, minibatches=4, passes=6, test_episodes=0
    )
    constraint = parse_inequality("x <= 100", WALK.features)
    result = PPO(replace(config, learning_rate=1e-3)).train(
        Problem(WALK, constraint, 1.0, None, (0,))
    )
    first = np.mean([r.reward for r in result.records[:4] if r.reward is not None])
    assert result.solution.behaviour.reward > first


def test_wrong_environments_are_refused_with_the_reason():
    with pytest.raises(InvalidInput, match="can't make"):
        GymTask("NoSuchEnv-v0", (Feature("x", "m"),))
    for space in (gymnasium.spaces.MultiBinary(3), gymnasium.spaces.MultiDiscrete([[2, 2]])):
        with pytest.raises(InvalidInput, match="flat Box, Discrete or MultiDiscrete, got Multi"):
            GymTask("walk", (Feature("x", "m"),), steps=5, maker=lambda s=space: acting(s))
    wide = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    with pytest.raises(InvalidInput, match=r"must be bounded, .* such as .*RescaleAction"):
        GymTask("walk", (Feature("x", "m"),), steps=5, maker=lambda: acting(wide))
    with pytest.raises(InvalidInput, match="no registered episode length"):
        _ = replace(WALK, steps=None).horizon
    collector = replace(WALK, features=(Feature("height", "m"),)).collector(
        CollectorSpec(2, lambda p: p[:, 0], (0,))
    )
    with pytest.raises(InvalidInput, match="no info key 'height'"):
        collector.collect(policy_for(WALK), 2, 0)
    wrong = replace(PENDULUM, transition=lambda s, a, t: t)
    with pytest.raises(SolverFailed, match="returned shape"):
        wrong.collector(CollectorSpec(2, lambda p: p[:, 0], (0,))).collect(policy_for(wrong), 2, 0)


@pytest.mark.parametrize("where", ["step", "reset"])
def test_an_error_in_the_environment_is_one_line_with_its_place(monkeypatch, where):
    def lost(*_, **__):
        raise RuntimeError("motor driver lost")

    sim = GymSimulator(WALK, 2)
    sim.reset(np.arange(2), [np.random.default_rng(i) for i in range(2)])
    monkeypatch.setattr(Walk, where, lost)
    with pytest.raises(SolverFailed, match=rf"a {where} of .*motor driver lost \(test_gym.py"):
        sim.step(np.zeros((2, 1))) if where == "step" else sim.reset(
            np.arange(1), [np.random.default_rng(0)]
        )


def test_an_error_in_the_reward_function_is_one_line():
    task = replace(WALK, reward=lambda before, actions, after: after[:, 5])
    sim = GymSimulator(task, 2)
    sim.reset(np.arange(2), [np.random.default_rng(i) for i in range(2)])
    with pytest.raises(SolverFailed, match=r"reward function of .* failed: IndexError"):
        sim.step(np.zeros((2, 1)))


# As a kind of world


def config(**changes):
    return Config(**{"env": "own_cart:make_cart", "steps": 20,
                     "features": (FeatureConfig("speed", "m/s"),), **changes})  # fmt: skip


def test_features_come_from_info_columns_functions_or_the_whole_observation():
    for change, names, sources in (
        ({}, ["speed"], {"speed": "speed"}),
        ({"features": (FeatureConfig("v", info="speed"),)}, ["v"], {"v": "speed"}),
        ({"features": (FeatureConfig("v", column=0),)}, ["v"], {"v": 0}),
        ({"feature_function": "own_cart:square"}, ["speed"], {}),
        ({"full_state": True}, ["speed", "obs_0"], {"speed": "speed", "obs_0": 0}),
        ({"full_state": True, "features": ()}, ["obs_0"], {"obs_0": 0}),
    ):
        (task,) = make(config(**change)).tasks
        assert [f.name for f in task.features] == names
        assert task.sources == sources


def test_tasks_have_their_own_arguments_rewards_and_wrappers():
    world = make(config(kwargs={"pay": 2.0}, tasks=(
        GymTaskConfig("fast"),
        GymTaskConfig("slow", reward="own_cart:slowly"),
        GymTaskConfig("half", {"pay": 3.0}, wrapper="own_cart:half"),
    )))  # fmt: skip
    assert [task.name for task in world.tasks] == ["fast", "slow", "half"]
    fast, slow, half = (trial(task) for task in world.tasks)
    speed = fast.features[:, 0]
    np.testing.assert_allclose(fast.rewards, 2 * speed)
    np.testing.assert_allclose(slow.rewards, -speed, rtol=1e-6)
    np.testing.assert_allclose(half.rewards, 1.5 * speed)
    other = world.new_task({"kwargs": {"pay": 5.0}})
    np.testing.assert_allclose(trial(other).rewards, 5 * speed)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": ()}, "declare at least one"),
        ({"full_state": True, "feature_function": "own_cart:square"}, "don't go together"),
        ({"feature_function": "own_cart:nothing"}, "can't find the function"),
        ({"features": (FeatureConfig("v", info="a", column=0),)}, "info or column, not both"),
        ({"features": (FeatureConfig("v", column=7),)}, "which has columns 0 to 0"),
        ({"steps": -1}, "at least one step"),
        ({"steps": None}, "no registered episode length"),
    ],
)
def test_a_world_that_can_not_be_is_refused_when_it_is_made(changes, message):
    with pytest.raises(InvalidInput, match=message):
        make(config(**changes))


class Goal(gymnasium.Env):
    """A point that goes to a goal: observations as goal environments have them, and a number."""

    observation_space = gymnasium.spaces.Dict(
        {
            "observation": gymnasium.spaces.Box(-np.inf, np.inf, (2,)),
            "achieved_goal": gymnasium.spaces.Box(-np.inf, np.inf, (1,)),
            "desired_goal": gymnasium.spaces.Box(-np.inf, np.inf, (1,)),
            "gear": gymnasium.spaces.Discrete(3),
        }
    )
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.goal = 0.0, float(self.np_random.uniform(1, 2))
        return self._seen(), {}

    def _seen(self):
        one = np.array([self.x], np.float32)
        goal = np.array([self.goal], np.float32)
        seen = np.array([self.x, self.goal - self.x], np.float32)
        return {"observation": seen, "achieved_goal": one, "desired_goal": goal, "gear": 1}

    def step(self, action):
        self.x += 0.1 * float(action[0])
        return self._seen(), -abs(self.goal - self.x), False, False, {"x": self.x}


class Camera(Goal):
    observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)


def make_goal() -> Goal:
    return Goal()


def make_camera() -> Camera:
    return Camera()


def test_observations_of_parts_become_one_row_of_numbers() -> None:
    task = GymTask(f"{__name__}:make_goal", (Feature("x", "m"),), steps=10)
    assert task.observation_dim == 1 + 1 + 3 + 2  # achieved, desired, gear, observation: by key
    tried = trial(task)
    np.testing.assert_array_equal(tried.observations[:, 2:5], [[0, 1, 0]] * len(tried.observations))
    np.testing.assert_allclose(
        tried.observations[:, 1] - tried.observations[:, 0], tried.observations[:, 6], atol=1e-6
    )


def test_ppo_solves_a_goal_environment() -> None:
    task = GymTask(f"{__name__}:make_goal", (Feature("x", "m"),), steps=20)
    spec = CollectorSpec(4, lambda phi: phi[:, 0], (0,))
    chunk = task.collector(spec).collect(policy_for(task), 5, 0)
    assert chunk.inputs.shape == (5, 4, 8)


def test_an_image_is_refused_with_a_remedy() -> None:
    with pytest.raises(InvalidInput, match=r"image.*wrapper"):
        GymTask(f"{__name__}:make_camera", (Feature("x", "m"),), steps=10)


# Choices


def acting(space: gymnasium.Space) -> gymnasium.Env:
    env = Walk()
    env.action_space = space
    return env


class Steps(gymnasium.Env):
    """x moves by one of three steps, times a gear; what it was given is kept."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))

    def __init__(self, space):
        self.action_space, self.given = space, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = 0.0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        step, gear = (action, 1) if np.ndim(action) == 0 else action
        self.x += 0.1 * step * gear
        return np.array([self.x], np.float32), self.x, False, False, {"x": self.x, "step": step}


DISCRETE = gymnasium.spaces.Discrete(3, start=-1)
MULTI = gymnasium.spaces.MultiDiscrete([3, 2], start=[-1, 1])


def stepping(space, **changes) -> GymTask:
    features = (Feature("x", "m"), Feature("step", ""))
    return GymTask("steps", features, steps=10, maker=lambda: Steps(space), **changes)


@pytest.mark.parametrize(
    ("space", "choices", "low", "high"),
    [(DISCRETE, (3,), [-1], [1]), (MULTI, (3, 2), [-1, 1], [1, 2])],
)
def test_choices_are_given_to_the_environment_as_its_space_has_them(space, choices, low, high):
    task = stepping(space)
    assert (task.choices, task.action_low.tolist(), task.action_high.tolist()) == (
        choices, low, high,
    )  # fmt: skip
    collector = task.collector(CollectorSpec(4, lambda phi: phi[:, 0], (0,)))
    chunk = collector.collect(policy_for(task), 30, 0)
    np.testing.assert_array_equal(chunk.features[..., 1], chunk.actions[..., 0] - 1)
    assert set(np.unique(chunk.features[..., 1])) == {-1, 0, 1}
    other = task.collector(CollectorSpec(4, lambda phi: phi[:, 0], (0,)))
    other.restore(collector.save())
    one, two = collector.collect(policy_for(task), 5, 1), other.collect(policy_for(task), 5, 1)
    assert np.array_equal(one.rewards, two.rewards)
    (run,) = collector.episodes(policy_for(task), 1, False, (1,))
    np.testing.assert_array_equal(run.actions[:, 0], run.features[:, 1])
    assert trial(task).features.shape == (25, 2)
    rewarded = replace(task, reward=lambda before, actions, after: actions[:, 0])
    np.testing.assert_array_equal(trial(rewarded).rewards, trial(task).features[:, 1])


def test_a_box_has_no_choices():
    assert WALK.choices == PENDULUM.choices == ()


@pytest.mark.parametrize("space", [DISCRETE, MULTI])
def test_ppo_learns_which_choices_are_right(space):
    task = stepping(space)
    config = PPOConfig(
        env_steps=40_000, copies=8, steps=32, minibatches=4, hidden=(16,), test_episodes=0
    )
    constraint = parse_inequality("x <= 100", task.features)
    result = PPO(config).train(Problem(task, constraint, 1.0, None, (0,)))
    wanted = [1.0] if space is DISCRETE else [1.0, 2.0]
    taken = np.concatenate([t.actions for t in result.deterministic])
    assert np.mean((taken == wanted).all(axis=1)) > 0.8
