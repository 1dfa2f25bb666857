"""A record of one update, for tests of what is done with records."""

from __future__ import annotations

from ringfence.solvers.ppo import Record


def record(update: int, reward: float | None = 1.0, updates: int = 3, rollout: int = 100) -> Record:
    return Record(
        update=update,
        updates=updates,
        env_steps=rollout * update,
        reward=reward,
        length=None,
        reward_rate=2.0,
        cost=24.6,
        delta=20.0,
        chance=0.5,
        lam=0.5,
        policy_loss=0.0,
        value_loss=0.0,
        std=1.0,
        kl=0.0,
    )
