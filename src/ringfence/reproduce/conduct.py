"""`ringfence reproduce NAME|FILE.toml`: an experiment, from nothing to tables.

One driver for all of them: variants x seeds are planned, demonstrations and experts made or found,
each seed played or found finished, and pages written anew after each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ringfence.disk import write_json
from ringfence.errors import InvalidInput
from ringfence.reproduce import experiment as experiments
from ringfence.reproduce.analyses import figure_of, play_of
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.pages import write_page
from ringfence.reproduce.side_by_side import SINGLE_TRAININGS, play_apart
from ringfence.reproduce.study import (
    TIMES,
    Say,
    Study,
    Summary,
    found_variants,
    note,
    note_seconds,
    refuse_other_results,
)
from ringfence.runs.backend import Backend
from ringfence.runs.config import make_solver, make_world, tagged
from ringfence.runs.engines import engine

#: Games of a study that are driven at the same time: each keeps its history in memory.
MOST_AT_ONCE = 64


def run(
    name_or_path: str,
    *,
    seeds: int | None = None,
    numbers: Sequence[int] = (),
    only: tuple[str, ...] = (),
    variants: tuple[str, ...] = (),
    settings: Sequence[str] = (),
    workers: int = 1,
    on: str | None = None,
    out: Path | None = None,
    data: Path | None = None,
    command: str = "",
    say: Say = print,
) -> Path:
    """Play what was not played yet, and write everything to `out`, which is returned.

    seeds: how many, instead of what the file says; numbers: of them, these alone; variants: which,
    with * for any; only: these parts of them; settings: "table.key=value", which make new variants
    of those that are played; workers: trainings on their own run so many at once; on: the engine
    that solves, all seeds of all variants at once; data: a file that the experiment is about, where
    it is about one.
    """
    experiment = experiments.read(name_or_path)
    chosen = experiments.chosen(experiment, variants, only, settings, seeds)
    place = out or Path("results") / experiment.name
    for variant in chosen:
        refuse_other_results(variant, place / variant.name)
    command = command or f"ringfence reproduce {name_or_path}"
    for number in numbers:
        if all(number not in variant.numbers for variant in chosen):
            raise InvalidInput(f"--seed {number}: no variant that is played has this seed")
    pairs = [(v, n) for v in chosen for n in v.numbers if not numbers or n in numbers]
    with engine(workers, on, *(settings_of(chosen) if on else ())) as who:
        study = Study(experiment, tuple(chosen), place, say, who, seeds, data=data)
        apart = [(v, n) for v, n in pairs if v.kind in SINGLE_TRAININGS]
        if isinstance(who, int) and who > 1 and apart:
            play_apart(study, name_or_path, settings, apart)
        played = in_turn(study, pairs) if isinstance(who, int) else at_once(study, pairs, who)
        for (variant, seed), play in zip(pairs, played, strict=True):
            one(study, variant, seed, command, play)
            write_variant(study, variant, command)
        write_experiment(study, command)
    say(f"saved to {place}")
    return place


Play = Callable[[], tuple[Summary, float]]


def settings_of(variants: Sequence[Variant]) -> list[Any]:
    """Of all worlds and solvers, each made here first: what can't be made here is not sent."""
    found = []
    for variant in variants:
        for name, make in (("world", make_world), ("solver", make_solver)):
            if "kind" in variant.get(name):
                found.append(tagged(variant.name, name, variant.get(name)))
                make(found[-1])
    return found


def in_turn(study: Study, pairs: Sequence[tuple[Variant, int]]) -> list[Play]:
    def play(variant: Variant, seed: int) -> tuple[Summary, float]:
        study.say(f"{study.experiment.name}/{variant.name}, seed {seed}")
        summary, seconds = play_of(variant.kind)(study, variant, seed)
        return summary, seconds

    return [partial(play, *pair) for pair in pairs]


def at_once(study: Study, pairs: Sequence[tuple[Variant, int]], engine: Backend) -> list[Play]:
    """All seeds of all variants are driven at the same time, so that their solves are one pool of
    work; what comes of them is written in the order of `pairs`."""
    threads = ThreadPoolExecutor(MOST_AT_ONCE)

    def play(variant: Variant, seed: int) -> tuple[Summary, float]:
        def say(text: str) -> None:
            study.say(f"{variant.name}, seed {seed}: {text.strip()}")

        say("begins")
        mine = replace(study, say=say)
        summary, seconds = play_of(variant.kind)(mine, variant, seed)
        return summary, seconds

    futures = [threads.submit(play, *pair) for pair in pairs]

    def result(future: Future[tuple[Summary, float]]) -> tuple[Summary, float]:
        try:
            return future.result()
        except BaseException:  # the others have nobody to wait for
            threads.shutdown(wait=False, cancel_futures=True)
            engine.close()
            raise

    return [partial(result, future) for future in futures]


def one(study: Study, variant: Variant, seed: int, command: str, play: Play) -> None:
    """A seed's summary and what is beside it."""
    folder = study.folder(variant)
    summary, seconds = play()
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / f"seed-{seed}.json", summary)
    note_seconds(folder / TIMES, seed, seconds)
    note(folder, study.experiment, command, version("ringfence"), variant, seed)


def write_variant(study: Study, variant: Variant, command: str) -> None:
    """The page and the figures of one variant, from what is there."""
    experiment, folder = study.experiment, study.folder(variant)
    of_one = replace(study, variants=(variant,))
    if experiment.each:
        heading = [
            f"{experiment.title}: {variant.name}",
            f"Made by `{command}`.",
            experiment.file.text,
        ]
        write_page(of_one, experiment.each, folder, [*heading, variant.reason])
    draw(of_one, folder, each=True)


def write_experiment(study: Study, command: str) -> None:
    """The page and the figures over all variants that are there."""
    experiment = study.experiment
    found = found_variants(experiment, study.out, list(study.variants))
    everything = replace(study, variants=tuple(found))
    if experiment.tables:
        heading = [experiment.title, f"Made by `{command}`.", experiment.file.text]
        write_page(everything, experiment.tables, study.out, heading)
    draw(everything, study.out, each=False)
    note(study.out, experiment, command, version("ringfence"))


def draw(study: Study, folder: Path, each: bool) -> None:
    for figure in study.experiment.figures:
        if figure.each == each:
            figure_of(figure.draw)(replace(study, options=figure.options), folder / figure.file)
