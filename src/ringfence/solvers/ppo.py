"""Constrained RL on continuous tasks: PPO against a PID-controlled Lagrange multiplier.

The paper's policy player (Algorithm 1 with a PID step for lam), to be read from top to bottom:
settings, multiplier, advantages and losses, one update, the training, the solver. Per rollout k:

    chunk_k  <- T steps of N copies under pi
    J        <- horizon * mean step cost of chunk_k        (an episode's cost)
    lam      <- PID(J - delta)
    A        <- (A_reward - lam * A_cost) / (1 + lam), normalised
    pi, V_r, V_c <- clipped PPO steps and value regression on minibatches

A policy sees the observation and, as its last input, the raw constraint value of the transition
before. Nothing here prints, logs or times; a solve reports `Record`s to whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Problem, Solution, Trajectory, behaviour_of
from ringfence.solvers import networks
from ringfence.solvers.checkpoints import Checkpoint
from ringfence.solvers.collecting import checked, evaluate, no_augmentation, prepare, seen_of
from ringfence.solvers.keep_best import KeepBest, Kept
from ringfence.solvers.networks import Descended, Params, Rows, descend, network
from ringfence.solvers.scaling import Statistics, rescaled, same_outputs, same_values
from ringfence.solvers.solver import Report, quiet
from ringfence.solvers.watching import Watcher, told
from ringfence.worlds.sim.rollouts import Arrays, Chunk, Collector, CollectorSpec, ContinuousTask
from ringfence.worlds.sim.task_checks import check_finite

__all__ = ["PPO", "PPOConfig", "Record", "Result", "evaluate", "no_augmentation", "seen_of"]

#: Streams of random numbers, beside the collector's.
INITIAL, MINIBATCHES, EVALUATE = 10, 11, 12
#: How far the critic's units follow each rollout's targets.
SCALE_SHARE = 0.05


@dataclass(frozen=True)
class PPOConfig:
    """Continuous worlds: PPO against a multiplier on the cost. The paper's settings, or why not."""

    env_steps: int = 1_000_000  # of a training
    learning_rate: float = 3e-4  # of Adam
    cool_down: float = 0.0  # over this last share of the updates the rate falls linearly to 0
    value_weight: float = 0.25  # of the critic's loss
    clip: float = 0.2  # of the ratio of probabilities
    gae: float = 0.97  # lambda of the generalised advantages
    discount: float = 0.99  # of rewards and costs
    batch: int = 512  # steps of a minibatch
    hidden: tuple[int, ...] = (128, 128)  # units of each layer of actor and critic
    # A rollout is copies x steps, learned from in so many passes. (The paper's 20,000 steps in 4
    # passes make 50 updates of a million steps, after which an Ant still stands.)
    copies: int = 64  # environments that step together
    steps: int = 64  # of each copy in a rollout
    passes: int = 8  # over a rollout
    gradient_clip: float = 0.5  # norm, per network (the paper's code: 0.02 for both)
    initial_log_std: float = -1.3  # of actions; from 0 the Ant never walks
    last_layer_scale: float = 0.01  # of the actor, at first: means near 0
    entropy_weight: float = 0.0  # of the entropy bonus
    normalise: bool = True  # observations, by running statistics
    augment: bool = True  # the raw constraint value as the policy's last input
    multiplier: Literal["pid", "gradient"] = "pid"  # PID, or classical gradient ascent
    gain_p: float = 0.05  # of the error, cost less target
    gain_i: float = 0.001  # of its integral; the paper's 0.0005 is too slow for a million steps
    gain_d: float = 0.1  # of its rise
    gradient_rate: float = 0.0005  # of gradient ascent on the multiplier
    error_clip: float = 30.0  # errors of the cost beyond it count as it, and aren't integrated
    cost_share: float = 0.2  # of a rollout in the running mean of the cost that the PID sees
    initial_lam: float = 0.0  # the multiplier, at first
    grace: float = 0.0  # for this first share of the updates lam is 0: first walk, then obey
    margin: float = 0.15  # the target is (1 - margin) * delta: it is reached from above
    stop_reward: float | None = None  # stop where a window earns so much within the limit
    stop_window: int = 20  # rollouts that stop_reward and keep_best look at
    keep_best: bool = False  # hand out the policy after the best window on target, not the last
    keep_lag: int = 0  # that window ends so many updates later: for costs late in an episode
    critic_first: int = 5  # updates of the critic alone, where the start is an actor without one
    start_share: float = 0.0  # of episodes that begin at a demonstration's state
    evaluation_episodes: int = 32  # that a training ends with
    checkpoint_every: int = 50  # updates; a killed training goes on from there
    kind: Literal["ppo"] = "ppo"

    def __post_init__(self) -> None:
        counts = ("env_steps", "batch", "copies", "steps", "passes", "checkpoint_every")
        least = dict.fromkeys((*counts, "stop_window"), 1)
        for name, n in (least | {"evaluation_episodes": 2, "keep_lag": 0}).items():
            if getattr(self, name) < n:
                raise InvalidInput(f"PPO: {name} must be at least {n}, got {getattr(self, name)}")
        if not 0 <= self.cool_down <= 1:
            raise InvalidInput(f"PPO: cool_down must be in [0, 1], got {self.cool_down}")
        for name in ("margin", "grace"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidInput(f"PPO: {name} must be in [0, 1), got {getattr(self, name)}")
        if self.grace and self.initial_lam:
            raise InvalidInput(
                f"PPO: in its grace ({self.grace}) a training has no multiplier; leave out "
                f"initial_lam ({self.initial_lam})"
            )
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

    def rate_after(self, done: int) -> float:
        """The learning rate of the next update, after so many."""
        falling, left = self.cool_down * self.updates, self.updates - done
        return self.learning_rate * (min(1.0, left / falling) if falling else 1.0)


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


# Advantages and losses -------------------------------------------------------------------------


def advantages(
    r: jax.Array, V: jax.Array, V_next: jax.Array, ended: jax.Array, discount: float, gae: float
) -> jax.Array:
    """Generalised advantage estimates; all [T, ...], V_next the value after each step.

    That is 0 after a fall; `ended` cuts the sum at an episode's last step.
    """
    errors = r + discount * V_next - V

    def back(ahead: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        error, end = step
        now = error + discount * gae * jnp.where(end, 0.0, ahead)
        return now, now

    _, A = jax.lax.scan(back, jnp.zeros_like(r[0]), (errors, ended), reverse=True)
    return A


@partial(jax.jit, static_argnames=("discount", "gae"))
def estimates(
    critic: Params,
    scale: jax.Array,
    share: jax.Array,
    data: Rows,
    lam: jax.Array,
    discount: float,
    gae: float,
) -> tuple[dict[str, Rows], Params, jax.Array]:
    """What actor and critic learn from, row by row [T * N, ...], and the critic in new units.

    data as from `prepare`; scale [2, 2] = (mean, std) x (reward, cost) of the critic's targets:
    the units it predicts in, which follow the targets by `share`.
    """

    def value(x: jax.Array) -> jax.Array:
        return network(critic, x) * scale[1] + scale[0]

    def flat(x: jax.Array) -> jax.Array:
        return x.reshape(-1, *x.shape[2:])

    fallen, ended = data["terminated"], data["terminated"] | data["truncated"]
    t, n = data["final_at"][:, 0], data["final_at"][:, 1]
    V = value(data["x"])
    V_next = jnp.concatenate([V[1:], value(data["last_x"])[None]])
    V_next = V_next.at[t, n].set(value(data["final_x"]), mode="drop")
    V_next = jnp.where(fallen[..., None], 0.0, V_next)
    A = advantages(data["signals"], V, V_next, ended[..., None], discount, gae)
    targets = A + V
    # Mixed in the units of reward and cost, and only then normalised.
    mixed = (A[..., 0] - lam * A[..., 1]) / (1 + lam)
    mixed = (mixed - mixed.mean()) / (mixed.std() + 1e-8)
    x, new = flat(data["x"]), rescaled(scale, targets, share)
    acted = {k: flat(data[k]) for k in ("actions", "log_probs")}
    for_actor = {"x": x, "A": flat(mixed), **acted}
    for_critic = {"x": x, "targets": flat((targets - new[0]) / new[1])}
    return {"actor": for_actor, "critic": for_critic}, same_values(critic, scale, new), new


def actor_loss(params: Params, d: Rows, clip: float, entropy_weight: float) -> jax.Array:
    """PPO's clipped gain, and entropy."""
    ratio = jnp.exp(networks.log_prob(params, d["x"], d["actions"]) - d["log_probs"])
    clipped = jnp.clip(ratio, 1 - clip, 1 + clip)
    gain = jnp.minimum(ratio * d["A"], clipped * d["A"]).mean()
    entropy: jax.Array = params["log_std"].sum()  # up to a constant
    return -gain - entropy_weight * entropy


def critic_loss(params: Params, d: Rows, weight: float) -> jax.Array:
    """Regression of both values to their targets."""
    errors = jnp.square(network(params, d["x"]) - d["targets"])
    return weight * errors.sum(axis=1).mean()


# One update ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Learner:
    """Everything that an update changes."""

    params: Params
    opt_state: Params
    scale: NDArray[np.float32]  # [2, 2]: mean and std of the critic's targets (reward, cost)
    statistics: Statistics
    multiplier: Multiplier
    best: KeepBest = field(default_factory=KeepBest)
    updates: int = 0

    def policy(self) -> dict[str, NDArray[Any]]:
        """The arrays that act, and those that a later solve may start from."""
        both = ((k, name, v) for k, arrays in self.params.items() for name, v in arrays.items())
        return {
            **{f"{k}/{name}": np.asarray(v) for k, name, v in both},
            "critic/scale": np.asarray(self.scale),
            "norm/mean": self.statistics.mean,
            "norm/std": self.statistics.std,
            "norm/count": np.array(self.statistics.count),
            "multiplier/integral": np.array(self.multiplier.integral),
        }


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


def learn(
    learner: Learner, chunk: Chunk, acted: Arrays, problem: Problem, config: PPOConfig
) -> tuple[Learner, Record]:
    """One update: `acted` is the policy that gathered the chunk."""
    task, done = cast(ContinuousTask, problem.task), learner.updates
    cost = problem.constraint.cost(chunk.features.reshape(-1, chunk.features.shape[-1]))
    cost = cost.reshape(chunk.rewards.shape)
    check_finite(chunk, cost, done * config.rollout)
    signals = (chunk.rewards, cost, chunk.terminated)
    reward_rate, J, falls = (task.horizon * float(x.mean()) for x in signals)

    multiplier = Multiplier()
    if done >= config.grace * config.updates:
        multiplier = next_multiplier(learner.multiplier, J, problem.delta, config)
    if not np.isfinite(multiplier.lam):
        step = done * config.rollout
        raise SolverFailed(f"the multiplier is {multiplier.lam} at environment step {step}")
    data, lam = prepare(chunk, cost, acted, task.horizon), np.float32(multiplier.lam)
    share = np.float32(max(1 / (done + 1), SCALE_SHARE))
    rows, critic, scale = estimates(
        learner.params["critic"], learner.scale, share, data, lam, config.discount, config.gae
    )
    both = improve(learner, learner.params | {"critic": critic}, rows, problem, config)

    params, statistics = {k: d.params for k, d in both.items()}, learner.statistics
    if config.normalise:
        statistics = statistics.add(chunk.inputs)
    if problem.start is not None:  # a given policy acts the same while the statistics move
        params = {k: same_outputs(v, learner.statistics, statistics) for k, v in params.items()}
    best = learner.best.add(reward_rate, J, falls, config.stop_window)
    opt_state = {k: d.opt_state for k, d in both.items()}
    following = Learner(
        params, opt_state, np.asarray(scale), statistics, multiplier, best, done + 1
    )
    if config.keep_best:
        limit, window = (1 - config.margin) * problem.delta, config.stop_window
        best = best.judge(following.policy(), done + 1, limit, window, config.keep_lag)
        following = replace(following, best=best)
    return following, Record(
        update=done + 1,
        updates=config.updates,
        env_steps=(done + 1) * config.rollout,
        reward=float(chunk.returns.mean()) if len(chunk.returns) else None,
        length=float(chunk.lengths.mean()) if len(chunk.lengths) else None,
        reward_rate=reward_rate,
        cost=J,
        delta=problem.delta,
        lam=multiplier.lam,
        policy_loss=float(both["actor"].loss),
        value_loss=float(both["critic"].loss),
        std=float(np.exp(np.asarray(params["actor"]["log_std"])).mean()),
    )


def improve(
    learner: Learner, params: Params, rows: dict[str, Rows], problem: Problem, config: PPOConfig
) -> dict[str, Descended]:
    """The actor's and the critic's steps on minibatches of the rollout."""
    done, old, given = learner.updates, learner.opt_state, problem.start or {}
    rng = np.random.default_rng([*problem.seed, MINIBATCHES, done])
    order = np.concatenate([rng.permutation(config.rollout) for _ in range(config.passes)])
    order = order.reshape(-1, config.batch).astype(np.int32)
    way = (np.float32(config.rate_after(done)), order, config.gradient_clip)
    losses: dict[str, tuple[Any, ...]] = {
        "actor": (actor_loss, (config.clip, config.entropy_weight)),
        "critic": (critic_loss, (config.value_weight,)),
    }
    # They have nothing to do with each other here: one core each.
    with ThreadPoolExecutor(max_workers=2) as pool:
        jobs = {
            k: pool.submit(descend, *loss, params[k], old[k], rows[k], *way)
            for k, loss in losses.items()
        }
        both = {k: job.result() for k, job in jobs.items()}
    for name, new in both.items():
        if not np.isfinite(new.norm):
            raise SolverFailed(
                f"the gradient of the {name} is {new.norm} in the update after environment step "
                f"{(done + 1) * config.rollout}: training stopped"
            )
    # An actor that came without a critic waits: an untrained one would make it unlearn.
    if done < config.critic_first and "actor/w0" in given and "critic/w0" not in given:
        both["actor"] = both["actor"]._replace(params=params["actor"], opt_state=old["actor"])
    return both


# The training ----------------------------------------------------------------------------------


def train(
    problem: Problem, config: PPOConfig, collector: Collector, learner: Learner | None = None
) -> Iterator[tuple[Learner, Record]]:
    """Algorithm 1: yields the learner after each update."""
    learner = learner or first_learner(problem, cast(ContinuousTask, problem.task), config)
    while learner.updates < config.updates:
        if learner.best.reached(config.stop_reward, problem.delta, config.stop_window):
            return
        chunk, acted = collect(learner, collector, config)
        learner, record = learn(learner, chunk, acted, problem, config)
        yield learner, record


def collect(learner: Learner, collector: Collector, config: PPOConfig) -> tuple[Chunk, Arrays]:
    policy = learner.policy()
    return collector.collect(policy, config.steps, learner.updates), policy


def first_learner(problem: Problem, task: ContinuousTask, config: PPOConfig) -> Learner:
    """Fresh networks, or those of `problem.start` where it has them."""
    inputs, actions, start = task.observation_dim + 1, len(task.action_low), problem.start or {}
    rng = np.random.default_rng([*problem.seed, INITIAL])
    begin = (config.hidden, config.initial_log_std, config.last_layer_scale)
    params = networks.initial_params(inputs, actions, *begin, rng)
    for name, arrays in params.items():
        for key, fresh in arrays.items():
            given = start.get(f"{name}/{key}", fresh)
            if given.shape != fresh.shape:
                raise InvalidInput(
                    f"PPO: the start's {name}/{key} has shape {given.shape}, not {fresh.shape}"
                )
            arrays[key] = given.astype(np.float32)
    statistics = Statistics.begin(start, inputs)
    adam = networks.optimiser(config.gradient_clip)
    opt_state = {name: adam.init(cast(Any, arrays)) for name, arrays in params.items()}
    scale = np.array([[0.0, 0.0], [1.0, 1.0]], np.float32)
    scale = start.get("critic/scale", scale).astype(np.float32)
    lam = float(start.get("multiplier/integral", config.initial_lam))
    return Learner(params, opt_state, scale, statistics, Multiplier(lam, integral=lam))


def make_collector(problem: Problem, config: PPOConfig) -> Collector:
    """The task's collector, after all that can be checked before the first step."""
    task, share = checked(problem, config.start_share), config.start_share
    raw = seen_of(problem.constraint, config.augment)
    return task.collector(CollectorSpec(config.copies, raw, problem.seed, problem.states, share))


# The solver ------------------------------------------------------------------------------------

#: What a checkpoint is made of.
SAVED = (Learner, Record, Statistics, Multiplier, KeepBest, Kept, *networks.OPTIMISER_STATES)


@dataclass(frozen=True, eq=False)
class Result:
    """A solution with the evaluation episodes behind it, and how it came about."""

    solution: Solution
    stochastic: list[Trajectory]
    deterministic: list[Trajectory]
    records: list[Record]
    handed_out: int  # the update after which the policy was this one


@dataclass(frozen=True)
class PPO:
    """The policy player: `PPO(config)(problem)` is the solution, `train` has its episodes, too.

    One training at a time, with all cores. Some of its episodes begin at `problem.states`, where
    `start_share` says so.
    """

    config: PPOConfig = field(default_factory=PPOConfig)
    at_once: ClassVar[int] = 1
    learns: ClassVar[bool] = True

    def key(self, problem: Problem, usual: dict[str, Any]) -> dict[str, Any]:
        return usual

    def check(self, problem: Problem) -> None:
        """Refuse what can be known before the first step: a start of other shapes, no states."""
        first_learner(problem, checked(problem, self.config.start_share), self.config)

    def __call__(
        self, problem: Problem, checkpoint: Path | None = None, report: Report = quiet
    ) -> Solution:
        result = self.train(problem, checkpoint, report, deterministic=False)
        return told(problem, result.solution, result.stochastic)

    def train(
        self,
        problem: Problem,
        checkpoint: Path | None = None,
        report: Report = quiet,
        deterministic: bool = True,
    ) -> Result:
        """checkpoint: a folder to save to every `checkpoint_every` updates and to go on from (the
        updates before it are then reported again); deterministic: try the policy without its
        noise, too."""
        asked, config = problem.stop_reward, self.config
        config = config if asked is None else replace(config, stop_reward=asked)
        collector = make_collector(problem, config)
        try:
            learner = first_learner(problem, cast(ContinuousTask, problem.task), config)
            records: list[Record] = []
            saved = Checkpoint(checkpoint, problem, config)
            if found := saved.load(SAVED):
                learner, records = found["learner"], found["records"]
                collector.restore(found["collector"])
            for record in records:
                report(asdict(record))
            training = train(problem, config, collector, learner)
            for learner, record in training:
                records.append(record)
                if saved.due(learner.updates):
                    saved.save(learner=learner, records=records, collector=collector.save())
                report(asdict(record))
            kept = learner.best.kept or Kept(learner.policy(), learner.updates)
            episodes = partial(collector.episodes, kept.policy, config.evaluation_episodes)
            seed = (*problem.seed, EVALUATE)
            stochastic = episodes(False, (*seed, 0))
            noiseless = episodes(True, (*seed, 1)) if deterministic else []
        finally:
            collector.close()
        lam, steps = learner.multiplier.lam, records[-1].env_steps
        solution = Solution(kept.policy, lam, behaviour_of(stochastic), steps)
        return Result(solution, stochastic, noiseless, records, kept.update)

    def free(self) -> PPO:
        """Without a multiplier; it shows how much can be earned, so it doesn't stop early."""
        return PPO(replace(self.config, initial_lam=0.0, stop_reward=None))

    def watch(self) -> Watcher:
        return Watcher(self.config.evaluation_episodes)

    def episodes(
        self, problem: Problem, solution: Solution, count: int, seed: tuple[int, ...]
    ) -> list[Trajectory]:
        raw = seen_of(problem.constraint, self.config.augment)
        return evaluate(cast(ContinuousTask, problem.task), solution.policy, raw, count, seed)


def make(config: PPOConfig) -> PPO:
    return PPO(config)
