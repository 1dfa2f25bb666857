"""Configurations and demonstrations of games: made once, then found by what determines them."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from ringfence.demos import dataset
from ringfence.errors import InvalidInput
from ringfence.objects import Demonstrations
from ringfence.reproduce.experiment import CONFIG, Experiment, Variant
from ringfence.reproduce.solves import referred, trained
from ringfence.reproduce.study import Say, place
from ringfence.runs import check
from ringfence.runs.config import Config, configure, make_world
from ringfence.runs.training import make_demonstrations


def configuration(experiment: Experiment, variant: Variant, seed: int) -> Config:
    tables = {name: variant.get(name) for name in CONFIG if name in variant.settings}
    command = f"ringfence reproduce {experiment.name} --variant {variant.name}"
    document = {**tables, "seed": seed, "command": command}
    return configure(document, f"{experiment.name}/{variant.name}")


def demonstrations(experiment: Experiment, variant: Variant, seed: int, say: Say) -> Demonstrations:
    """A variant's demonstrations: those that its file names, or made once and then read."""
    config, table = configuration(experiment, variant, seed), variant.get("demonstrations")
    if "path" in table:
        given = replace(config.demos, path=table["path"])
        examined = check.examine(replace(config, demos=given), experiment.folder.absolute())
        if examined.demos is None:
            raise InvalidInput("\n".join(str(finding) for finding in examined.errors))
        return examined.demos
    settings: Any = config.world
    if getattr(settings, "full_state", False):  # which a game adds to anyone's demonstrations
        settings = replace(settings, full_state=False)
    experts: dict[str, Any] = {k: v for k, v in table.items() if k != "expert"}
    experts["seed"] = seed
    policy = None
    if "expert" in table:
        home, expert = referred(experiment, table["expert"])
        policy = trained(home, expert, seed, say)
        training = expert.get("training")
        settings = replace(settings, truth=training["constraint"])
        experts["delta"] = float(training["delta"])
    made_from = None if policy is None else policy.name.rpartition("-")[2]
    document = {"world": asdict(settings), "experts": experts, "policy": made_from}
    folder = place("demonstrations", f"{experiment.name}-{variant.name}-seed-{seed}", document)
    if not folder.is_dir():
        world = make_world(settings)
        made = make_demonstrations(settings, world, experts, None, folder, policy=policy, say=say)
        if not folder.is_dir():  # another study may have made the same ones meanwhile
            dataset.save(made, folder)
    return dataset.load(folder)
