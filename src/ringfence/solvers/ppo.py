"""Constrained RL on continuous tasks: PPO against a PID-controlled Lagrange multiplier.

The paper's policy player (Algorithm 1 with a PID step for lam), to be read from top to bottom:
multiplier, advantages, the compiled update, the learner, the loop (the settings are in
`ppo_config.py`, the two networks in `networks.py`, checkpoints in `ppo_state.py`). Per rollout k:

    chunk_k  <- T steps of N copies under pi
    J        <- horizon * mean step cost of chunk_k        (an episode's cost)
    lam      <- PID(J - delta)
    A        <- (A_reward - lam * A_cost) / (1 + lam), normalised
    pi, V_r, V_c <- clipped PPO steps and value regression on minibatches

A policy sees the observation and, as its last input, the raw constraint value of the transition
before. Nothing here prints, logs or times; a solve reports `Record`s to whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import (
    Array,
    Constraint,
    Problem,
    Solution,
    Start,
    Trajectory,
    behaviour_of,
)
from ringfence.solvers.networks import (
    Params,
    Statistics,
    initial_params,
    log_prob,
    network,
    same_outputs,
)
from ringfence.solvers.ppo_config import PPOConfig
from ringfence.solvers.ppo_state import (
    Kept,
    Learner,
    Multiplier,
    Record,
    fingerprint,
    load_checkpoint,
    save_checkpoint,
)
from ringfence.worlds.sim.rollouts import (
    OBSERVATION_CLIP,
    Arrays,
    Chunk,
    Collector,
    CollectorSpec,
    ContinuousTask,
)
from ringfence.worlds.sim.task_checks import check_finite, check_task

#: Streams of random numbers, beside the collector's.
INITIAL, MINIBATCHES, EVALUATE = 10, 11, 12
#: How far the critic's units follow each rollout's targets.
SCALE_SHARE = 0.05
#: Targets that hardly vary (a cost that is nearly always 0) are not blown up beyond this.
SMALLEST_VALUE_STD = 0.1


# The multiplier --------------------------------------------------------------------------------


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


# The learner -----------------------------------------------------------------------------------


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
    rate = np.float32(learning_rate(config, learner.updates))
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


def learning_rate(config: PPOConfig, done: int) -> float:
    """Of the next update, after so many."""
    falling = config.cool_down * config.updates
    left = config.updates - done
    return config.learning_rate * (min(1.0, left / falling) if falling else 1.0)


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
class Result:
    """A solution with the evaluation episodes behind it, and its course."""

    solution: Solution
    stochastic: list[Trajectory]
    deterministic: list[Trajectory]
    records: list[Record]
    handed_out: int  # the update after which the policy was this one


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
    raw = seen_of(problem.constraint, config.augment)
    return task.collector(
        CollectorSpec(config.copies, raw, problem.seed, starts, config.start_share)
    )


def seen_of(c: Constraint, augment: bool) -> Callable[[Array], Array]:
    """What a policy sees of the constraint, [n, d] -> [n]: its value, or nothing."""
    return c.raw if augment else no_augmentation


def no_augmentation(phi: Array) -> Array:
    """What a policy without a constraint sees of it. Not a lambda: Bullet's workers get it by name.

    [n, d] -> [n].
    """
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
