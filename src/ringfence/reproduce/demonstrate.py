"""Configurations and demonstrations of games: made once, then found by what determines them."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from ringfence.demos import dataset
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations
from ringfence.reproduce import solves
from ringfence.reproduce.experiment import CONFIG, Experiment, Settings, Variant
from ringfence.reproduce.solves import referred, trained
from ringfence.reproduce.study import Say, alone, key_of, place
from ringfence.runs import check
from ringfence.runs.backend import Backend
from ringfence.runs.config import Config, configure, make_world
from ringfence.runs.training import make_demonstrations


def configuration(experiment: Experiment, variant: Variant, seed: int) -> Config:
    tables = {name: variant.get(name) for name in CONFIG if name in variant.settings}
    command = f"ringfence reproduce {experiment.name} --variant {variant.name}"
    document = {**tables, "seed": seed, "command": command}
    return configure(document, f"{experiment.name}/{variant.name}")


def making(experiment: Experiment, variant: Variant, seed: int) -> tuple[Any, Settings]:
    """The world in which demonstrations are made, with the truth, and how their experts behave."""
    table = variant.get("demonstrations")
    settings: Any = configuration(experiment, variant, seed).world
    if getattr(settings, "full_state", False):  # which a game adds to anyone's demonstrations
        settings = replace(settings, full_state=False)
    experts: Settings = {k: v for k, v in table.items() if k not in ("expert", "path")}
    experts["seed"] = seed
    if "expert" in table:
        training = referred(experiment, table["expert"])[1].get("training")
        settings = replace(settings, truth=training["constraint"])
        experts["delta"] = float(training["delta"])
    return settings, experts


def document(experiment: Experiment, variant: Variant, seed: int) -> Settings:
    """All that determines a variant's demonstrations."""
    table = variant.get("demonstrations")
    if "path" in table:
        return {"content": dataset.content_hash(given(experiment, variant, seed))}
    settings, experts = making(experiment, variant, seed)
    found = {"world": asdict(settings), "experts": experts}
    if "expert" in table:
        found["training"] = solves.document(*referred(experiment, table["expert"]), seed)
    return found


def given(experiment: Experiment, variant: Variant, seed: int) -> Demonstrations:
    """Those at the path that the file names, as `ringfence learn` reads them."""
    config = configuration(experiment, variant, seed)
    config = replace(
        config, demos=replace(config.demos, path=variant.get("demonstrations")["path"])
    )
    examined = check.examine(config, experiment.folder.absolute())
    if examined.demos is None:
        raise InvalidInput("\n".join(str(finding) for finding in examined.errors))
    return examined.demos


def demonstrations(
    experiment: Experiment, variant: Variant, seed: int, say: Say, workers: int | Backend = 1
) -> Demonstrations:
    """A variant's demonstrations: made once, then read."""
    table = variant.get("demonstrations")
    if "path" in table:
        return given(experiment, variant, seed)
    label, needs = (
        f"{experiment.name}-{variant.name}-seed-{seed}",
        document(experiment, variant, seed),
    )
    with alone(key_of(needs)):
        folder = place("demonstrations", label, needs)
        if not folder.is_dir():
            settings, experts = making(experiment, variant, seed)
            policy = None
            if "expert" in table:
                policy = trained(*referred(experiment, table["expert"]), seed, say, workers)
            world = make_world(settings)
            made = make_demonstrations(
                settings, world, experts, None, folder, policy=policy, say=say
            )
            if not folder.is_dir():  # another study may have made the same ones meanwhile
                dataset.save(made, folder)
    return dataset.load(folder)
