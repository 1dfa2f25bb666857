"""Behaviour cloning: the actor that a solve starts from.

The paper warm-starts the policy of every iteration from the demonstrations, with the augmented
input (the raw constraint value) zeroed, so that nothing of the expert's constraint leaks in. The
demonstrations are read, never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import Trajectory
from ringfence.solvers.networks import Params, initial_params, log_prob, network
from ringfence.solvers.ppo import PPOConfig
from ringfence.solvers.scaling import SMALLEST_STD, Statistics, normalised, same_outputs
from ringfence.worlds.sim.rollouts import Arrays, ContinuousTask, choices_of, from_environment

CLONING = 20  # its stream of random numbers
#: Less noise than this finds nothing new, more (that of a noisy expert) does not walk.
LOG_STD = (-2.0, -1.0)


@dataclass(frozen=True)
class CloningConfig:
    """`steps` minibatches of `batch` transitions.

    log_std is the noise that PPO starts with; None: the demonstrator's own, as far as it lies
    within LOG_STD. On 20 episodes of a velocity expert that earns 1666, the clone earns 1477
    with the expert's noise (-2) and 21 with -0.7 (MuJoCo, seed 0).
    """

    steps: int = 5_000
    batch: int = 128
    learning_rate: float = 1e-3
    hidden: tuple[int, ...] = (128, 128)
    log_std: float | None = -0.7

    def __post_init__(self) -> None:
        for name, least in (("steps", 0), ("batch", 1)):
            if getattr(self, name) < least:
                raise InvalidInput(
                    f"cloning: {name} must be at least {least}, got {getattr(self, name)}"
                )
        if not 0 < self.learning_rate < np.inf:
            raise InvalidInput(f"cloning: learning_rate must be above 0, got {self.learning_rate}")


def clone(
    demonstrations: Sequence[Trajectory],
    task: ContinuousTask,
    seed: tuple[int, ...],
    config: CloningConfig | None = None,
) -> dict[str, NDArray[Any]]:
    """The arrays of a cloned actor and its normalisation, to be a problem's `start`.

    Minimises the squared error of the mean action on (observation, 0); of choices, their mean
    negative log probability.
    """
    config, choices = config or CloningConfig(), choices_of(task)
    x, actions = transitions(demonstrations, task)
    mean, std = x.mean(axis=0), np.maximum(x.std(axis=0), SMALLEST_STD)
    mean[-1], std[-1] = 0.0, 1.0  # the zeroed input's spread says nothing
    scaled = normalised(x, mean, std)
    rng = np.random.default_rng([*seed, CLONING])
    begin = (config.hidden, config.log_std or 0.0, PPOConfig.last_layer_scale)
    actor = initial_params(x.shape[1], actions.shape[1], *begin, rng, choices=choices)["actor"]
    log_std = actor.pop("log_std", None)
    # Demonstrations say nothing about the zeroed input. It is tens of metres under a position
    # constraint, so with its random first weights the clone would not behave like one.
    actor["w0"][-1] = 0.0
    order = rng.integers(len(x), size=(config.steps, config.batch)).astype(np.int32)
    taken = actions.astype(np.float32)
    fitted = _fit(actor, scaled, taken, order, config.learning_rate, choices)
    if not all(np.isfinite(np.asarray(v)).all() for v in fitted.values()):
        raise InvalidInput("cloning did not stay finite: look at the demonstrations' values")
    if config.log_std is None and not choices:
        log_std = spread(fitted, scaled, actions)
    return {
        **{f"actor/{k}": np.asarray(v) for k, v in fitted.items()},
        **({"actor/sizes": np.array(choices)} if choices else {"actor/log_std": log_std}),
        "norm/mean": mean,
        "norm/std": std,
        "norm/count": np.array(float(len(x))),
    }


def spread(actor: Params, x: NDArray[Any], actions: NDArray[Any]) -> NDArray[np.float32]:
    """log of the actions' standard deviation around the actor's means, per action [a]."""
    error = np.sqrt(np.square(np.asarray(network(actor, jnp.asarray(x))) - actions).mean(axis=0))
    log_std: NDArray[np.float32] = np.clip(np.log(error + 1e-9), *LOG_STD).astype(np.float32)
    return log_std


def renormalised(start: Arrays, mean: NDArray[Any], std: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The same actor for inputs that are normalised by `mean` and `std` [o + 1]."""
    old, new = Statistics(start["norm/mean"], start["norm/std"] ** 2), Statistics(mean, std**2)
    actor = same_outputs({k: start[f"actor/{k}"] for k in ("w0", "b0")}, old, new)
    moved = {f"actor/{name}": values for name, values in actor.items()}
    return {**start, **moved, "norm/mean": mean, "norm/std": std}


def transitions(
    demonstrations: Sequence[Trajectory], task: ContinuousTask
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Inputs [n, o + 1] with a zero in the last column, and actions [n, a] in [-1, 1], or the
    numbers of choices."""
    if not demonstrations:
        raise InvalidInput("cloning needs at least one demonstration")
    for i, t in enumerate(demonstrations):
        if (t.observations.shape[1], t.actions.shape[1]) != (
            task.observation_dim,
            len(task.action_low),
        ):
            raise InvalidInput(
                f"demonstration {i} has observations {t.observations.shape} and actions "
                f"{t.actions.shape}: not those of {task.name}"
            )
    seen = np.concatenate([t.observations[:-1] for t in demonstrations])
    taken = np.concatenate([t.actions for t in demonstrations])
    inputs = np.column_stack([seen, np.zeros(len(seen))])
    if choices_of(task):
        return inputs, taken - task.action_low
    return inputs, from_environment(taken, task.action_low, task.action_high)


@partial(jax.jit, static_argnums=(4, 5))
def _fit(
    actor: Params,
    x: jax.Array,
    actions: jax.Array,
    order: jax.Array,
    rate: float,
    choices: tuple[int, ...],
) -> Params:
    """Adam with a rate that falls to 0, over minibatches order [steps, batch]."""
    adam = optax.adam(optax.linear_schedule(rate, 0.0, len(order)))

    def step(carry: tuple[Params, Any], rows: jax.Array) -> tuple[tuple[Params, Any], None]:
        params, state = carry

        def loss(p: Params) -> jax.Array:
            if choices:
                return -log_prob(p, x[rows], actions[rows], choices).mean()
            return jnp.square(network(p, x[rows]) - actions[rows]).mean()

        updates, state = adam.update(jax.grad(loss)(params), state)
        return (optax.apply_updates(params, updates), state), None

    (actor, _), _ = jax.lax.scan(step, (actor, adam.init(actor)), order)
    return actor
