"""A game of an experiment, played to its end."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from ringfence.disk import read_json
from ringfence.report import page
from ringfence.reproduce import checked, clearance, demonstrate
from ringfence.reproduce.demonstrate import configuration
from ringfence.reproduce.experiment import Experiment, Variant
from ringfence.reproduce.study import Say, Study, Summary, alone, key_of, place, telling
from ringfence.runs import driver
from ringfence.runs.backend import Backend
from ringfence.runs.summary import is_whole


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


def folder_of(experiment: Experiment, variant: Variant, seed: int) -> Path:
    """Where the run of a seed's game is, or will be: found by all that determines it."""
    document = document_of(experiment, variant, seed)
    return place("games", f"{experiment.name}-{variant.name}-seed-{seed}", document)


def document_of(experiment: Experiment, variant: Variant, seed: int) -> Summary:
    """All that determines the game of a seed."""
    config = asdict(configuration(experiment, variant, seed))
    del config["command"], config["engine"]
    config["demos"] = {key: config["demos"][key] for key in ("experts", "drop_failed")}
    return {**config, "demonstrations": demonstrate.document(experiment, variant, seed)}


def run_of(
    experiment: Experiment, variant: Variant, seed: int, say: Say, workers: int | Backend = 1
) -> Path:
    """The finished run of a seed's game, with its page."""
    with alone(key_of(document_of(experiment, variant, seed))):
        run = folder_of(experiment, variant, seed)
        if not (run / "config.toml").is_file():
            demos = demonstrate.demonstrations(experiment, variant, seed, say, workers)
            driver.create(run, configuration(experiment, variant, seed), demos)
        done = run / "summary.json"
        if not done.is_file() or not is_whole(read_json(done)):
            driver.drive(run, workers, telling(say))
        with alone("page"):  # matplotlib knows one thread
            if not (run / page.NAME).is_file():
                page.write(run)
    return run
