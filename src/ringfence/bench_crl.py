"""How fast constrained RL on the Ant is: ratios measured side by side in one run.

For each simulator, in rounds that alternate so that a noisy machine hits both alike:
the ceiling (the simulator alone, stepping and resetting as many Ants on as many threads or
processes) and whole training (training steps counted, all work in the time, compilation apart).
Stable-Baselines3's PPO on the same Ant at the same rollout, batch and passes is the peer, where
it is installed.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from statistics import median
from typing import Any

import numpy as np

from ringfence.constraints.linear import parse_inequality
from ringfence.errors import InvalidInput
from ringfence.objects import Problem
from ringfence.solvers.ppo import PPOConfig, collect, first_learner, learn, make_collector, train
from ringfence.worlds.ant import AntTask
from ringfence.worlds.ant_bullet import GROUP, AntBulletTask, BulletSimulator
from ringfence.worlds.rollouts import Actor, ContinuousTask, Simulator

CONSTRAINT, LIMIT = "speed <= 0.75", 20.0
#: Updates before the clock starts: compilation, and the first tenth of a training, in which
#: Ants fall (and are reset) more often than they ever do later.
WARM_UP = 30
#: Updates to learn the time split from; the last counts.
SPLIT_UPDATES = 3
#: Spread of the ceiling's random actions: a young policy's.
ACTION_STD = 0.5
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
    steps = config.updates * config.ppo.steps
    simulator = task.simulator(config.ppo.copies)

    def ceiling() -> float:
        return simulator_speed(simulator, steps)

    numbers = _alternate("mujoco", task, ceiling, config, report)
    split = time_split(task, config.ppo)
    numbers["mujoco_cpu_fraction"] = cpu_fraction(task, simulator, config)
    total = config.ppo.rollout / (numbers["mujoco_training_steps_per_s"] or np.nan)
    report(
        f"  one rollout of {config.ppo.rollout} steps takes {total:.3f} s; its parts alone: "
        + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in split.items())
    )
    report(
        f"  processor time: physics is {numbers['mujoco_cpu_fraction']:.1%} of all that is spent"
    )
    return {**numbers, **{f"mujoco_{k}_s": v for k, v in split.items()}}


def bench_bullet(config: BenchConfig, report: Report) -> dict[str, float | None]:
    task = AntBulletTask(workers=config.threads)
    steps = config.updates * config.ppo.steps

    def ceiling() -> float:
        return _bullet_ceiling(config.threads, config.ppo.copies, steps)

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
        batch_size=ppo.batch,
        n_epochs=ppo.passes,
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


def simulator_speed(simulator: Simulator, steps: int) -> float:
    """Steps per second of a simulator alone, with random actions and resets."""
    n = simulator.copies
    rng = np.random.default_rng(0)
    simulator.reset(np.arange(n), [np.random.default_rng(i) for i in range(n)])
    actions = np.clip(ACTION_STD * rng.standard_normal((64, n, 8)), -1, 1)
    start = time.perf_counter()
    for t in range(steps):
        fallen = np.flatnonzero(simulator.step(actions[t % 64]).terminated)
        if len(fallen):
            simulator.reset(fallen, [rng] * len(fallen))
    return steps * n / (time.perf_counter() - start)


def cpu_fraction(task: ContinuousTask, simulator: Simulator, config: BenchConfig) -> float:
    """Processor time of the simulator alone over that of training, for as many steps.

    What the wall clock's fraction would be if no processor ever idled; other programs on the
    machine hardly change it.
    """
    start = time.process_time()
    simulator_speed(simulator, config.updates * config.ppo.steps)
    alone = time.process_time() - start
    ppo = replace(config.ppo, env_steps=(WARM_UP + config.updates) * config.ppo.rollout)
    problem = _problem(task)
    collector = make_collector(problem, ppo)
    try:
        training = train(problem, ppo, collector)
        for _ in range(WARM_UP):
            next(training)
        start = time.process_time()
        for _ in range(config.updates):
            next(training)
        whole = time.process_time() - start
    finally:
        collector.close()
    return alone / whole


def time_split(task: ContinuousTask, config: PPOConfig) -> dict[str, float]:
    """Seconds of a rollout's parts, each alone: collect (simulate and act), act, learn."""
    problem = _problem(task)
    collector = make_collector(problem, config)
    learner = first_learner(problem, task, config)
    try:
        for _ in range(SPLIT_UPDATES):
            start = time.perf_counter()
            chunk, acted = collect(learner, collector, config)
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
    ceiling: Callable[[], float],
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
            next(training)
        for r in range(config.rounds):
            tops.append(ceiling())
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


def _bullet_ceiling(processes: int, copies: int, steps: int) -> float:
    """Bullet alone in as many processes as training has workers, all at the same time."""
    context = multiprocessing.get_context("spawn")
    pipes: list[Any] = []
    workers = []
    per_worker = max(GROUP, copies // processes)
    for _ in range(processes):
        ours, theirs = context.Pipe()
        worker = context.Process(target=_bullet_alone, args=(theirs, per_worker, steps))
        worker.start()
        pipes.append(ours)
        workers.append(worker)
    for pipe in pipes:  # all built
        pipe.recv_bytes()
    for pipe in pipes:
        pipe.send_bytes(b"go")
    speeds = [float(np.frombuffer(pipe.recv_bytes(), np.float64)[0]) for pipe in pipes]
    for worker in workers:
        worker.join()
    return sum(speeds)


def _bullet_alone(pipe: Connection, copies: int, steps: int) -> None:
    simulator = BulletSimulator(copies)
    pipe.send_bytes(b"ready")
    pipe.recv_bytes()
    pipe.send_bytes(np.array([simulator_speed(simulator, steps)]).tobytes())
    simulator.close()
