"""Trainings of an experiment in processes of their own, one core each.

Nothing comes back from a process but words: what it trains it leaves where the experiment finds it
again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ringfence.errors import RingfenceError
from ringfence.reproduce import experiment as experiments
from ringfence.reproduce.analyses import play_of
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.solves import referred
from ringfence.reproduce.study import Study
from ringfence.runs.backend import begin_work
from ringfence.worlds.sim.warnings_once import warn_once

#: Kinds of experiments that play a seed by a single training.
SINGLE_TRAININGS = ("limit",)
#: A process has one thread. numpy reads this when it is loaded.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def play_apart(
    study: Study, name_or_path: str, settings: Sequence[str], plays: Sequence[tuple[Variant, int]]
) -> None:
    """Play seeds of variants, `study.processes` at once; what fails is told, and left to whoever
    plays it next."""
    os.environ.update(ONE_THREAD)
    context = get_context("spawn")
    cores: Any = context.Queue()
    there = sorted(os.sched_getaffinity(0))
    for n in range(study.processes):
        cores.put(there[n % len(there)])
    pool = ProcessPoolExecutor(study.processes, context, begin, (cores,))
    try:
        for wave in waves(study, plays):
            jobs = {}
            for name, seed in wave:
                asked = (name_or_path, tuple(settings), str(study.out), name, seed)
                jobs[pool.submit(play, *asked)] = f"{name}, seed {seed}"
            for job in as_completed(jobs):
                study.say(f"{jobs[job]}: {job.result() or 'played'}")
    except BaseException:  # nobody waits for what is still being trained
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def waves(
    study: Study, plays: Sequence[tuple[Variant, int]]
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Variants' names and seeds: those that need no other training and what others need, then the
    others."""
    first: dict[tuple[str, int], None] = {}
    then = []
    for variant, seed in plays:
        needed = variant.get("training").get("share_of")
        if needed is None:
            first[variant.name, seed] = None
        else:
            _, other = referred(study.experiment, needed)
            first[other.name, other.first_seed] = None
            then.append((variant.name, seed))
    return list(first), then


def begin(cores: Any) -> None:
    """What a process does first: it takes a core."""
    begin_work(None)
    os.sched_setaffinity(0, {cores.get()})
    warn_once()


def play(name_or_path: str, settings: Sequence[str], out: str, name: str, seed: int) -> str:
    """Play a seed of the variant of this name; what went wrong, or ""."""
    experiment = experiments.read(name_or_path)
    there = [*experiments.chosen(experiment, "*", (), settings), *experiment.variants.values()]
    variant = next(v for v in there if v.name == name)

    def say(line: str) -> None:
        print(f"{name}, seed {seed}: {line.strip()}", flush=True)

    try:
        play_of(variant.kind)(Study(experiment, (variant,), Path(out), say), variant, seed)
    except RingfenceError as problem:
        return str(problem)
    return ""
