"""The actor's and the critic's networks, and how a network is fitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

Params = dict[str, Any]
Rows = dict[str, jax.Array]


def initial_params(
    inputs: int,
    actions: int,
    hidden: Sequence[int],
    log_std: float,
    last_scale: float,
    rng: np.random.Generator,
    *,
    choices: Sequence[int] = (),
    values: int = 2,
) -> dict[str, dict[str, NDArray[np.float32]]]:
    """Two tanh networks with orthogonal weights: the actor, and the critic of so many values.

    choices: where actions are discrete, their numbers of values; the actor then ends in logits.
    """
    params = {
        "actor": _network([inputs, *hidden, sum(choices) or actions], last_scale, rng),
        "critic": _network([inputs, *hidden, values], 0.0, rng),
    }
    if not choices:
        params["actor"]["log_std"] = np.full(actions, log_std, np.float32)
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


def log_prob(
    params: Params, x: jax.Array, actions: jax.Array, choices: Sequence[int] = ()
) -> jax.Array:
    """log pi(actions | x): x [n, inputs], actions [n, a] -> [n]."""
    outputs = network(params, x)
    if choices:
        taken = actions.astype(jnp.int32)
        parts = jnp.split(outputs, np.cumsum(choices)[:-1], axis=1)
        each = [
            jnp.take_along_axis(jax.nn.log_softmax(part), taken[:, a : a + 1], axis=1)[:, 0]
            for a, part in enumerate(parts)
        ]
        return cast(jax.Array, sum(each))
    log_std = params["log_std"]
    z = (actions - outputs) * jnp.exp(-log_std)
    constant = log_std.sum() + 0.5 * log_std.size * jnp.log(2 * jnp.pi)
    return cast(jax.Array, -0.5 * jnp.square(z).sum(axis=-1) - constant)


#: What the optimiser's state is made of.
OPTIMISER_STATES = (optax.EmptyState, optax.ScaleByAdamState)


def optimiser(gradient_clip: float) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(gradient_clip), optax.scale_by_adam(eps=1e-5))


class Descended(NamedTuple):
    """The new parameters, with the mean loss and the largest norm of a gradient on the way."""

    params: Params
    opt_state: Any
    loss: jax.Array
    norm: jax.Array


@partial(jax.jit, static_argnames=("loss", "settings", "gradient_clip"))
def descend(
    loss: Callable[..., jax.Array],
    settings: tuple[float, ...],
    params: Params,
    opt_state: Any,
    rows: Rows,
    rate: jax.Array,
    order: jax.Array,
    gradient_clip: float,
) -> Descended:
    """Adam on loss(params, rows, *settings) over minibatches; order [minibatches, batch]: rows."""
    adam = optimiser(gradient_clip)

    def minibatch(carry: tuple[Params, Any], index: jax.Array) -> tuple[Any, Any]:
        params, opt_state = carry
        d = {name: values[index] for name, values in rows.items()}
        value, gradients = jax.value_and_grad(loss)(params, d, *settings)
        step, opt_state = adam.update(gradients, opt_state)
        params = jax.tree.map(lambda p, s: p - rate * s, params, step)
        return (params, opt_state), (value, optax.tree.norm(gradients))

    (params, opt_state), (values, norms) = jax.lax.scan(minibatch, (params, opt_state), order)
    return Descended(params, opt_state, values.mean(), norms.max())
