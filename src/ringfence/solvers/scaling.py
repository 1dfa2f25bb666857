"""The units of a network's inputs and outputs, which follow the data.

Inputs are normalised by running statistics, and the critic predicts in units of its targets. Where
these move, one layer changes so that nothing that the network says does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ringfence.objects import Array, Start
from ringfence.solvers.networks import Params
from ringfence.worlds.sim.rollouts import OBSERVATION_CLIP

#: An input that hardly varies is not blown up beyond this.
SMALLEST_STD = 1e-2


# Inputs ----------------------------------------------------------------------------------------


def normalised(inputs: Array, mean: Array, std: Array) -> NDArray[np.float32]:
    """Inputs [..., o + 1] as networks take them."""
    cut = np.clip((inputs - mean) / std, -OBSERVATION_CLIP, OBSERVATION_CLIP)
    return cast(NDArray[np.float32], cut.astype(np.float32))


@dataclass(frozen=True, eq=False)
class Statistics:
    """Running mean and variance of the inputs [o + 1]; `count` inputs so far."""

    mean: Array
    var: Array
    count: float = 0.0

    @classmethod
    def begin(cls, start: Start, inputs: int) -> Statistics:
        """Those of the policy that a solve starts from, or none."""
        if "norm/mean" not in start:
            return cls(np.zeros(inputs), np.ones(inputs))
        mean, std = start["norm/mean"].astype(np.float64), start["norm/std"].astype(np.float64)
        return cls(mean, std**2, float(start.get("norm/count", np.array(0.0))))

    def add(self, inputs: Array) -> Statistics:
        """With the inputs [..., o + 1] of a rollout."""
        x = inputs.reshape(-1, inputs.shape[-1])
        mean, var, n = x.mean(axis=0), x.var(axis=0), float(len(x))
        total = self.count + n
        shift = mean - self.mean
        spread = self.var * self.count + var * n + shift**2 * self.count * n / total
        return Statistics(self.mean + shift * n / total, spread / total, total)

    @property
    def std(self) -> Array:
        return np.maximum(np.sqrt(self.var), SMALLEST_STD)


def same_outputs(params: Params, old: Statistics, new: Statistics) -> Params:
    """A network for inputs normalised by `new`: its first layer changes so that no output does.

    w0 (x - m) / s + b0 = w0' (x - m') / s' + b0' with w0' = w0 s' / s and
    b0' = b0 + w0 (m' - m) / s: exact but for the cut-off of far inputs.
    """
    w0, b0 = (np.asarray(params[name], np.float64) for name in ("w0", "b0"))
    return {
        **params,
        "w0": (w0 * (new.std / old.std)[:, None]).astype(np.float32),
        "b0": (b0 + ((new.mean - old.mean) / old.std) @ w0).astype(np.float32),
    }


# The critic's outputs (PopArt, van Hasselt et al. 2016) ----------------------------------------


def rescaled(scale: jax.Array, targets: jax.Array, share: jax.Array) -> jax.Array:
    """scale [2, k], the running (mean, std) of targets [T, N, k], moved by `share`.

    A share of 1 leaves nothing of the old, so that the first units are the first targets'. There is
    no smallest std, which would be a unit: what never varied has 0.
    """
    mean = (1 - share) * scale[0] + share * targets.mean(axis=(0, 1))
    var = (1 - share) * scale[1] ** 2 + share * jnp.square(targets - mean).mean(axis=(0, 1))
    return jnp.stack([mean, jnp.sqrt(var)])


def divided(x: jax.Array, size: jax.Array) -> jax.Array:
    """x / size, and 0 where there is no size."""
    return jnp.where(size > 0, x / jnp.where(size > 0, size, 1.0), 0.0)


def same_values(critic: Params, old: jax.Array, new: jax.Array) -> Params:
    """The critic in the units of scale `new`: its last layer changes so that no value does."""
    last = sum(key.startswith("w") for key in critic) - 1
    w, b = critic[f"w{last}"], critic[f"b{last}"]
    return {
        **critic,
        f"w{last}": divided(w * old[1], new[1]),
        f"b{last}": divided(b * old[1] + old[0] - new[0], new[1]),
    }
