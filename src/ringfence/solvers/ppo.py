"""Constrained RL on continuous tasks: PPO against a PID-controlled Lagrange multiplier.

The paper's policy player (Algorithm 1 with a PID step for lam), to be read from top to bottom:
configuration, multiplier, networks, advantages, the compiled update, the loop, checkpoints. Per
rollout k:

    chunk_k  <- T steps of N copies under pi
    J        <- horizon * mean step cost of chunk_k        (an episode's cost)
    lam      <- PID(J - delta)
    A        <- (A_reward - lam * A_cost) / (1 + lam), normalised
    pi, V_r, V_c <- clipped PPO steps and value regression on minibatches

A policy sees the observation and, as its last input, the raw constraint value of the transition
before. Nothing here prints, logs or times; a solve reports `Record`s to whoever asks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Array, Problem, Solution, Start, Trajectory, behaviour_of
from ringfence.solvers import checkpoints
from ringfence.worlds.rollout_checks import check_finite, check_task
from ringfence.worlds.rollouts import (
    OBSERVATION_CLIP,
    Arrays,
    Chunk,
    Collector,
    CollectorSpec,
    ContinuousTask,
)

#: Streams of random numbers, beside the collector's.
INITIAL, MINIBATCHES, EVALUATE = 10, 11, 12
#: Bytes of a checkpoint mean the same only within one schema.
SCHEMA = 4

Params = dict[str, Any]


# Configuration ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class PPOConfig:
    """The paper's table, except where a measurement (said beside it) chose otherwise."""

    env_steps: int = 1_000_000
    learning_rate: float = 3e-4
    value_weight: float = 0.25
    clip: float = 0.2
    gae: float = 0.97
    discount: float = 0.99
    batch: int = 512
    hidden: tuple[int, ...] = (128, 128)
    # 64 Ants x 64 steps and 8 passes: 1M unconstrained steps gave a prototype 4874; the paper's
    # 20k and 4 gave 963, which is standing still.
    copies: int = 64
    steps: int = 64
    passes: int = 8
    # The paper's code clips all gradients together at 0.02; 0.5 per network learns faster.
    gradient_clip: float = 0.5
    # From 0 the Ant never walks. Less noise leaves more of a limit to the policy: speed <= 0.75,
    # seed 0, gave 1671 from -1.3 and 1630 from -0.7 (deterministic, limit 20).
    initial_log_std: float = -1.3
    last_layer_scale: float = 0.01
    entropy_weight: float = 0.0
    normalise: bool = True  # of observations; without it a third of the reward
    augment: bool = True  # the raw constraint value as the policy's last input
    # The multiplier: PID gains as in the paper, or classical gradient ascent.
    multiplier: Literal["pid", "gradient"] = "pid"
    gain_p: float = 0.05
    gain_i: float = 0.001  # the paper's is 0.0005: too slow to reach the limit in 1M steps
    gain_d: float = 0.1
    gradient_rate: float = 0.0005
    # Anti-windup: errors beyond this many units of cost count as this many, and are not
    # integrated. Without it the position constraint wound a prototype's lam up to 15, and the
    # Ant learned to fall.
    error_clip: float = 30.0
    # The controller sees a running mean of the cost: one rollout's jumps by its own size, and
    # the derivative part turned that into a lam between 1 and 4 from rollout to rollout.
    cost_share: float = 0.2
    initial_lam: float = 0.0
    # For this share of the updates lam rests at 0. A constraint that the first steps break keeps
    # a policy from ever learning to walk; one that walks learns to walk elsewhere.
    grace: float = 0.0
    # The controller aims at (1 - margin) * delta: it comes to its target from above, while the
    # limit should hold for the policy that is handed out.
    margin: float = 0.15
    # Stop once the mean of `stop_window` rollouts has reward >= stop_reward and cost <= delta.
    stop_reward: float | None = None
    stop_window: int = 20
    # Hand out not the last policy, but the one after the best `stop_window` rollouts that kept to
    # the controller's target: where rare episodes cost much, the cost comes in waves.
    keep_best: bool = False
    # That window ends so many updates after the policy: where the cost comes late in an episode,
    # the rollouts before a policy still show the policies before it (Bullet's position expert,
    # judged by rollouts of 4 to 30 and rising, cost 44).
    keep_lag: int = 0
    # A solve that begins at an actor without a critic (a clone) first learns the critic, for this
    # many updates: what an untrained one says of the actions would unlearn the walk.
    critic_first: int = 5
    start_share: float = 0.0  # of episodes that begin at a demonstration's state
    evaluation_episodes: int = 32
    checkpoint_every: int = 50  # updates

    def __post_init__(self) -> None:
        counts = ("env_steps", "batch", "copies", "steps", "passes", "evaluation_episodes")
        for name in (*counts, "checkpoint_every", "stop_window"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"PPO: {name} must be at least 1, got {getattr(self, name)}")
        for name in ("margin", "grace"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidInput(f"PPO: {name} must be in [0, 1), got {getattr(self, name)}")
        if self.keep_lag < 0:
            raise InvalidInput(f"PPO: keep_lag must be at least 0, got {self.keep_lag}")
        if self.rollout % self.batch:
            raise InvalidInput(
                f"PPO: a rollout of {self.copies} copies x {self.steps} steps is not a multiple "
                f"of the batch size {self.batch}"
            )

    @property
    def rollout(self) -> int:
        return self.copies * self.steps

    @property
    def updates(self) -> int:
        return max(1, self.env_steps // self.rollout)


@dataclass(frozen=True)
class Record:
    """One update. Reward and length: means over the episodes that ended in it, None if none did.

    `cost` is an episode's, estimated as horizon * mean step cost; `reward_rate` likewise.
    """

    update: int
    updates: int
    env_steps: int
    reward: float | None
    length: float | None
    reward_rate: float
    cost: float
    delta: float
    lam: float
    policy_loss: float
    value_loss: float
    std: float


@dataclass(frozen=True, eq=False)
class Result:
    """A solution with the evaluation episodes behind it, and its course."""

    solution: Solution
    stochastic: list[Trajectory]
    deterministic: list[Trajectory]
    records: list[Record]
    handed_out: int  # the update after which the policy was this one


# The multiplier --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Multiplier:
    """lam and the controller's memory: the error's integral and the smoothed cost."""

    lam: float = 0.0
    integral: float = 0.0
    cost: float | None = None


def next_multiplier(m: Multiplier, J: float, delta: float, config: PPOConfig) -> Multiplier:
    """One step of the multiplier on an episode's cost J (PID: Stooke et al. 2020, Algorithm 2)."""
    last = J if m.cost is None else m.cost
    cost = last + config.cost_share * (J - last)
    target = (1 - config.margin) * delta
    if config.multiplier == "gradient":
        lam = max(0.0, m.lam + config.gradient_rate * (J - target))
        return Multiplier(lam, integral=lam, cost=cost)
    error, bound = cost - target, config.error_clip
    # Conditional integration: far from the limit the proportional part is enough.
    near = abs(error) <= bound
    integral = max(0.0, m.integral + config.gain_i * error) if near else m.integral
    rise = min(max(0.0, cost - last), bound)
    lam = config.gain_p * float(np.clip(error, -bound, bound)) + integral + config.gain_d * rise
    return Multiplier(max(0.0, lam), integral, cost)


# Networks --------------------------------------------------------------------------------------


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


# Advantages ------------------------------------------------------------------------------------


def advantages(
    r: jax.Array, V: jax.Array, V_next: jax.Array, ended: jax.Array, discount: float, gae: float
) -> jax.Array:
    """Generalised advantage estimates; all [T, ...].

    V_next is the value after each step (0 after a fall); `ended` cuts the sum at an episode's
    last step.
    """
    errors = r + discount * V_next - V

    def back(ahead: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        error, end = step
        now = error + discount * gae * jnp.where(end, 0.0, ahead)
        return now, now

    _, A = jax.lax.scan(back, jnp.zeros_like(r[0]), (errors, ended), reverse=True)
    return A


# The update ------------------------------------------------------------------------------------


def optimiser(gradient_clip: float) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(gradient_clip), optax.scale_by_adam(eps=1e-5))


@partial(jax.jit, static_argnames="config")
def estimates(
    config: PPOConfig,
    critic: Params,
    scale: jax.Array,
    share: jax.Array,
    data: dict[str, jax.Array],
    lam: jax.Array,
) -> tuple[dict[str, jax.Array], dict[str, jax.Array], Params, jax.Array]:
    """What actor and critic learn from, row by row [T * N, ...], and the critic in new units.

    data as from `prepare`; scale [2, 2] = (mean, std) x (reward, cost) of the critic's targets:
    the units it predicts in, which follow the targets by `share`.
    """

    def value(x: jax.Array) -> jax.Array:
        return network(critic, x) * scale[1] + scale[0]

    fallen, ended = data["terminated"], data["terminated"] | data["truncated"]
    t, n = data["final_at"][:, 0], data["final_at"][:, 1]
    V = value(data["x"])
    V_next = jnp.concatenate([V[1:], value(data["last_x"])[None]])
    V_next = V_next.at[t, n].set(value(data["final_x"]), mode="drop")
    V_next = jnp.where(fallen[..., None], 0.0, V_next)
    A = advantages(data["signals"], V, V_next, ended[..., None], config.discount, config.gae)
    targets = A + V
    # Mixed in the units of reward and cost, then normalised (1687 against 1611 when each is
    # normalised apart).
    mixed = (A[..., 0] - lam * A[..., 1]) / (1 + lam)
    mixed = (mixed - mixed.mean()) / (mixed.std() + 1e-8)
    x, new = _flat(data["x"]), rescaled(scale, targets, share)
    for_actor = {"x": x, "A": _flat(mixed)}
    for_actor |= {k: _flat(data[k]) for k in ("actions", "log_probs")}
    for_critic = {"x": x, "targets": _flat((targets - new[0]) / new[1])}
    return for_actor, for_critic, same_values(critic, scale, new), new


def rescaled(scale: jax.Array, targets: jax.Array, share: jax.Array) -> jax.Array:
    """The running mean and standard deviation of targets [T, N, 2], moved by `share`."""
    mean = scale[0] + share * (targets.mean(axis=(0, 1)) - scale[0])
    var = scale[1] ** 2 + share * (jnp.square(targets - mean).mean(axis=(0, 1)) - scale[1] ** 2)
    return jnp.stack([mean, jnp.maximum(jnp.sqrt(var), SMALLEST_VALUE_STD)])


def same_values(critic: Params, old: jax.Array, new: jax.Array) -> Params:
    """The critic in new units: its last layer changes so that no value does.

    (PopArt, van Hasselt et al. 2016. Unconstrained, 1M steps, seed 0: 4681 against 3950 for
    two critics of fixed units.)
    """
    last = sum(key.startswith("w") for key in critic) - 1
    w, b = critic[f"w{last}"], critic[f"b{last}"]
    return {
        **critic,
        f"w{last}": w * old[1] / new[1],
        f"b{last}": (b * old[1] + old[0] - new[0]) / new[1],
    }


Descended = tuple[Params, Params, jax.Array, jax.Array]


@partial(jax.jit, static_argnames="config")
def improve_actor(
    config: PPOConfig,
    params: Params,
    opt_state: Params,
    rows: dict[str, jax.Array],
    rate: jax.Array,
    order: jax.Array,
) -> Descended:
    """Clipped PPO steps."""

    def loss(params: Params, d: dict[str, jax.Array]) -> jax.Array:
        ratio = jnp.exp(log_prob(params, d["x"], d["actions"]) - d["log_probs"])
        clipped = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)
        gain = jnp.minimum(ratio * d["A"], clipped * d["A"]).mean()
        entropy: jax.Array = params["log_std"].sum()  # up to a constant
        return -gain - config.entropy_weight * entropy

    return descend(loss, params, opt_state, rows, rate, order, config)


@partial(jax.jit, static_argnames="config")
def fit_critic(
    config: PPOConfig,
    params: Params,
    opt_state: Params,
    rows: dict[str, jax.Array],
    rate: jax.Array,
    order: jax.Array,
) -> Descended:
    """Regression of both values to their targets."""

    def loss(params: Params, d: dict[str, jax.Array]) -> jax.Array:
        errors = jnp.square(network(params, d["x"]) - d["targets"])
        return config.value_weight * errors.sum(axis=1).mean()

    return descend(loss, params, opt_state, rows, rate, order, config)


def descend(
    loss: Callable[[Params, dict[str, jax.Array]], jax.Array],
    params: Params,
    opt_state: Params,
    rows: dict[str, jax.Array],
    rate: jax.Array,
    order: jax.Array,
    config: PPOConfig,
) -> Descended:
    """Adam over minibatches, order [minibatches, batch] their rows -> also mean loss, max norm."""
    adam = optimiser(config.gradient_clip)

    def minibatch(
        carry: tuple[Params, Params], index: jax.Array
    ) -> tuple[tuple[Params, Params], tuple[jax.Array, jax.Array]]:
        params, opt_state = carry
        d = {name: values[index] for name, values in rows.items()}
        value, gradients = jax.value_and_grad(loss)(params, d)
        step, opt_state = adam.update(gradients, opt_state)
        params = jax.tree.map(lambda p, s: p - rate * s, params, step)
        return (params, opt_state), (value, optax.tree.norm(gradients))

    (params, opt_state), (values, norms) = jax.lax.scan(minibatch, (params, opt_state), order)
    return params, opt_state, values.mean(), norms.max()


def _flat(x: jax.Array) -> jax.Array:
    return x.reshape(-1, *x.shape[2:])


def prepare(chunk: Chunk, cost: Array, policy: Arrays, horizon: int) -> dict[str, Any]:
    """A chunk as the update takes it: float32, inputs normalised as when they were acted on."""

    def scaled(inputs: Array) -> NDArray[np.float32]:
        z = (inputs - policy["norm/mean"]) / policy["norm/std"]
        cut = np.clip(z, -OBSERVATION_CLIP, OBSERVATION_CLIP)
        return cast(NDArray[np.float32], cut.astype(np.float32))

    T, N = chunk.rewards.shape
    # The most episodes that the horizon can cut in T steps: a fixed shape, compiled once. An
    # environment that cuts its own may need more.
    room = N * (T // horizon + 1)
    while room < len(chunk.final_at):
        room *= 2
    final_x = np.zeros((room, chunk.inputs.shape[-1]), np.float32)
    final_at = np.full((room, 2), T)  # beyond the end: ignored
    final_x[: len(chunk.final_at)] = scaled(chunk.final_inputs)
    final_at[: len(chunk.final_at)] = chunk.final_at
    return {
        "x": scaled(chunk.inputs),
        "last_x": scaled(chunk.last_inputs),
        "final_x": final_x,
        "final_at": final_at,
        "actions": chunk.actions,
        "log_probs": chunk.log_probs,
        "signals": np.stack([chunk.rewards, cost], axis=-1).astype(np.float32),
        "terminated": chunk.terminated,
        "truncated": chunk.truncated,
    }


# Observation statistics ------------------------------------------------------------------------


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


#: How far the critic's units follow each rollout's targets.
SCALE_SHARE = 0.05
#: Targets that hardly vary (a cost that is nearly always 0) are not blown up beyond this.
SMALLEST_VALUE_STD = 0.1
#: An input that hardly varies is not blown up beyond this.
SMALLEST_STD = 1e-2


# The learner's state ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Kept:
    """A policy that may be handed out, its update, and what an episode earned (0 until judged)."""

    policy: dict[str, NDArray[Any]]
    update: int
    reward: float = 0.0


@dataclass(frozen=True, eq=False)
class Learner:
    """Everything that an update changes."""

    params: Params
    opt_state: Params
    scale: NDArray[np.float32]  # [2, 2]: mean and std of the critic's targets (reward, cost)
    statistics: Statistics
    multiplier: Multiplier
    recent: tuple[tuple[float, float, float], ...] = ()  # (reward, cost, falls) per horizon
    kept: Kept | None = None  # the best so far
    candidate: Kept | None = None  # to be judged by rollouts that are to come
    updates: int = 0

    def policy(self) -> dict[str, NDArray[Any]]:
        """The arrays that act, and those that a later solve may start from."""
        flat: dict[str, NDArray[Any]] = {
            f"{name}/{key}": np.asarray(value)
            for name, arrays in self.params.items()
            for key, value in arrays.items()
        }
        return {
            **flat,
            "critic/scale": np.asarray(self.scale),
            "norm/mean": self.statistics.mean,
            "norm/std": self.statistics.std,
            "norm/count": np.array(self.statistics.count),
            "multiplier/integral": np.array(self.multiplier.integral),
        }


def first_learner(problem: Problem, task: ContinuousTask, config: PPOConfig) -> Learner:
    """Fresh networks, or those of `problem.start` where it has them."""
    inputs, actions = task.observation_dim + 1, len(task.action_low)
    rng = np.random.default_rng([*problem.seed, INITIAL])
    params = initial_params(inputs, actions, config, rng)
    statistics = Statistics(np.zeros(inputs), np.ones(inputs))
    start = problem.start or {}
    for name, arrays in params.items():
        for key, fresh in arrays.items():
            given = start.get(f"{name}/{key}", fresh)
            if given.shape != fresh.shape:
                raise InvalidInput(
                    f"PPO: the start's {name}/{key} has shape {given.shape}, not {fresh.shape}"
                )
            arrays[key] = given.astype(np.float32)
    if "norm/mean" in start:
        mean, std = start["norm/mean"].astype(np.float64), start["norm/std"].astype(np.float64)
        statistics = Statistics(mean, std**2, float(start.get("norm/count", np.array(0.0))))
    adam = optimiser(config.gradient_clip)
    opt_state = {name: adam.init(cast(Any, arrays)) for name, arrays in params.items()}
    scale = np.array([[0.0, 0.0], [1.0, 1.0]], np.float32)
    scale = start.get("critic/scale", scale).astype(np.float32)
    lam = float(start.get("multiplier/integral", config.initial_lam))
    return Learner(params, opt_state, scale, statistics, Multiplier(lam, integral=lam))


def has_actor_alone(start: Start | None) -> bool:
    return start is not None and "actor/w0" in start and "critic/w0" not in start


def learn(
    learner: Learner, chunk: Chunk, acted: Arrays, problem: Problem, config: PPOConfig
) -> tuple[Learner, Record]:
    """One update: `acted` is the policy that gathered the chunk."""
    task = cast(ContinuousTask, problem.task)
    step = learner.updates * config.rollout
    cost = problem.constraint.cost(chunk.features.reshape(-1, chunk.features.shape[-1]))
    cost = cost.reshape(chunk.rewards.shape)
    check_finite(chunk, cost, step)
    J = task.horizon * float(cost.mean())
    multiplier = Multiplier()
    if learner.updates >= config.grace * config.updates:
        multiplier = next_multiplier(learner.multiplier, J, problem.delta, config)
    if not np.isfinite(multiplier.lam):
        raise SolverFailed(f"the multiplier is {multiplier.lam} at environment step {step}")

    rng = np.random.default_rng([*problem.seed, MINIBATCHES, learner.updates])
    order = np.concatenate([rng.permutation(config.rollout) for _ in range(config.passes)])
    order = order.reshape(-1, config.batch).astype(np.int32)
    rate = np.float32(config.learning_rate)
    fixed = update_part(config)
    for_actor, for_critic, critic, scale = estimates(
        fixed,
        learner.params["critic"],
        learner.scale,
        np.float32(max(1 / (learner.updates + 1), SCALE_SHARE)),
        prepare(chunk, cost, acted, task.horizon),
        np.float32(multiplier.lam),
    )
    # Actor and critic have nothing to do with each other here: one core each.
    actor, opt = learner.params["actor"], learner.opt_state
    with ThreadPoolExecutor(max_workers=1) as beside:
        job = beside.submit(improve_actor, fixed, actor, opt["actor"], for_actor, rate, order)
        fitted = fit_critic(fixed, critic, opt["critic"], for_critic, rate, order)
        improved = job.result()
    if learner.updates < config.critic_first and has_actor_alone(problem.start):
        improved = (actor, opt["actor"], *improved[2:])
    both = {"actor": improved, "critic": fitted}
    for name, (*_, norm) in both.items():
        if not np.isfinite(norm):
            raise SolverFailed(
                f"the gradient of the {name} is {norm} in the update after environment step "
                f"{step + config.rollout}: training stopped"
            )
    reward_rate = task.horizon * float(chunk.rewards.mean())
    falls = task.horizon * float(chunk.terminated.mean())
    params = {name: params for name, (params, *_) in both.items()}
    statistics = learner.statistics
    if config.normalise:
        statistics = statistics.add(chunk.inputs)
    # A given policy shall not act otherwise because the inputs' statistics move: within 66,000
    # steps a clone that earned 1630 came down to 740 (Bullet; 1448 without such moves).
    if problem.start is not None:
        params = {k: same_outputs(v, learner.statistics, statistics) for k, v in params.items()}
    following = Learner(
        params,
        {name: state for name, (_, state, *_) in both.items()},
        np.asarray(scale),
        statistics,
        multiplier,
        (*learner.recent, (reward_rate, J, falls))[-config.stop_window :],
        learner.kept,
        learner.candidate,
        learner.updates + 1,
    )
    if config.keep_best:
        following = judge(following, problem.delta, config)
    record = Record(
        update=following.updates,
        updates=config.updates,
        env_steps=following.updates * config.rollout,
        reward=float(chunk.returns.mean()) if len(chunk.returns) else None,
        length=float(chunk.lengths.mean()) if len(chunk.lengths) else None,
        reward_rate=reward_rate,
        cost=J,
        delta=problem.delta,
        lam=multiplier.lam,
        policy_loss=float(improved[2]),
        value_loss=float(fitted[2]),
        std=float(np.exp(np.asarray(improved[0]["log_std"])).mean()),
    )
    return following, record


#: What of a configuration the compiled update depends on.
_COMPILED = (
    *("gradient_clip", "clip", "value_weight", "entropy_weight"),
    *("discount", "gae", "batch"),
)


def update_part(config: PPOConfig) -> PPOConfig:
    """The configuration with all that the compiled update ignores at its default."""
    kept = {name: getattr(config, name) for name in _COMPILED}
    return PPOConfig(copies=config.batch, **kept)


def should_stop(learner: Learner, delta: float, config: PPOConfig) -> bool:
    """The stop rule: reward above the threshold while the cost is within the limit."""
    if config.stop_reward is None or len(learner.recent) < config.stop_window:
        return False
    earned, cost = recently(learner)
    return earned >= config.stop_reward and cost <= delta


def recently(learner: Learner) -> tuple[float, float]:
    """What an episode earned and cost in the window.

    With a constant chance to fall an episode lasts (1 - exp(-f)) / f of the horizon, f the falls
    per horizon; so much of the reward per horizon it earns.
    """
    reward, cost, falls = map(float, np.mean(learner.recent, axis=0))
    return float(reward * (-np.expm1(-falls) / falls if falls else 1.0)), cost


def judge(learner: Learner, delta: float, config: PPOConfig) -> Learner:
    """With its candidate kept or dropped where that is due, `keep_lag` updates after it."""
    candidate = learner.candidate or Kept(learner.policy(), learner.updates)
    if learner.updates < candidate.update + config.keep_lag:
        return replace(learner, candidate=candidate)
    kept = learner.kept
    earned, cost = recently(learner)
    full = len(learner.recent) == config.stop_window
    if full and cost <= (1 - config.margin) * delta and (kept is None or earned > kept.reward):
        kept = replace(candidate, reward=earned)
    return replace(learner, kept=kept, candidate=None)


# The solver ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PPO:
    """A policy player: `PPO()(problem)` is the solution; `solve` also gives its episodes.

    checkpoint: a folder to save to every `checkpoint_every` updates and to go on from (the
    updates before it are then reported again); progress: called with each update's record;
    starts [n, s]: states from demonstrations for `start_share` of the episodes; deterministic:
    evaluate the policy without its noise, too.
    """

    config: PPOConfig = field(default_factory=PPOConfig)
    starts: Array | None = None
    checkpoint: Path | None = None
    progress: Callable[[Record], None] | None = None
    deterministic: bool = True

    def __call__(self, problem: Problem) -> Solution:
        return self.solve(problem).solution

    def solve(self, problem: Problem) -> Result:
        config = self.config
        collector = make_collector(problem, config, self.starts)
        try:
            records = []
            for state in train(problem, config, collector, self.checkpoint, self.starts):
                learner, record = state
                records.append(record)
                if self.progress is not None:
                    self.progress(record)
            kept = learner.kept or Kept(learner.policy(), learner.updates)
            policy = kept.policy
            seed, n = (*problem.seed, EVALUATE), config.evaluation_episodes
            stochastic = collector.episodes(policy, n, False, (*seed, 0))
            deterministic = (
                collector.episodes(policy, n, True, (*seed, 1)) if self.deterministic else []
            )
        finally:
            collector.close()
        solution = Solution(
            policy, learner.multiplier.lam, behaviour_of(stochastic), record.env_steps
        )
        return Result(solution, stochastic, deterministic, records, kept.update)


def make_collector(problem: Problem, config: PPOConfig, starts: Array | None = None) -> Collector:
    """The task's collector, after all that can be checked before the first step."""
    task = problem.task
    if not hasattr(task, "collector"):
        raise InvalidInput(f"task {task.name!r} has no continuous actions: PPO can't solve it")
    task = cast(ContinuousTask, task)
    check_task(task, problem.constraint.features)
    if not np.isfinite(problem.delta):
        raise InvalidInput(f"PPO: the limit must be finite, got {problem.delta}")
    if config.start_share > 0 and starts is None:
        raise InvalidInput("PPO: start_share needs states from demonstrations (starts)")
    raw = problem.constraint.raw if config.augment else no_augmentation
    return task.collector(
        CollectorSpec(config.copies, raw, problem.seed, starts, config.start_share)
    )


def no_augmentation(phi: Array) -> Array:
    """What a policy without a constraint sees of it, [n, d] -> [n]."""
    return np.zeros(len(phi))


def train(
    problem: Problem,
    config: PPOConfig,
    collector: Collector,
    checkpoint: Path | None = None,
    starts: Array | None = None,
) -> Iterator[tuple[Learner, Record]]:
    """Algorithm 1: yields the learner after each update. Goes on from a checkpoint if there is."""
    learner = first_learner(problem, cast(ContinuousTask, problem.task), config)
    records: list[Record] = []
    mark = fingerprint(problem, config, starts)
    if checkpoint is not None:
        learner, records = load_checkpoint(checkpoint, learner, collector, mark)
        yield from ((learner, record) for record in records)
    while learner.updates < config.updates and not should_stop(learner, problem.delta, config):
        chunk, acted = collect(learner, collector, config)
        learner, record = learn(learner, chunk, acted, problem, config)
        records.append(record)
        if checkpoint is not None and learner.updates % config.checkpoint_every == 0:
            save_checkpoint(checkpoint, learner, records, collector, mark)
        yield learner, record


def collect(learner: Learner, collector: Collector, config: PPOConfig) -> tuple[Chunk, Arrays]:
    policy = learner.policy()
    return collector.collect(policy, config.steps, learner.updates), policy


# Checkpoints -----------------------------------------------------------------------------------


def fingerprint(problem: Problem, config: PPOConfig, starts: Array | None) -> str:
    """What a checkpoint belongs to: the problem and all that determines its result."""
    c = problem.constraint
    probe = np.random.default_rng(0).standard_normal((64, len(c.features)))
    digest = sha256(c.raw(probe).tobytes() + c.cost(probe).tobytes())
    if starts is not None:
        digest.update(starts.tobytes())
    for key, value in sorted((problem.start or {}).items()):
        digest.update(key.encode() + value.tobytes())
    described = {
        "schema": SCHEMA,
        "task": repr(problem.task),
        "constraint": c.describe(),
        "delta": problem.delta,
        "seed": problem.seed,
        "config": {k: v for k, v in asdict(config).items() if k != "checkpoint_every"},
        "arrays": digest.hexdigest(),
    }
    return json.dumps(described, sort_keys=True)


def save_checkpoint(
    folder: Path,
    learner: Learner,
    records: list[Record],
    collector: Collector,
    mark: str,
) -> None:
    """All that the next update depends on, in place of the checkpoint before."""
    leaves = jax.tree.leaves((learner.params, learner.opt_state))
    arrays: dict[str, NDArray[Any]] = {f"leaf/{i}": np.asarray(x) for i, x in enumerate(leaves)}
    arrays |= {"mean": learner.statistics.mean, "var": learner.statistics.var}
    arrays["scale"] = learner.scale
    arrays |= {f"collector/{k}": v for k, v in collector.save().items()}
    handed: dict[str, Kept | None] = {"kept": learner.kept, "candidate": learner.candidate}
    for name, one in handed.items():
        arrays |= {f"{name}/{k}": v for k, v in one.policy.items()} if one else {}
    values = {
        "mark": mark,
        "count": learner.statistics.count,
        "multiplier": asdict(learner.multiplier),
        "recent": learner.recent,
        **{name: [one.update, one.reward] if one else None for name, one in handed.items()},
        "updates": learner.updates,
        "records": [asdict(r) for r in records],
    }
    checkpoints.write(folder, arrays, values)


def load_checkpoint(
    folder: Path, fresh: Learner, collector: Collector, mark: str
) -> tuple[Learner, list[Record]]:
    """The inverse; restores the collector. Refuses a checkpoint of another problem."""
    found = checkpoints.read(folder)
    if found is None:
        return fresh, []
    arrays, values = found
    if values["mark"] != mark:
        raise InvalidInput(
            f"{folder} is the checkpoint of another problem or configuration: use another folder"
        )

    old, structure = jax.tree.flatten((fresh.params, fresh.opt_state))
    leaves = [arrays[f"leaf/{i}"] for i in range(len(old))]
    params, opt_state = jax.tree.unflatten(structure, leaves)
    learner = Learner(
        params,
        opt_state,
        arrays["scale"],
        Statistics(arrays["mean"], arrays["var"], values["count"]),
        Multiplier(**values["multiplier"]),
        tuple((a, b, c) for a, b, c in values["recent"]),
        _kept("kept", arrays, values),
        _kept("candidate", arrays, values),
        values["updates"],
    )
    collector.restore(_under("collector/", arrays))
    return learner, [Record(**r) for r in values["records"]]


def _kept(name: str, arrays: Mapping[str, NDArray[Any]], values: Mapping[str, Any]) -> Kept | None:
    return Kept(_under(f"{name}/", arrays), *values[name]) if values[name] else None


def _under(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {k[len(prefix) :]: v for k, v in arrays.items() if k.startswith(prefix)}


def evaluate(
    task: ContinuousTask,
    policy: Mapping[str, NDArray[Any]],
    raw: Callable[[Array], Array],
    episodes: int,
    seed: tuple[int, ...],
    deterministic: bool = False,
) -> list[Trajectory]:
    """Whole episodes of a saved policy, e.g. as demonstrations."""
    copies = min(64, -(-episodes // 8) * 8)  # a simulator may want whole groups
    collector = task.collector(CollectorSpec(copies, raw, seed))
    try:
        return collector.episodes(policy, episodes, deterministic, seed)
    finally:
        collector.close()
