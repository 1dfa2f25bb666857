"""How a policy gathers data: many copies of a task, the policy in the loop, chunks out.

A simulator steps all its copies and never resets by itself. The loop here does: the step that
ends an episode (by itself, or at the horizon) is recorded with the observation it led to, then
that copy starts a new episode, and its next recorded observation is the new start. Randomness
comes from seed paths alone: noise from (seed, NOISE, rollout), starts from (seed, START, copy,
episode); so a chunk does not depend on threads, worker processes or interruptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from ringfence.objects import Array, Feature, Trajectory
from ringfence.worlds.sim.border import Border
from ringfence.worlds.sim.retries import Retries

Array32 = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]
Raw = Callable[[Array], Array]

#: Streams of random numbers, the second part of each seed path.
NOISE, START, EVALUATION = 1, 2, 3

#: Normalised observations beyond this many standard deviations are cut off.
OBSERVATION_CLIP = 10.0


class Step(NamedTuple):
    """observations [N, o], rewards [N], features [N, d] of the transition, terminated [N].

    truncated [N]: cut by the environment itself before the task's horizon (None: never).
    """

    observations: Array
    rewards: Array
    features: Array
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_] | None = None


class Simulator(Protocol):
    """Copies of one task that step together."""

    copies: int

    def reset(self, which: NDArray[np.intp], rngs: Sequence[np.random.Generator]) -> Array:
        """Start new episodes in the copies `which` -> observations [copies, o] of all."""
        ...

    def place(self, which: NDArray[np.intp], states: Array) -> Array:
        """Start episodes of the copies `which` in given states -> observations [copies, o]."""
        ...

    def step(self, actions: Array) -> Step: ...

    def save(self) -> dict[str, Array]:
        """The full state: after `restore` of it every later step gives the same bytes."""
        ...

    def restore(self, saved: Mapping[str, Array]) -> Array: ...

    def close(self) -> None: ...


class Collector(Protocol):
    """Runs policies on a task: in this process or in workers."""

    def collect(self, policy: Arrays, steps: int, rollout: int) -> Chunk: ...

    def episodes(
        self, policy: Arrays, count: int, deterministic: bool, seed: Sequence[int]
    ) -> list[Trajectory]: ...

    def save(self) -> dict[str, NDArray[Any]]: ...

    def restore(self, saved: Arrays) -> None: ...

    def close(self) -> None: ...


class ContinuousTask(Protocol):
    """A task with real-valued observations, and actions in a box. One whose actions are discrete
    has `choices`, too: the number of values of each, counted from action_low."""

    @property
    def name(self) -> str: ...

    @property
    def features(self) -> tuple[Feature, ...]: ...

    @property
    def horizon(self) -> int: ...

    @property
    def observation_dim(self) -> int: ...

    @property
    def action_low(self) -> Array: ...

    @property
    def action_high(self) -> Array: ...

    def collector(self, spec: CollectorSpec) -> Collector: ...


def choices_of(task: ContinuousTask) -> tuple[int, ...]:
    """The number of values of each discrete action; empty where actions are a box."""
    choices: tuple[int, ...] = getattr(task, "choices", ())
    return choices


@dataclass(frozen=True, eq=False)
class CollectorSpec:
    """What a collector needs to know.

    raw: phi [n, d] -> [n], the constraint's raw value, the policy's extra input;
    starts [n, s]: states from demonstrations where a `start_share` of episodes begins; retry_share:
    of episodes that begin where one began in which raw was above 0 (sim/retries.py).
    """

    copies: int
    raw: Raw
    seed: tuple[int, ...]
    starts: Array | None = None
    start_share: float = 0.0
    retry_share: float = 0.0


@dataclass(frozen=True, eq=False)
class Chunk:
    """T steps of N copies.

    inputs [T, N, o + 1]: observation and raw(phi) of the transition before it (0 at a start);
    actions [T, N, a] as drawn, before they are clipped (of choices: their numbers); log_probs
    [T, N]; rewards [T, N]; features [T, N, d]; terminated, truncated [T, N]; last_inputs [N, o + 1]
    after the last step; final_inputs [m, o + 1] and final_at [m, 2] = (t, n): what a truncated
    episode would have seen next; retried [T, N]: steps of episodes that are tried again, which say
    nothing of what an episode earns and costs; returns, lengths [k]: the others that ended, from
    their start.
    """

    inputs: Array
    actions: Array32
    log_probs: Array32
    rewards: Array
    features: Array
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    last_inputs: Array
    final_inputs: Array
    final_at: NDArray[np.int64]
    retried: NDArray[np.bool_]
    returns: Array
    lengths: Array

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {f.name: getattr(self, f.name) for f in fields(self)}


def join_chunks(parts: Sequence[Chunk]) -> Chunk:
    """Chunks of different copies side by side, in the copies' order."""
    offset, shifted = 0, []
    for part in parts:
        shifted.append(part.final_at + np.array([0, offset]))
        offset += part.rewards.shape[1]
    joined = {
        name: np.concatenate([getattr(p, name) for p in parts], axis=1)
        for name in (
            "inputs",
            "actions",
            "log_probs",
            "rewards",
            "features",
            "terminated",
            "truncated",
            "retried",
        )
    }
    rows = {
        name: np.concatenate([getattr(p, name) for p in parts])
        for name in ("last_inputs", "final_inputs", "returns", "lengths")
    }
    return Chunk(**joined, **rows, final_at=np.concatenate(shifted))


class Actor:
    """The numpy copy of the policy that acts: a Gaussian around a tanh network, or choices.

    Four times faster on 64 observations than a call into JAX. Arrays: actor/w0, actor/b0, ..., and
    norm/mean, norm/std [o + 1] of the inputs; actor/log_std [a] of a Gaussian, or actor/sizes [a]:
    the number of values of each choice, whose logits are the network's outputs.
    """

    def __init__(self, policy: Arrays) -> None:
        self._layers = [
            (policy[f"actor/w{i}"], policy[f"actor/b{i}"])
            for i in range(sum(key.startswith("actor/w") for key in policy))
        ]
        self._mean, self._scale = policy["norm/mean"], 1 / policy["norm/std"]
        self.sizes = tuple(int(n) for n in policy.get("actor/sizes", ()))
        if not self.sizes:
            self.log_std: Array32 = policy["actor/log_std"].astype(np.float32)
            self._std = np.exp(self.log_std)

    def mean(self, inputs: Array) -> Array32:
        """inputs [N, o + 1] -> the network's outputs: mean actions [N, a], or logits."""
        scaled = (inputs - self._mean) * self._scale
        np.minimum(np.maximum(scaled, -OBSERVATION_CLIP, out=scaled), OBSERVATION_CLIP, out=scaled)
        h = scaled.astype(np.float32)
        for w, b in self._layers[:-1]:
            h = h @ w
            h += b
            np.tanh(h, out=h)
        w, b = self._layers[-1]
        out: Array32 = h @ w + b
        return out

    def noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array32:
        """What `act` draws actions with, [*shape, outputs]: Gaussian, or Gumbel for choices."""
        width = self._layers[-1][1].size
        if self.sizes:
            return rng.gumbel(size=(*shape, width)).astype(np.float32)
        return rng.standard_normal((*shape, width), dtype=np.float32)

    def act(self, inputs: Array, noise: Array32 | None) -> tuple[Array32, Array32]:
        """Actions [N, a], of choices their numbers, and log pi of them [N]; noise [N, outputs]
        draws them, None takes the mean, or the likeliest."""
        outputs = self.mean(inputs)
        if self.sizes:
            return choose(outputs, noise, self.sizes)
        if noise is None:
            noise = np.zeros_like(outputs)
        drawn = outputs + self._std * noise
        return cast(Array32, drawn), gaussian_log_prob(noise, self.log_std)


def gaussian_log_prob(noise: Array32, log_std: Array32) -> Array32:
    """log pi of mean + exp(log_std) * noise; noise [..., a] -> [...]."""
    constant = log_std.sum() + 0.5 * log_std.size * np.log(2 * np.pi)
    return cast(Array32, (-0.5 * np.square(noise).sum(axis=-1) - constant).astype(np.float32))


def choose(logits: Array32, noise: Array32 | None, sizes: Sequence[int]) -> tuple[Array32, Array32]:
    """The numbers [N, a] of the values chosen, and their log probability [N]. Adding Gumbel noise
    to logits and taking the largest draws from their softmax."""
    log_prob = np.zeros(len(logits), np.float32)
    chosen = np.empty((len(logits), len(sizes)), np.float32)
    rows, first = np.arange(len(logits)), 0
    for a, size in enumerate(sizes):
        part = logits[:, first : first + size]
        taken = np.argmax(part if noise is None else part + noise[:, first : first + size], axis=1)
        shifted = part - part.max(axis=1, keepdims=True)
        log_prob += shifted[rows, taken] - np.log(np.exp(shifted).sum(axis=1))
        chosen[:, a] = taken
        first += size
    return chosen, log_prob


def applied(actor: Actor, actions: Array32, low: Array, high: Array) -> Array:
    """What the environment is given: choices counted from their lowest, or the box."""
    return low + actions if actor.sizes else to_environment(actions, low, high)


def to_environment(actions: NDArray[np.floating], low: Array, high: Array) -> Array:
    """A policy's actions, clipped to [-1, 1] and scaled to the environment's box."""
    unit = np.minimum(np.maximum(actions.astype(np.float64), -1.0), 1.0)
    if low[0] == -1.0 and (low == -1.0).all() and (high == 1.0).all():
        return unit
    return low + (unit + 1.0) * (0.5 * (high - low))


def from_environment(actions: Array, low: Array, high: Array) -> Array:
    """The inverse of `to_environment` inside the box."""
    return (actions - low) / (0.5 * (high - low)) - 1.0


class LocalCollector:
    """Collects in this process. `first` is the number of its first copy among all copies."""

    def __init__(
        self,
        task: ContinuousTask,
        simulator: Simulator,
        spec: CollectorSpec,
        first: int = 0,
        total: int | None = None,
    ) -> None:
        self._task, self._spec = task, spec
        self._sim = Border(simulator, task.name, first)
        self._first, self._total = first, total or simulator.copies
        self.copies = simulator.copies
        n = simulator.copies
        self._episode = np.zeros(n, np.int64)
        # The first episodes are cut at ages spread over the horizon, so that a rollout always
        # holds all parts of an episode and its mean cost is an episode's.
        self._age = (np.arange(first, first + n) * task.horizon) // self._total
        self._return = np.zeros(n)
        self._length = np.zeros(n)
        self._observation = np.zeros((n, task.observation_dim))
        self._augmentation = np.zeros(n)
        self._retries = Retries(n, first, spec.retry_share, spec.seed)
        self._started = False
        self._left: dict[str, NDArray[Any]] | None = None  # the training that `episodes` left

    def collect(self, policy: Arrays, steps: int, rollout: int) -> Chunk:
        """`steps` steps of every copy; `rollout` numbers the chunk, for its noise."""
        if self._left is not None:
            self.restore(self._left)
        if not self._started:
            self._start(np.arange(self._sim.copies))
            self._started = True
        actor, n, task = Actor(policy), self._sim.copies, self._task
        noise = self._noise(actor, steps, rollout)
        low, high = task.action_low, task.action_high
        data = _Recorder(steps, n, task)
        for t in range(steps):
            inputs = self._inputs()
            actions, log_probs = actor.act(inputs, noise[t])
            step = self._sim.step(applied(actor, actions, low, high))
            self._age += 1
            self._return += step.rewards
            self._length += 1
            self._observation = step.observations
            self._augmentation = self._spec.raw(step.features)
            self._retries.saw(self._augmentation)
            truncated = self._age >= task.horizon
            if step.truncated is not None:
                truncated |= step.truncated
            truncated &= ~step.terminated
            data.record(t, inputs, actions, log_probs, step, truncated, self._retries.now)
            ended = np.flatnonzero(step.terminated | truncated)
            if len(ended):
                own = ended[~self._retries.now[ended]]
                data.finish(t, truncated, self._inputs(), self._return[own], self._length[own])
                self._start(ended)
        return data.chunk(self._inputs())

    def episodes(
        self,
        policy: Arrays,
        count: int,
        deterministic: bool,
        seed: Sequence[int],
        first: int | None = None,
    ) -> list[Trajectory]:
        """`count` whole episodes from the task's own starts, `copies` at a time.

        first: the number of the first among all episodes (by default its copy's among all). The
        training is gone back to only once it goes on, for that can take as long as the episodes.
        """
        self._left = self.save() if self._started else None
        first = self._first if first is None else first
        runs: list[Trajectory] = []
        while len(runs) < count:
            runs += self._episodes_at_once(Actor(policy), deterministic, [*seed, len(runs)], first)
        return runs[:count]

    def save(self) -> dict[str, NDArray[Any]]:
        if self._left is not None:
            return self._left
        state = {f"sim/{k}": v for k, v in self._sim.save().items()} if self._started else {}
        return {
            **state,
            "episode": self._episode.copy(),
            "age": self._age.copy(),
            "return": self._return.copy(),
            "length": self._length.copy(),
            "augmentation": self._augmentation.copy(),
            **self._retries.save(),
        }

    def restore(self, saved: Arrays) -> None:
        self._left = None
        state = {k[4:]: np.asarray(v) for k, v in saved.items() if k.startswith("sim/")}
        self._started = bool(state)
        if state:
            self._observation = self._sim.restore(state)
        self._episode = saved["episode"].astype(np.int64)
        self._age = saved["age"].astype(np.int64)
        self._return = saved["return"].astype(np.float64)
        self._length = saved["length"].astype(np.float64)
        self._augmentation = saved["augmentation"].astype(np.float64)
        self._retries.restore(saved)

    def close(self) -> None:
        self._sim.close()

    def _inputs(self) -> Array:
        n, o = self._observation.shape
        inputs = np.empty((n, o + 1))
        inputs[:, :o], inputs[:, o] = self._observation, self._augmentation
        return inputs

    def _noise(self, actor: Actor, steps: int, rollout: int) -> Array32:
        """[steps, copies, outputs]: this collector's columns of the noise of all copies."""
        rng = np.random.default_rng([*self._spec.seed, NOISE, rollout])
        noise = actor.noise(rng, (steps, self._total))
        return noise[:, self._first : self._first + self._sim.copies]

    def _start(self, which: NDArray[np.intp]) -> None:
        """New episodes in the copies `which`: the task's start, or a demonstration's state."""
        rngs = [
            np.random.default_rng(
                [*self._spec.seed, START, self._first + int(i), self._retries.next(int(i), int(e))]
            )
            for i, e in zip(which, self._episode[which], strict=True)
        ]
        self._observation = self._sim.reset(which, rngs)
        if self._spec.starts is not None:
            placed = [k for k, r in enumerate(rngs) if r.random() < self._spec.start_share]
            rows = [int(rngs[k].integers(len(self._spec.starts))) for k in placed]
            self._observation = self._sim.place(which[placed], self._spec.starts[rows])
        if self._started:
            self._age[which] = 0
        self._episode[which] += 1
        self._return[which] = self._length[which] = self._augmentation[which] = 0

    def _episodes_at_once(
        self, actor: Actor, deterministic: bool, seed: Sequence[int], first: int
    ) -> list[Trajectory]:
        """One episode of every copy; a copy that has ended goes on unrecorded."""
        sim, task, n = self._sim, self._task, self._sim.copies
        rngs = [np.random.default_rng([*seed, EVALUATION, first + i]) for i in range(n)]
        observation = sim.reset(np.arange(n), rngs)
        seeds = sim.seeds  # only where a seed is all that an episode begins from
        augmentation, length = np.zeros(n), np.full(n, task.horizon)
        terminated, over = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        seen, taken, steps = [observation], [], []
        for t in range(task.horizon):
            noise = None if deterministic else np.array([actor.noise(r, ()) for r in rngs])
            drawn, _ = actor.act(np.column_stack([observation, augmentation]), noise)
            actions = applied(actor, drawn, task.action_low, task.action_high)
            step = sim.step(actions)
            observation, augmentation = step.observations, self._spec.raw(step.features)
            seen.append(observation)
            taken.append(actions)
            steps.append(step)
            ends = step.terminated
            if step.truncated is not None:
                ends = ends | step.truncated
            length[ends & ~over] = t + 1
            terminated |= step.terminated & ~over
            over |= ends
            if over.all():
                break
        return [
            Trajectory(
                observations=np.array([o[i] for o in seen[: length[i] + 1]]),
                actions=np.array([a[i] for a in taken[: length[i]]]),
                rewards=np.array([s.rewards[i] for s in steps[: length[i]]]),
                features=np.array([s.features[i] for s in steps[: length[i]]]),
                terminated=bool(terminated[i]),
                seed=None if seeds is None else int(seeds[i]),
            )
            for i in range(n)
        ]


class GroupedCollector:
    """Groups of copies, each in step with itself only, in `threads` threads.

    Simulators release the interpreter lock while they step, so one group's policy and
    bookkeeping run beside another's physics, and no thread waits for the others before the
    rollout ends. The groups are fixed: threads change no bit of the result.
    """

    def __init__(self, groups: Sequence[LocalCollector], threads: int) -> None:
        self._groups = groups
        self._threads = ThreadPoolExecutor(max_workers=threads)

    def collect(self, policy: Arrays, steps: int, rollout: int) -> Chunk:
        return join_chunks(
            list(self._threads.map(lambda g: g.collect(policy, steps, rollout), self._groups))
        )

    def episodes(
        self, policy: Arrays, count: int, deterministic: bool, seed: Sequence[int]
    ) -> list[Trajectory]:
        runs: list[Trajectory] = []
        while len(runs) < count:
            need = -(-(count - len(runs)) // self._groups[0].copies)
            busy, path = self._groups[:need], [*seed, len(runs)]
            parts = self._threads.map(
                lambda g, p=path: g.episodes(policy, g.copies, deterministic, p), busy
            )
            runs += [run for part in parts for run in part]
        return runs[:count]

    def save(self) -> dict[str, NDArray[Any]]:
        return {f"group{i}/{k}": v for i, g in enumerate(self._groups) for k, v in g.save().items()}

    def restore(self, saved: Arrays) -> None:
        for i, group in enumerate(self._groups):
            prefix = f"group{i}/"
            group.restore({k[len(prefix) :]: v for k, v in saved.items() if k.startswith(prefix)})

    def close(self) -> None:
        self._threads.shutdown()
        for group in self._groups:
            group.close()


class _Recorder:
    """The arrays of a chunk while it is being filled."""

    def __init__(self, steps: int, n: int, task: ContinuousTask) -> None:
        self._inputs = np.empty((steps, n, task.observation_dim + 1))
        self._actions = np.empty((steps, n, len(task.action_low)), np.float32)
        self._log_probs = np.empty((steps, n), np.float32)
        self._rewards = np.empty((steps, n))
        self._features = np.empty((steps, n, len(task.features)))
        self._terminated = np.empty((steps, n), np.bool_)
        self._truncated = np.empty((steps, n), np.bool_)
        self._retried = np.empty((steps, n), np.bool_)
        self._final_inputs: list[Array] = [np.empty((0, task.observation_dim + 1))]
        self._final_at: list[tuple[int, int]] = []
        self._returns: list[float] = []
        self._lengths: list[float] = []

    def record(
        self,
        t: int,
        inputs: Array,
        actions: Array32,
        log_probs: Array32,
        step: Step,
        truncated: NDArray[np.bool_],
        retried: NDArray[np.bool_],
    ) -> None:
        self._inputs[t], self._actions[t], self._rewards[t] = inputs, actions, step.rewards
        self._log_probs[t] = log_probs
        self._features[t], self._terminated[t] = step.features, step.terminated
        self._truncated[t], self._retried[t] = truncated, retried

    def finish(
        self, t: int, truncated: NDArray[np.bool_], inputs: Array, returns: Array, lengths: Array
    ) -> None:
        cut = np.flatnonzero(truncated)
        self._final_inputs.append(inputs[cut])
        self._final_at += [(t, int(i)) for i in cut]
        self._returns += returns.tolist()
        self._lengths += lengths.tolist()

    def chunk(self, last_inputs: Array) -> Chunk:
        return Chunk(
            inputs=self._inputs,
            actions=self._actions,
            log_probs=self._log_probs,
            rewards=self._rewards,
            features=self._features,
            terminated=self._terminated,
            truncated=self._truncated,
            last_inputs=last_inputs,
            final_inputs=np.concatenate(self._final_inputs),
            final_at=np.array(self._final_at, np.int64).reshape(-1, 2),
            retried=self._retried,
            returns=np.array(self._returns),
            lengths=np.array(self._lengths),
        )
