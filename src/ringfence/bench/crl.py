"""How fast constrained RL on the Ant is: ratios measured side by side in one run.

For each simulator, in rounds that alternate so that a noisy machine hits both alike:
the ceiling (the simulator alone, stepping and resetting as many Ants on as many threads or
processes) and whole training (training steps counted, all work in the time, compilation apart).
Stable-Baselines3's PPO on the same Ant at the same rollout, batch and passes is the peer, where
it is installed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from statistics import median

import numpy as np

from ringfence.constraints.linear import parse_inequality
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Problem
from ringfence.solvers.ppo import (
    EVALUATE,
    PPOConfig,
    first_learner,
    learn,
    make_collector,
    train,
)
from ringfence.worlds.ant import AntTask
from ringfence.worlds.ant_bullet import AntBulletTask, BulletSimulator
from ringfence.worlds.sim.rollouts import (
    EVALUATION,
    Actor,
    Arrays,
    Collector,
    ContinuousTask,
    Simulator,
)

CONSTRAINT, LIMIT = "speed <= 0.75", 20.0
#: Updates before the clock starts: compilation, and the first tenth of a training, in which
#: Ants fall (and are reset) more often than they ever do later.
WARM_UP = 30
#: Updates to learn the time split from; the last counts.
SPLIT_UPDATES = 3
#: Steps of the tape that the ceiling replays, over and over.
TAPE_STEPS = 300
SB3_ENVIRONMENTS = 4

Report = Callable[[str], None]


@dataclass(frozen=True)
class BenchConfig:
    """`rounds` of `updates` updates each, and as many steps for the ceiling."""

    rounds: int = 3
    updates: int = 15
    threads: int = 2
    ppo: PPOConfig = field(default_factory=PPOConfig)


def bench_crl(config: BenchConfig | None = None, report: Report = print) -> dict[str, float | None]:
    """All of it; flat name -> number, null where a peer or extra isn't installed."""
    config = config or BenchConfig()
    numbers: dict[str, float | None] = {}
    numbers |= bench_mujoco(config, report)
    numbers |= bench_sb3(config, numbers, report)
    numbers |= bench_bullet(config, report)
    return numbers


def bench_mujoco(config: BenchConfig, report: Report) -> dict[str, float | None]:
    task = AntTask(threads=config.threads)
    steps = config.updates * config.ppo.rollout_steps
    simulator = task.simulator(config.ppo.copies)

    def ceiling(tape: Tape) -> float:
        return simulator_speed(simulator, tape, steps)

    numbers = _alternate("mujoco", task, ceiling, config, report)
    split = time_split(task, config.ppo)
    total = config.ppo.rollout / (numbers["mujoco_training_steps_per_s"] or np.nan)
    report(
        f"  one rollout of {config.ppo.rollout} steps takes {total:.3f} s; its parts alone: "
        + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in split.items())
    )
    return {**numbers, **{f"mujoco_{k}_s": v for k, v in split.items()}}


def bench_bullet(config: BenchConfig, report: Report) -> dict[str, float | None]:
    task = AntBulletTask(workers=config.threads)
    steps = config.updates * config.ppo.rollout_steps

    def ceiling(tape: Tape) -> float:
        return _bullet_ceiling(config.threads, tape, steps)

    try:
        return _alternate("bullet", task, ceiling, config, report)
    except InvalidInput as error:
        report(f"bullet: skipped ({error})")
        return {"bullet_fraction_of_ceiling": None}


def bench_sb3(
    config: BenchConfig, ours: dict[str, float | None], report: Report
) -> dict[str, float | None]:
    """Stable-Baselines3's PPO on Gymnasium's Ant-v5, same rollout, batch and passes."""
    try:
        from stable_baselines3 import PPO as PeerPPO
        from stable_baselines3.common.env_util import make_vec_env
    except ImportError:
        report("Stable-Baselines3: skipped (pip install 'ringfence[peers]')")
        return {"mujoco_over_sb3": None}
    ppo = config.ppo
    options = {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0}
    envs = make_vec_env("Ant-v5", n_envs=SB3_ENVIRONMENTS, seed=0, env_kwargs=options)
    peer = PeerPPO(
        "MlpPolicy",
        envs,
        n_steps=ppo.rollout // SB3_ENVIRONMENTS,
        batch_size=ppo.rollout // ppo.minibatches,
        n_epochs=ppo.pace.passes,
        policy_kwargs={"net_arch": list(ppo.hidden)},
        device="cpu",
        seed=0,
    )
    peer.learn(ppo.rollout)
    start = time.perf_counter()
    peer.learn(config.updates * ppo.rollout, reset_num_timesteps=False)
    speed = config.updates * ppo.rollout / (time.perf_counter() - start)
    mine = ours.get("mujoco_training_steps_per_s")
    ratio = mine / speed if mine is not None else None
    report(f"Stable-Baselines3 PPO: {speed:,.0f} steps/s; ours is {ratio or np.nan:.2f} x that")
    return {"mujoco_sb3_steps_per_s": speed, "mujoco_over_sb3": ratio}


@dataclass(frozen=True, eq=False)
class Tape:
    """What a policy did: actions [TAPE_STEPS, copies, a] from the starts of `seed`.

    Replayed from the same starts, a simulator does again exactly the physics that the policy
    met, without a policy.
    """

    actions: Array
    seed: tuple[int, ...]

    def starts(self, which: Sequence[int]) -> list[np.random.Generator]:
        # As a collector seeds the first episode of each copy.
        return [np.random.default_rng([*self.seed, 0, 0, EVALUATION, i]) for i in which]

    def part(self, first: int, copies: int) -> Array:
        return np.ascontiguousarray(self.actions[:, first : first + copies])


def record(collector: Collector, policy: Arrays, copies: int) -> Tape:
    seed = (0, EVALUATE)
    actions = np.zeros((TAPE_STEPS, copies, 8))
    for i, t in enumerate(collector.episodes(policy, copies, False, seed)):
        shown = t.actions[:TAPE_STEPS]
        actions[: len(shown), i] = shown
    return Tape(actions, seed)


def simulator_speed(simulator: Simulator, tape: Tape, steps: int, first: int = 0) -> float:
    """Steps per second of a simulator alone that replays a tape, from copy `first` of it on."""
    n = simulator.copies
    actions, all_copies = tape.part(first, n), np.arange(n)
    start = time.perf_counter()
    for t in range(steps):
        if t % TAPE_STEPS == 0:
            simulator.reset(all_copies, tape.starts(range(first, first + n)))
        simulator.step(actions[t % TAPE_STEPS])
    return steps * n / (time.perf_counter() - start)


def time_split(task: ContinuousTask, config: PPOConfig) -> dict[str, float]:
    """Seconds of a rollout's parts, each alone: collect (simulate and act), act, learn."""
    problem = _problem(task)
    collector = make_collector(problem, config)
    learner = first_learner(problem, task, config)
    try:
        for _ in range(SPLIT_UPDATES):
            start = time.perf_counter()
            acted = learner.policy()
            chunk = collector.collect(acted, config.rollout_steps, learner.updates)
            collected = time.perf_counter()
            learner, _ = learn(learner, chunk, acted, problem, config)
            learned = time.perf_counter()
    finally:
        collector.close()
    actor, begin = Actor(acted), time.perf_counter()
    for inputs in chunk.inputs:
        actor.mean(inputs)
    return {
        "collect": collected - start,
        "act": time.perf_counter() - begin,
        "learn": learned - collected,
    }


def _alternate(
    name: str,
    task: ContinuousTask,
    ceiling: Callable[[Tape], float],
    config: BenchConfig,
    report: Report,
) -> dict[str, float | None]:
    """Rounds of ceiling and training; medians of the speeds and of the rounds' ratios."""
    updates = WARM_UP + config.rounds * config.updates
    ppo = replace(config.ppo, env_steps=updates * config.ppo.rollout)
    problem = _problem(task)
    collector = make_collector(problem, ppo)
    tops, speeds = [], []
    try:
        training = train(problem, ppo, collector)
        for _ in range(WARM_UP):
            learner, _ = next(training)
        tape = record(collector, learner.policy(), ppo.copies)
        for r in range(config.rounds):
            tops.append(ceiling(tape))
            start = time.perf_counter()
            for _ in range(config.updates):
                next(training)
            speeds.append(config.updates * ppo.rollout / (time.perf_counter() - start))
            report(
                f"{name} round {r + 1}: simulator alone {tops[-1]:,.0f} steps/s, training "
                f"{speeds[-1]:,.0f} steps/s, {speeds[-1] / tops[-1]:.1%}"
            )
    finally:
        collector.close()
    return {
        f"{name}_ceiling_steps_per_s": median(tops),
        f"{name}_training_steps_per_s": median(speeds),
        f"{name}_fraction_of_ceiling": median(s / t for s, t in zip(speeds, tops, strict=True)),
    }


def _problem(task: ContinuousTask) -> Problem:
    return Problem(task, parse_inequality(CONSTRAINT, task.features), LIMIT, None, (0,))


def _bullet_ceiling(processes: int, tape: Tape, steps: int) -> float:
    """Bullet alone in as many processes as training has workers, all at the same time."""
    context = get_context("spawn")
    share = tape.actions.shape[1] // processes
    alone = partial(_bullet_alone, tape, share, steps)
    together = (context.Barrier(processes),)
    with ProcessPoolExecutor(processes, context, _meet, together) as pool:
        return sum(pool.map(alone, range(0, processes * share, share)))


#: In a process: where it waits until all have built their Ants.
_meeting: list[Barrier] = []


def _meet(barrier: Barrier) -> None:
    _meeting.append(barrier)


def _bullet_alone(tape: Tape, copies: int, steps: int, first: int) -> float:
    simulator = BulletSimulator(copies)
    _meeting[0].wait()
    return simulator_speed(simulator, tape, steps, first)
