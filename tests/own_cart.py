"""Somebody's own environment and logs: a cart that is paid for speed, drivers who keep a limit."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np

LIMIT, STEPS = 0.75, 50

TOML = """
[world]
kind = "gym"
env = "own_cart:make_cart"
steps = 50
features = [{ name = "speed", unit = "m/s" }]

[demos]
path = "logs.npz"

[game]
constraint = "speed <= ?"
iterations = 1
buffer = 0.0

[player]
kind = "payoff"
expert_budget = 0.5

[opening]
steps = 200
probe = false

[solver]
env_steps = 1024
copies = 16
steps = 16
minibatches = 2
passes = 1
hidden = [16]
evaluation_episodes = 4
test_episodes = 8
"""


class Cart(gymnasium.Env):
    """The action changes the speed by up to 0.2 m/s; the reward is the speed, times `pay`."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, pay=1.0, push=0.2):
        self.pay, self.push = pay, push

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.speed = float(self.np_random.uniform(0.0, 0.1))
        return np.array([self.speed], np.float32), {}

    def step(self, action):
        self.speed = float(np.clip(self.speed + self.push * action[0], 0.0, 2.0))
        seen = np.array([self.speed], np.float32)
        return seen, self.pay * self.speed, False, False, {"speed": self.speed}


class GoalCart(Cart):
    """Sees the speed that it is paid to go at, too; it begins at a speed of `begin`."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)

    def __init__(self, goal=0.5, begin=0.0, push=0.2):
        super().__init__(push=push)
        self.goal, self.begin = goal, begin

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.speed += self.begin
        return self._seen(), {}

    def step(self, action):
        *_, info = super().step(action)
        return self._seen(), -abs(self.speed - self.goal), False, False, info

    def _seen(self):
        return np.array([self.speed, self.goal], np.float32)


def make_cart(**settings):
    return Cart(**settings)


class Shaky(Cart):
    """Wind that no seed decides."""

    def step(self, action):
        return super().step(action + np.random.default_rng().normal(0.0, 0.1, 1))


class Buttons(Cart):
    """Its actions are neither numbers nor choices."""

    action_space = gymnasium.spaces.MultiBinary(3)


def slowly(before, actions, after):
    """Another reward: paid for being slow."""
    return -after[:, 0]


def square(before, actions, after):
    """A feature: the speed's square."""
    return after[:, :1] ** 2


def half(env):
    """A wrapper: half of the reward."""
    return gymnasium.wrappers.TransformReward(env, lambda r: r / 2)


def arrays(paces=(LIMIT,) * 8, seeds=True) -> dict[str, np.ndarray]:
    """Drivers' logs in the layout of ringfence.logs; the n-th one goes up to paces[n]."""
    seen, actions, rewards, speeds = [], [], [], []
    for n, pace in enumerate(paces):
        env, rng = Cart(), np.random.default_rng(n)
        seen.append(env.reset(seed=n)[0])
        for _ in range(STEPS):
            wish = (pace - env.speed) / 0.2 - 0.8 * rng.random()
            actions.append(np.clip([wish], -1, 1).astype(np.float32))
            after, reward, *_, info = env.step(actions[-1])
            seen.append(after)
            rewards.append(reward)
            speeds.append(info["speed"])
    n = len(paces)
    found = {
        "lengths": np.full(n, STEPS),
        "observations": np.array(seen),
        "actions": np.array(actions),
        "rewards": np.array(rewards),
        "info/speed": np.array(speeds),
        "terminated": np.zeros(n, bool),
    }
    return {**found, "seeds": np.arange(n)} if seeds else found


def write(folder: Path, text: str = TOML, **changes: np.ndarray | None) -> Path:
    """my.toml and logs.npz in the folder; an array that is changed to None is left out."""
    kept = {k: v for k, v in {**arrays(), **changes}.items() if v is not None}
    np.savez(folder / "logs.npz", **kept)
    (folder / "my.toml").write_text(text)
    return folder / "my.toml"


class Remembering(Cart):
    """Each reset but the first begins a little faster: the scene was built by then."""

    resets = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.speed += 0.05 * (self.resets > 0)
        self.resets += 1
        return np.array([self.speed], np.float32), {}


def recorded(env, episodes=4) -> dict[str, np.ndarray]:
    """Random drives in one environment, one after the other."""
    seen, actions, rewards, speeds = [], [], [], []
    rng = np.random.default_rng(0)
    for n in range(episodes):
        seen.append(env.reset(seed=n)[0])
        for _ in range(STEPS):
            actions.append(rng.uniform(-0.5, 1, 1).astype(np.float32))
            after, reward, *_, info = env.step(actions[-1])
            seen.append(after)
            rewards.append(reward)
            speeds.append(info["speed"])
    return {
        "lengths": np.full(episodes, STEPS),
        "observations": np.array(seen),
        "actions": np.array(actions),
        "rewards": np.array(rewards),
        "info/speed": np.array(speeds),
        "terminated": np.zeros(episodes, bool),
        "seeds": np.arange(episodes),
    }
