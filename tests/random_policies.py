"""Random policies for continuous tasks, for tests."""

from __future__ import annotations

import numpy as np


def policy_for(task, seed: int = 0):
    """A small random policy for a continuous task."""
    rng, inputs, actions = (
        np.random.default_rng(seed),
        task.observation_dim + 1,
        len(task.action_low),
    )
    return {
        "actor/w0": (0.3 * rng.standard_normal((inputs, 16))).astype(np.float32),
        "actor/b0": np.zeros(16, np.float32),
        "actor/w1": (0.3 * rng.standard_normal((16, actions))).astype(np.float32),
        "actor/b1": np.zeros(actions, np.float32),
        "actor/log_std": np.full(actions, -1.0, np.float32),
        "norm/mean": np.zeros(inputs),
        "norm/std": np.ones(inputs),
    }
