"""Trainings of an experiment in processes of their own, one core each.

Nothing comes back from a process but words: what it trains it leaves where the experiment finds it
again.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ringfence.compilation import keep_compiled
from ringfence.errors import RingfenceError
from ringfence.reproduce import experiment as experiments
from ringfence.reproduce.analyses import play_of
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.study import Study
from ringfence.worlds.sim.warnings_once import warn_once

#: Kinds of experiments that play a seed by a single training.
SINGLE_TRAININGS = ("training", "limit")
#: What a training may need of others: it waits until those that need nothing are done.
NEEDS = {"after", "starts", "share_of"}
#: A process has one thread. numpy reads this when it is loaded.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def play_apart(
    study: Study, name_or_path: str, settings: Sequence[str], plays: Sequence[tuple[Variant, int]]
) -> None:
    """Play seeds of variants, `study.workers` at once; what fails is told, and left to whoever
    plays it next."""
    os.environ.update(ONE_THREAD)
    context = get_context("spawn")
    cores: Any = context.Queue()
    there = sorted(os.sched_getaffinity(0))
    for n in range(study.workers):
        cores.put(there[n % len(there)])
    with ProcessPoolExecutor(study.workers, context, begin, (cores,)) as pool:
        for needy in (False, True):
            jobs = {}
            for variant, seed in plays:
                if needy == bool(NEEDS & set(variant.get("training"))):
                    asked = (name_or_path, tuple(settings), str(study.out), variant.name, seed)
                    jobs[pool.submit(play, *asked)] = f"{variant.name}, seed {seed}"
            for job in as_completed(jobs):
                study.say(f"{jobs[job]}: {job.result() or 'played'}")


def begin(cores: Any) -> None:
    """What a process does first: it takes a core."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for who started us
    os.sched_setaffinity(0, {cores.get()})
    keep_compiled()
    warn_once()


def play(name_or_path: str, settings: Sequence[str], out: str, name: str, seed: int) -> str:
    """Play a seed of the variant of this name; what went wrong, or ""."""
    experiment = experiments.read(name_or_path)
    (variant,) = [v for v in experiments.chosen(experiment, "*", (), settings) if v.name == name]

    def say(line: str) -> None:
        print(f"{name}, seed {seed}: {line.strip()}", flush=True)

    try:
        play_of(experiment.file.kind)(Study(experiment, (variant,), Path(out), say), variant, seed)
    except RingfenceError as problem:
        return str(problem)
    return ""
