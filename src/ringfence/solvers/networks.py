"""The policy's and the critic's networks, and the statistics that scale their inputs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ringfence.objects import Array
from ringfence.solvers.ppo_config import PPOConfig

Params = dict[str, Any]

#: An input that hardly varies is not blown up beyond this.
SMALLEST_STD = 1e-2


def initial_params(
    inputs: int, actions: int, config: PPOConfig, rng: np.random.Generator
) -> dict[str, dict[str, NDArray[np.float32]]]:
    """Two tanh networks with orthogonal weights: the actor, and the critic (V_r, V_c)."""
    params = {
        "actor": _network([inputs, *config.hidden, actions], config.last_layer_scale, rng),
        "critic": _network([inputs, *config.hidden, 2], 1.0, rng),
    }
    params["actor"]["log_std"] = np.full(actions, config.initial_log_std, np.float32)
    return params


def _network(
    sizes: list[int], last_scale: float, rng: np.random.Generator
) -> dict[str, NDArray[np.float32]]:
    arrays = {}
    for i, (n, m) in enumerate(pairwise(sizes)):
        gain = last_scale if i == len(sizes) - 2 else np.sqrt(2)
        q, r = np.linalg.qr(rng.standard_normal((max(n, m), min(n, m))))
        q = q * np.sign(np.diag(r))
        arrays[f"w{i}"] = (gain * (q if n >= m else q.T)).astype(np.float32)
        arrays[f"b{i}"] = np.zeros(m, np.float32)
    return arrays


def network(params: Params, x: jax.Array) -> jax.Array:
    """x [n, inputs] -> [n, outputs]."""
    depth = sum(key.startswith("w") for key in params)
    for i in range(depth - 1):
        x = jnp.tanh(x @ params[f"w{i}"] + params[f"b{i}"])
    return cast(jax.Array, x @ params[f"w{depth - 1}"] + params[f"b{depth - 1}"])


def log_prob(params: Params, x: jax.Array, actions: jax.Array) -> jax.Array:
    """log pi(actions | x) of the Gaussian policy: x [n, inputs], actions [n, a] -> [n]."""
    log_std = params["log_std"]
    z = (actions - network(params, x)) * jnp.exp(-log_std)
    constant = log_std.sum() + 0.5 * log_std.size * jnp.log(2 * jnp.pi)
    return cast(jax.Array, -0.5 * jnp.square(z).sum(axis=-1) - constant)


@dataclass(frozen=True, eq=False)
class Statistics:
    """Running mean and variance of the inputs [o + 1]; `count` inputs so far."""

    mean: Array
    var: Array
    count: float = 0.0

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
