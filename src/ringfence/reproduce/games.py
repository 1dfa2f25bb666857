"""A game of an experiment, played to its end."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from ringfence.demos import dataset
from ringfence.reproduce import checked, clearance
from ringfence.reproduce.demonstrate import configuration, demonstrations
from ringfence.reproduce.experiment import Experiment, Variant
from ringfence.reproduce.study import Say, Study, Summary, place, telling
from ringfence.runs import driver
from ringfence.runs.files import read_json


def play(study: Study, variant: Variant, seed: int) -> tuple[Summary, float]:
    """One seed's summary and the seconds of its game, from where its run is."""
    if clearance.clearance_of(variant):
        clearance.require(variant)
    run = run_of(study.experiment, variant, seed, study.say, study.workers)
    if clearance.clearance_of(variant):
        clearance.play(study, variant, seed, run)
    if "checked" in (table.rows for table in study.experiment.tables):
        checked.play(study, variant, seed)
    summary = read_json(run / "summary.json")
    return summary, float(read_json(run / "timing.json")["seconds"])


def run_of(experiment: Experiment, variant: Variant, seed: int, say: Say, workers: int = 1) -> Path:
    """The finished run of a seed's game."""
    config = configuration(experiment, variant, seed)
    demos = demonstrations(experiment, variant, seed, say)
    document = {**asdict(config), "demonstrations": dataset.content_hash(demos)}
    del document["command"], document["demos"]
    document["drop_failed"] = config.demos.drop_failed
    run = place("games", f"{experiment.name}-{variant.name}-seed-{seed}", document)
    if not (run / "config.toml").is_file():
        driver.create(run, config, demos)
    if not (run / "summary.json").is_file():
        driver.drive(run, workers, telling(say))
    return run
