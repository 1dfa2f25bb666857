"""`ringfence reproduce ... --clearance D`: the selected policies at a clearance.

A learner earns most right at the boundary; whoever deploys it may want it further inside. Each
seed's selected policy is told that the constraint that its game handed back lies further in (it
sees the constraint's value), and from there trained on for one more iteration's steps (`ringfence
transfer RUN --clearance D`, first with `--steps 0`). Nothing of the game changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from ringfence.cli.progress import control_progress
from ringfence.constraints.saved import load
from ringfence.errors import InvalidInput
from ringfence.runs import control_transfer
from ringfence.runs.control_transfer import FILE, Settings, TransferConfig, own_task, saved_folder
from ringfence.runs.files import write_file, write_json
from ringfence.runs.start import start_hash
from ringfence.studies import icl_tables
from ringfence.studies.icl import Say, Study, configuration, refuse_other_settings
from ringfence.studies.icl_tables import COLUMNS, figures, is_good, mean_of, text_of
from ringfence.studies.tables import markdown

#: Of an iteration's columns, those that a policy and a constraint have.
KEPT = 4
#: That the policies are judged by.
EPISODES = 100

Row = dict[str, Any]
#: The rows of a table by what was judged, and seed.
Judged = dict[str, dict[int, Row]]


def check(study: Study, clearance: float) -> None:
    """Refuse before the games what could only fail after them."""
    if not 0 < clearance < inf:
        raise InvalidInput(f"--clearance must be above 0 and finite, got {clearance}")
    if study.constraint == "mlp":
        raise InvalidInput("--clearance is in the units of an inequality; a network has none")
    if study.own.get("augment") is False:
        raise InvalidInput("--clearance needs policies that see the constraint's value: augment")


def reproduce(study: Study, clearance: float, out: Path, command: str, say: Say) -> None:
    """Train every seed's policy on, as far as that was not done; its game must be finished."""
    out.mkdir(parents=True, exist_ok=True)
    names = ("selected in the game", f"the same, told of {clearance:g}", "and trained on")
    judged: Judged = {name: {} for name in names}
    game, told, trained = judged.values()
    for seed in range(study.seeds):
        say(f"{study.name}, seed {seed}, clearance {clearance:g}")
        summary = json.loads((study.run(seed) / "summary.json").read_text())
        game[seed] = summary["iterations"][summary["selected"] - 1]
        for rows, train in ((told, False), (trained, True)):
            found = one(study, clearance, seed, train)
            rows[seed] = deployed_row(game[seed], found)
            write_json(out / f"{'trained' if train else 'told'}-{seed}.json", found)
        write_file(out / "table.md", page(study, clearance, judged, command).encode())


def one(study: Study, clearance: float, seed: int, train: bool) -> dict[str, Any]:
    """One seed's summary, from where its training is."""
    run, place = study.run(seed), folder(study, clearance, seed, train)
    world, ppo, start = own_task(run, None)
    words = f"ringfence transfer {run} --clearance {clearance:g} --seed {seed}"
    words += "" if train else " --steps 0"
    settings = Settings(load(run).delta, EPISODES, clearance=clearance, train=train)
    config = TransferConfig(words, seed, world, settings, ppo)
    if place.exists():
        found = control_transfer.read(place / FILE)
        began = replace(settings, start=start_hash(start), true_limit=found.transfer.true_limit)
        wanted = replace(config, transfer=began)
        refuse_other_settings(place, found, wanted, ("world", "transfer", "ppo"))
    else:
        control_transfer.create(place, config, saved_folder(run), start)
    with control_progress() as progress:
        return control_transfer.drive(place, progress)


def folder(study: Study, clearance: float, seed: int, train: bool) -> Path:
    run = study.run(seed)
    return run.with_name(f"{run.name}-clearance-{clearance:g}{'' if train else '-told'}")


def deployed_row(selected: Mapping[str, Any], found: Mapping[str, Any]) -> Row:
    """The selected iteration's row with the figures of its policy at the clearance."""
    names = ("reward", "length", "true_raw", "true_cost")
    return {**selected, **{f"learner_{name}_mean": found[name] for name in names}}


def page(study: Study, clearance: float, judged: Judged, command: str) -> str:
    lines = []
    for name, rows in judged.items():
        for seed in range(study.seeds):
            cells = _cells(rows[seed]) if seed in rows else [icl_tables.NOT_RUN] * (KEPT + 1)
            lines.append([name, str(seed), *cells])
        lines.append([f"**{name}**", "mean", *_means(rows)])
    head = ["policy", "seed", *(name for name, _ in COLUMNS[:KEPT]), "good"]
    truth, steps = study.expert.constraint, configuration(study, 0).ppo.env_steps
    parts = [
        f"# {study.experiment.name.capitalize()}: at a clearance of {clearance:g}",
        f"Made by `{command}`. The policies that the games beside this folder selected; the same "
        f"where their input, the value of the constraint that their game handed back, is of that "
        f"constraint moved inwards by {clearance:g}, without any training; and trained on under it "
        f"for {steps:,} steps, with the experts' own cost as the limit (no buffer) and other "
        f"settings as in the game. The constraint and its error are the game's. Truth `{truth}`. "
        "Figures of the stochastic policies, over "
        f"{study.ppo.evaluation_episodes} episodes in the game and {EPISODES} here; means over "
        "seeds with standard errors. Negative reward gaps: the policy earns more than the experts; "
        "positive cost gaps: the experts violate more.",
        markdown(head, lines),
    ]
    return "\n\n".join(parts) + "\n"


def _cells(row: Row) -> list[str]:
    pairs = zip(figures(row)[:KEPT], COLUMNS[:KEPT], strict=True)
    return [*(text_of(v, form) for v, (_, form) in pairs), "yes" if is_good(row) else "no"]


def _means(rows: Mapping[int, Row]) -> list[str]:
    if not rows:
        return [icl_tables.NOT_RUN] * (KEPT + 1)
    columns = zip(*(figures(row)[:KEPT] for row in rows.values()), strict=True)
    pairs = zip(columns, COLUMNS[:KEPT], strict=True)
    good = sum(is_good(row) for row in rows.values())
    return [*(mean_of(c, form) for c, (_, form) in pairs), f"{good} of {len(rows)}"]
