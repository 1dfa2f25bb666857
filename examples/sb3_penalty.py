"""Stable-Baselines3 under a constraint that was learned from demonstrations.

    pip install "ringfence[peers]"
    python examples/sb3_penalty.py

A cart is paid for speed and may drive at up to 2 m/s. The demonstrators kept below 0.75 m/s and
never said so. A network learns the constraint that tells them from a driver without one; PPO then
gets its cost as a penalty, through `info["cost"]`, and slows down to the demonstrators' speed.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO

import ringfence as rf

UNSAID_LIMIT = 0.75
SPEED = (rf.Feature("speed", "m/s"),)


class Cart(gymnasium.Env):
    """The action changes the speed by up to 0.2 m/s; the reward is the speed."""

    observation_space = gymnasium.spaces.Box(0.0, 2.0, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self.speed, self.steps = 0.0, 0
        return np.array([self.speed], np.float32), {}

    def step(self, action: np.ndarray):
        self.speed = float(np.clip(self.speed + 0.2 * action[0], 0.0, 2.0))
        self.steps += 1
        seen = np.array([self.speed], np.float32)
        return seen, self.speed, False, self.steps == 50, {"speed": self.speed}


class Penalty(gymnasium.Wrapper):
    """reward - weight * info["cost"]."""

    def __init__(self, env: gymnasium.Env, weight: float) -> None:
        super().__init__(env)
        self.weight = weight

    def step(self, action: np.ndarray):
        seen, reward, terminated, truncated, info = self.env.step(action)
        return seen, float(reward) - self.weight * info["cost"], terminated, truncated, info


def drive(target: float, rng: np.random.Generator) -> rf.Trajectory:
    """An episode of someone who holds a speed, more or less."""
    env, speeds, actions = Cart(), [0.0], []
    env.reset()
    for _ in range(50):
        actions.append(np.clip([(target - speeds[-1]) / 0.2 - 0.3 * rng.random()], -1, 1))
        speeds.append(env.step(actions[-1])[-1]["speed"])
    seen = np.array(speeds)[:, None]
    return rf.Trajectory(seen, np.array(actions), seen[1:, 0], seen[1:], terminated=False)


def learn_constraint() -> rf.MLPConstraint:
    """The game's constraint step: experts against one driver without a limit."""
    rng = np.random.default_rng(0)
    experts = [rf.behaviour_of([drive(UNSAID_LIMIT, rng) for _ in range(20)])]
    learners = [rf.behaviour_of([drive(target, rng) for target in np.linspace(1, 2, 40)])]
    player = rf.MLPRegression(
        SPEED, T=50, seed=(0,), tolerance=0.0, hidden=(32,), learning_rate=3e-3, steps=1500
    )
    return player.update(experts, [learners])


def train_and_watch(constraint: rf.MLPConstraint, weight: float, steps: int) -> rf.Violations:
    """Train PPO with the penalty, then count violations over 20 episodes without it."""
    env = Penalty(rf.ConstraintCost(Cart(), constraint), weight)
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=250,
        batch_size=125,
        n_epochs=8,
        gamma=0.9,
        learning_rate=3e-3,
        policy_kwargs={"net_arch": [32]},
        seed=0,
        device="cpu",
    )
    model.learn(steps)
    watched = rf.Monitor(rf.ConstraintCost(Cart(), constraint), limit=0.5)
    for _ in range(20):
        seen, ended = watched.reset()[0], False
        while not ended:
            action, _ = model.predict(seen, deterministic=True)
            seen, _, terminated, truncated, info = watched.step(action)
            ended = terminated or truncated
    print(f"penalty {weight:g}: final speed {info['speed']:.2f} m/s; {watched.summary()}")
    return watched.violations


def main(steps: int = 4_000) -> tuple[rf.Violations, rf.Violations]:
    torch.set_num_threads(1)  # networks this small only lose time to more
    constraint = learn_constraint()
    speeds = np.linspace(0, 2, 2001)
    allowed = speeds[constraint.raw(speeds[:, None]) <= 0]
    print(f"learned: {constraint.describe()}; it allows speeds up to {allowed.max():.2f} m/s")
    return train_and_watch(constraint, 0.0, steps), train_and_watch(constraint, 20.0, steps)


if __name__ == "__main__":
    main()
