"""Random policies for continuous tasks, for tests."""

from __future__ import annotations

import numpy as np

from ringfence.worlds.sim.rollouts import choices_of


def policy_for(task, seed: int = 0):
    """A small random policy for a continuous task, or for one of choices."""
    rng, inputs, choices = np.random.default_rng(seed), task.observation_dim + 1, choices_of(task)
    actions = sum(choices) or len(task.action_low)
    acts = np.array(choices) if choices else np.full(actions, -1.0, np.float32)
    return {
        "actor/w0": (0.3 * rng.standard_normal((inputs, 16))).astype(np.float32),
        "actor/b0": np.zeros(16, np.float32),
        "actor/w1": (0.3 * rng.standard_normal((16, actions))).astype(np.float32),
        "actor/b1": np.zeros(actions, np.float32),
        "actor/sizes" if choices else "actor/log_std": acts,
        "norm/mean": np.zeros(inputs),
        "norm/std": np.ones(inputs),
    }
