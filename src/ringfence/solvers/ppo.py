"""Constrained RL on simulated tasks: PPO against a multiplier for each limit.

The paper's policy player (Algorithm 1 with a controller for lam), to be read from top to bottom:
advantages and losses, one update, the training, the solver (settings: ppo_settings.py). Per
rollout k:

    chunk_k  <- T steps of N copies under pi
    J        <- what an episode of chunk_k costs, in each channel            (solvers/limits.py)
    lam      <- a controller of log lam on log(J / target)
    A        <- (A_reward / u_r - sum lam * A_cost / u_c) / (1 + sum lam), normalised
    pi, V_r, V_c <- clipped PPO steps and value regression on minibatches

u are the advantages' own sizes and values are predicted in units of their targets, so nothing
here depends on the units of rewards, costs and limits, or on how long an episode is. There is one
setting for all worlds. A policy sees the observation and, as its last input, the raw constraint
value of the transition before. Nothing here prints, logs or times; a solve reports `Record`s to
whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Problem, Solution, Start, Trajectory, behaviour_of
from ringfence.solvers import networks
from ringfence.solvers import ppo_settings as settings
from ringfence.solvers.candidates import (
    Candidate,
    Candidates,
    Tested,
    doubts,
    hand_out,
    rank,
    seen,
)
from ringfence.solvers.checkpoints import Checkpoint
from ringfence.solvers.collecting import checked, evaluate, no_augmentation, prepare, seen_of
from ringfence.solvers.limits import (
    MOST,
    Begin,
    Limits,
    Multiplier,
    Rates,
    channels,
    episode_length,
    step_costs,
)
from ringfence.solvers.networks import Descended, Params, Rows, descend, network
from ringfence.solvers.ppo_settings import PPOConfig
from ringfence.solvers.scaling import Statistics, divided, rescaled, same_outputs, same_values
from ringfence.solvers.solver import Report, quiet
from ringfence.solvers.watching import Watcher, told
from ringfence.worlds.sim.rollouts import (
    Arrays,
    Chunk,
    Collector,
    CollectorSpec,
    ContinuousTask,
    choices_of,
)
from ringfence.worlds.sim.task_checks import check_finite

__all__ = ["PPO", "PPOConfig", "Record", "Result", "evaluate", "no_augmentation", "seen_of"]

#: Streams of random numbers, beside the collector's.
INITIAL, MINIBATCHES, EVALUATE = 10, 11, 12


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


class Units(NamedTuple):
    """values [2, 1 + k]: mean and std of the critic's targets (reward, costs); advantages [1 + k]:
    their root mean squares."""

    values: Any
    advantages: Any


@partial(jax.jit, static_argnames=("discount", "gae"))
def estimates(
    critic: Params,
    units: Units,
    share: jax.Array,
    data: Rows,
    lam: jax.Array,
    discount: float,
    gae: float,
) -> tuple[dict[str, Rows], Params, Units, jax.Array]:
    """What actor and critic learn from, row by row [T * N, ...], the critic in new units, and how
    much reward a step is worth on average, with what is to come.

    data as from `prepare`, with signals [T, N, 1 + k]; lam [k].
    """

    scale: jax.Array = units.values

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
    squares = jnp.square(A).mean(axis=(0, 1))
    size = jnp.sqrt((1 - share) * jnp.square(units.advantages) + share * squares)
    own = divided(A, size)
    mixed = (own[..., 0] - (lam * own[..., 1:]).sum(axis=-1)) / (1 + lam.sum())
    mixed = (mixed - mixed.mean()) / (mixed.std() + 1e-8)
    targets = A + V
    x, new = flat(data["x"]), rescaled(scale, targets, share)
    acted = {k: flat(data[k]) for k in ("actions", "log_probs")}
    for_actor = {"x": x, "A": flat(mixed), **acted}
    for_critic = {"x": x, "targets": flat(divided(targets - new[0], new[1]))}
    rows = {"actor": for_actor, "critic": for_critic}
    return rows, same_values(critic, scale, new), Units(new, size), targets[..., 0].mean()


def actor_loss(
    params: Params, d: Rows, clip: float, entropy_weight: float, choices: Sequence[int]
) -> jax.Array:
    """PPO's clipped gain, and entropy."""
    log_prob = networks.log_prob(params, d["x"], d["actions"], choices)
    ratio = jnp.exp(log_prob - d["log_probs"])
    clipped = jnp.clip(ratio, 1 - clip, 1 + clip)
    gain = jnp.minimum(ratio * d["A"], clipped * d["A"]).mean()
    # Up to a constant; of choices as it is sampled.
    entropy: jax.Array = -(ratio * log_prob).mean() if choices else params["log_std"].sum()
    loss = -gain - entropy_weight * entropy
    if choices:
        return loss
    # Far beyond the box all actions are clipped to one, and nothing shows the way back.
    beyond = jnp.maximum(jnp.abs(network(params, d["x"])) - 1.0, 0.0)
    return loss + settings.BEYOND_WEIGHT * jnp.square(beyond).sum(axis=1).mean()


def critic_loss(params: Params, d: Rows, weight: float) -> jax.Array:
    """Regression of all values to their targets."""
    errors = jnp.square(network(params, d["x"]) - d["targets"])
    return weight * errors.sum(axis=1).mean()


@partial(jax.jit, static_argnames=("choices",))
def moved(params: Params, d: Rows, choices: tuple[int, ...]) -> jax.Array:
    """The KL divergence of the new policy from the one that acted, estimated on its actions."""
    log_ratio = networks.log_prob(params, d["x"], d["actions"], choices) - d["log_probs"]
    return (jnp.expm1(log_ratio) - log_ratio).mean()


# One update ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Learner:
    """Everything that an update changes.

    choices: the values of each discrete action; rate: what the KL divergence leaves of the actor's
    learning rate; calm: updates after which limits were kept or nearly, not counting the first.
    """

    params: Params
    opt_state: Params
    units: Units
    statistics: Statistics
    limits: Limits
    choices: tuple[int, ...] = ()
    rate: float = 1.0
    calm: int = 0
    candidates: Candidates = field(default_factory=Candidates)
    updates: int = 0

    def policy(self) -> dict[str, NDArray[Any]]:
        """The arrays that act, and those that a later solve may start from."""
        both = ((k, name, v) for k, arrays in self.params.items() for name, v in arrays.items())
        return {
            **{f"{k}/{name}": np.asarray(v) for k, name, v in both},
            **({"actor/sizes": np.array(self.choices)} if self.choices else {}),
            "critic/scale": np.asarray(self.units.values),
            "critic/advantages": np.asarray(self.units.advantages),
            "norm/mean": self.statistics.mean,
            "norm/std": self.statistics.std,
            "norm/count": np.array(self.statistics.count),
            "multiplier/level": np.array([m.level for m in self.limits.multipliers]),
        }


@dataclass(frozen=True)
class Record:
    """One update. Reward and length: means over the episodes that ended in it, None if none did.

    Retries (worlds/sim/retries.py) are not counted. `cost` is an episode's, its length * mean step
    cost, summed over the limits, like `delta` and `lam`; chance: that an episode costs anything
    (the largest of the channels'); reward_rate: horizon * mean step reward; kl: how far the update
    moved the policy.
    """

    update: int
    updates: int
    env_steps: int
    reward: float | None
    length: float | None
    reward_rate: float
    cost: float
    delta: float
    chance: float
    lam: float
    policy_loss: float
    value_loss: float
    std: float | None
    kl: float


def learn(
    learner: Learner, chunk: Chunk, acted: Arrays, problem: Problem, config: PPOConfig
) -> tuple[Learner, Record]:
    """One update: `acted` is the policy that gathered the chunk."""
    task, done, every = cast(ContinuousTask, problem.task), learner.updates, channels(problem)
    pace = config.pace
    costs = step_costs(chunk, every)
    check_finite(chunk, costs, done * config.rollout)
    limits, rates, signals = learner.limits.measure(chunk, costs, every, task.horizon)
    if config.fixed_lam is None:
        begin = Begin(is_fresh(problem), pace.anneal, pace.steep)
        when = (done, config.updates, begin, config.margin)
        limits = limits.control(rates, every, task.horizon, *when)
    lam = limits.lam
    if not np.isfinite(lam).all():
        raise SolverFailed(
            f"the multiplier is {lam.max()} at environment step {done * config.rollout}"
        )
    share = np.float32(max(1 / (done + 1), settings.UNITS_SHARE))
    rows, critic, units, worth = estimates(
        learner.params["critic"], learner.units, share,
        prepare(chunk, signals, acted, task.horizon), lam, pace.discount, pace.gae,
    )  # fmt: skip
    both = improve(learner, learner.params | {"critic": critic}, rows, problem, config)
    params = {k: d.params for k, d in both.items()}
    kl = float(moved(params["actor"], rows["actor"], learner.choices))
    fresh, progress = is_fresh(problem), done / config.updates
    quiet = config.fixed_lam is not None or limits.near(every)
    calm = learner.calm + (quiet and progress >= pace.most_falls)
    if fresh and not learner.choices:
        bounds = pace.noise_bounds(progress, calm / config.updates, config.initial_log_std)
        log_std = np.clip(params["actor"]["log_std"], *bounds)
        params = params | {"actor": params["actor"] | {"log_std": log_std}}
    statistics = learner.statistics.add(chunk.inputs)
    if problem.start is not None:  # a given policy acts the same while the statistics move
        params = {k: same_outputs(v, learner.statistics, statistics) for k, v in params.items()}
    following = Learner(
        params, {k: d.opt_state for k, d in both.items()}, units, statistics,
        limits.fall(chunk, float(worth)), learner.choices,
        settings.next_rate(learner.rate, kl, pace.kl, fresh), calm, learner.candidates, done + 1,
    )  # fmt: skip
    candidates = learner.candidates.add(
        rates, following.policy, done + 1, config.window, every, task.horizon, 1 - config.margin / 3
    )
    length = episode_length(rates.ends, task.horizon)
    return replace(following, candidates=candidates), Record(
        update=done + 1,
        updates=config.updates,
        env_steps=(done + 1) * config.rollout,
        reward=float(chunk.returns.mean()) if len(chunk.returns) else None,
        length=float(chunk.lengths.mean()) if len(chunk.lengths) else None,
        reward_rate=task.horizon * rates.reward,
        cost=length * sum(rates.costs),
        delta=sum(channel.limit for channel in every),
        chance=length * max(rates.firsts),
        lam=float(lam.sum()),
        policy_loss=float(both["actor"].loss),
        value_loss=float(both["critic"].loss),
        std=None if learner.choices else float(np.exp(params["actor"]["log_std"]).mean()),
        kl=kl,
    )


def improve(
    learner: Learner, params: Params, rows: dict[str, Rows], problem: Problem, config: PPOConfig
) -> dict[str, Descended]:
    """The actor's and the critic's steps on minibatches of the rollout."""
    done, old, given = learner.updates, learner.opt_state, problem.start or {}
    rng = np.random.default_rng([*problem.seed, MINIBATCHES, done])
    order = np.concatenate([rng.permutation(config.rollout) for _ in range(config.pace.passes)])
    order = order.reshape(config.pace.passes * config.minibatches, -1).astype(np.int32)
    rate = config.learning_rate * (1 - done / config.updates)
    losses: dict[str, tuple[Any, ...]] = {
        "actor": (actor_loss, (config.clip, config.entropy_weight, learner.choices)),
        "critic": (critic_loss, (config.value_weight,)),
    }
    rates = {"actor": np.float32(rate * learner.rate), "critic": np.float32(rate)}
    # They have nothing to do with each other here: one core each.
    with ThreadPoolExecutor(max_workers=2) as pool:
        jobs = {
            k: pool.submit(
                descend, *loss, params[k], old[k], rows[k], rates[k], order, config.gradient_clip
            )
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
    task = cast(ContinuousTask, problem.task)
    learner = learner or first_learner(problem, task, config)
    asked, every = config.stop_reward, channels(problem)
    while learner.updates < config.updates:
        if learner.candidates.reached(asked, config.window, every, task.horizon):
            return
        policy = learner.policy()
        chunk = collector.collect(policy, config.rollout_steps, learner.updates)
        learner, record = learn(learner, chunk, policy, problem, config)
        yield learner, record


def is_fresh(problem: Problem) -> bool:
    """Does the training begin from nothing?"""
    return "actor/w0" not in (problem.start or {})


def first_learner(problem: Problem, task: ContinuousTask, config: PPOConfig) -> Learner:
    """Fresh networks, or those of `problem.start` where it has them."""
    inputs, start, k = task.observation_dim + 1, problem.start or {}, len(channels(problem))
    rng = np.random.default_rng([*problem.seed, INITIAL])
    begin = (config.hidden, config.initial_log_std, config.last_layer_scale)
    params = networks.initial_params(
        inputs, len(task.action_low), *begin, rng, choices=choices_of(task), values=1 + k
    )
    # The critic of another number of limits says nothing here.
    known = {n: v for n, v in start.items() if not n.startswith("critic/") or fits(start, k)}
    for name, arrays in params.items():
        for key, fresh in arrays.items():
            given = known.get(f"{name}/{key}", fresh)
            if given.shape != fresh.shape:
                raise InvalidInput(
                    f"PPO: the start's {name}/{key} has shape {given.shape}, not {fresh.shape}"
                )
            arrays[key] = given.astype(np.float32)
    adam = networks.optimiser(config.gradient_clip)
    opt_state = {name: adam.init(cast(Any, arrays)) for name, arrays in params.items()}
    none = {"scale": np.zeros((2, 1 + k)), "advantages": np.zeros(1 + k)}
    units = Units(*(known.get(f"critic/{n}", v).astype(np.float32) for n, v in none.items()))
    levels, lam = start.get("multiplier/level", np.zeros(0)), config.fixed_lam or 0.0
    limits = Limits.begin(lam, levels, k, config.copies, task.horizon)
    rate = 1.0 if is_fresh(problem) else settings.GIVEN_RATE
    statistics = Statistics.begin(start, inputs)
    return Learner(params, opt_state, units, statistics, limits, choices_of(task), rate)


def fits(start: Start, k: int) -> bool:
    """Has the start a critic of so many costs?"""
    return start.get("critic/advantages", np.zeros(0)).shape == (1 + k,)


def make_collector(problem: Problem, config: PPOConfig) -> Collector:
    """The task's collector, after all that can be checked before the first step."""
    task, share = checked(problem, config.start_share), config.start_share
    raw = seen_of(problem.constraint, config.augment)
    tries = config.short or all(channel.zero for channel in channels(problem))
    retries = settings.RETRY_SHARE if tries else 0.0
    return task.collector(
        CollectorSpec(config.copies, raw, problem.seed, problem.states, share, retries)
    )


# The solver ------------------------------------------------------------------------------------

#: What a checkpoint is made of.
SAVED = (
    *(Learner, Record, Statistics, Limits, Multiplier, Units, Candidates, Candidate, Rates),
    *networks.OPTIMISER_STATES,
)


@dataclass(frozen=True, eq=False)
class Result:
    """A solution with the evaluation episodes behind it, and how it came about.

    handed_out: the update after which the policy was this one; tests: of the policies that might
    have been, in their order.
    """

    solution: Solution
    stochastic: list[Trajectory]
    deterministic: list[Trajectory]
    records: list[Record]
    handed_out: int
    tests: list[Tested]

    @property
    def within(self) -> bool:
        """Was the policy seen to keep its limits, by an upper bound?"""
        return any(test.within for test in self.tests)

    def doubts(self, problem: Problem) -> list[str]:
        """Which limits it was not seen to keep, in words."""
        late = self.records[-max(1, len(self.records) // 4) :]
        strained = all(record.lam >= MOST for record in late)
        chosen = next(t for t in self.tests if t.candidate.update == self.handed_out)
        return doubts(chosen, channels(problem), strained)


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
            best, tests = handed_out(learner, problem, config, collector, deterministic)
        finally:
            collector.close()
        lam, steps = records[-1].lam, records[-1].env_steps
        behaviour = behaviour_of(best.stochastic)
        solution = Solution(best.candidate.policy, lam, behaviour, steps)
        trial = (best.stochastic, best.deterministic)
        return Result(solution, *trial, records, best.candidate.update, tests)

    def free(self) -> PPO:
        """For no constraint: it shows how much can be earned, so it doesn't stop early."""
        return PPO(replace(self.config, stop_reward=None, test_episodes=0))

    def settle(self) -> PPO:
        longer = int(settings.SETTLE * self.config.env_steps)
        return PPO(replace(self.config, stop_reward=None, env_steps=longer))

    def watch(self) -> Watcher:
        return Watcher(self.config.evaluation_episodes)

    def episodes(
        self, problem: Problem, solution: Solution, count: int, seed: tuple[int, ...]
    ) -> list[Trajectory]:
        raw = seen_of(problem.constraint, self.config.augment)
        return evaluate(cast(ContinuousTask, problem.task), solution.policy, raw, count, seed)


def handed_out(
    learner: Learner,
    problem: Problem,
    config: PPOConfig,
    collector: Collector,
    deterministic: bool,
) -> tuple[Tested, list[Tested]]:
    """The policy that a training ends with, and the tests that chose it."""
    every, horizon = channels(problem), cast(ContinuousTask, problem.task).horizon
    held = learner.candidates
    last = Candidate(learner.policy(), learner.updates, *seen(held.recent, every, horizon))
    # Under a multiplier that nothing controls, the last policy is what it leads to.
    earlier = held.best if config.fixed_lam is None else ()
    order = sorted((*earlier, last), key=lambda c: rank(c, 1 - config.margin / 3))

    def roll(policy: Any, batch: int, count: int, noiseless: bool) -> list[Trajectory]:
        path = (*problem.seed, EVALUATE, int(noiseless), batch)
        return collector.episodes(policy, count, noiseless, path)

    first, most = config.evaluation_episodes, config.test_episodes
    steps = int(settings.TESTED_SHARE * config.env_steps) if most else 0
    return hand_out(order if most else order[:1], every, roll, first, most, steps, deterministic)


def make(config: PPOConfig) -> PPO:
    return PPO(config)
