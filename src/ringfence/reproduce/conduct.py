"""`ringfence reproduce NAME|FILE.toml`: an experiment, from nothing to tables.

One driver for all of them: variants x seeds are planned, demonstrations and experts made or found,
each seed played or found finished, and pages written anew after each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

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
    found_variants,
    note,
    note_seconds,
    refuse_other_results,
)


def run(
    name_or_path: str,
    *,
    seeds: int | None = None,
    numbers: Sequence[int] = (),
    only: tuple[str, ...] = (),
    variants: tuple[str, ...] = (),
    settings: Sequence[str] = (),
    workers: int = 1,
    out: Path | None = None,
    data: Path | None = None,
    command: str = "",
    say: Say = print,
) -> Path:
    """Play what was not played yet, and write everything to `out`, which is returned.

    seeds: how many, instead of what the file says; numbers: of them, these alone; variants: which,
    with * for any; only: these parts of them; settings: "table.key=value", which make new variants
    of those that are played; workers: trainings on their own run so many at once; data: a file that
    the experiment is about, where it is about one.
    """
    if workers < 1:
        raise InvalidInput(f"--workers must be at least 1, got {workers}")
    experiment = experiments.read(name_or_path)
    chosen = experiments.chosen(experiment, variants, only, settings, seeds)
    place = out or Path("results") / experiment.name
    for variant in chosen:
        refuse_other_results(variant, place / variant.name)
    study = Study(experiment, tuple(chosen), place, say, workers, seeds, data=data)
    command = command or f"ringfence reproduce {name_or_path}"
    for number in numbers:
        if all(number not in variant.numbers for variant in chosen):
            raise InvalidInput(f"--seed {number}: no variant that is played has this seed")
    plays = [(v, n) for v in chosen for n in v.numbers if not numbers or n in numbers]
    if workers > 1 and experiment.file.kind in SINGLE_TRAININGS:
        play_apart(study, name_or_path, settings, plays)
    for variant, seed in plays:
        say(f"{experiment.name}/{variant.name}, seed {seed}")
        one(study, variant, seed, command)
        write_variant(study, variant, command)
    write_experiment(study, command)
    say(f"saved to {place}")
    return place


def one(study: Study, variant: Variant, seed: int, command: str) -> None:
    """A seed's summary and what is beside it."""
    folder = study.folder(variant)
    summary, seconds = play_of(study.experiment.file.kind)(study, variant, seed)
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
