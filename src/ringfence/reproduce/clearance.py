"""The selected policies of a variant's games at a clearance from what was learned.

A learner earns most right at the boundary; whoever deploys it may want it further inside. Each
seed's selected policy is told that the constraint that its game handed back lies further in (it
sees the constraint's value), and from there trained on for one more iteration's steps. Nothing of
the game changes.
"""

from __future__ import annotations

import json
from math import inf
from pathlib import Path

from ringfence import api
from ringfence.disk import read_json, write_json
from ringfence.errors import InvalidInput
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.iterates import each_seed, figures, selected
from ringfence.reproduce.rows import NOT_RUN, Found, Row, Rows, with_means
from ringfence.reproduce.study import Study, Summary, telling
from ringfence.runs import solving

FOLDER = "clearance"
#: Episodes that the policies are judged by.
EPISODES = 100
KINDS = ("told", "trained")


def clearance_of(variant: Variant) -> float:
    """0 where the variant's policies are left as they are."""
    return float(variant.get("transfer").get("clearance", 0.0))


def require(variant: Variant) -> None:
    """Refuse before the games what could only fail after them."""
    where, value = f"[variants.{variant.name}] transfer.clearance", clearance_of(variant)
    if not 0 < value < inf:
        raise InvalidInput(f"{where} must be above 0 and finite, got {value}")
    if variant.get("game").get("constraint") == "mlp":
        raise InvalidInput(f"{where} is in the units of an inequality; a network has none")
    if variant.get("solver").get("augment") is False:
        raise InvalidInput(f"{where} needs policies that see the constraint's value: augment")


def play(study: Study, variant: Variant, seed: int, run: Path) -> None:
    """The game's selected policy told of the clearance, then trained on from there."""
    if read_json(run / "summary.json")["selected"] is None:
        return
    value = clearance_of(variant)
    episodes = variant.get("transfer").get("episodes", EPISODES)
    for kind, steps in (("told", 0), ("trained", None)):
        study.say(f"  at a clearance of {value:g}: {kind}")
        folder = run / f"clearance-{value:g}-{kind}"
        if not (folder / "solve.toml").is_file():
            command = f"ringfence transfer {run} --clearance {value:g} --seed {seed}"
            api.transfer(
                run, clearance=value, steps=steps, episodes=episodes, seed=seed, out=folder,
                command=command + (" --steps 0" if kind == "told" else ""),
            )  # fmt: skip
        found = solving.drive(folder, telling(study.say))
        path = path_of(study.folder(variant), kind, seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, found)


def path_of(folder: Path, kind: str, seed: int) -> Path:
    return folder / FOLDER / f"{kind}-{seed}.json"


def clearances(study: Study) -> Found:
    """The game's policies, the same told of the clearance, and these trained on."""
    (variant,) = study.variants
    clearance = clearance_of(variant)
    if not clearance:
        return Found([])
    names = {
        "game": "selected in the game",
        "told": f"the same, told of {clearance:g}",
        "trained": "and trained on",
    }
    rows: Rows = []
    for kind, name in names.items():
        for seed, summary in each_seed(study, variant).items():
            row = {"policy": name, "seed": seed, "clearance": clearance}
            rows.append({**row, **_judged(study.folder(variant), kind, seed, summary)})
    return Found(with_means(rows, ["policy", "clearance"]))


def _judged(folder: Path, kind: str, seed: int, summary: Summary | None) -> Row:
    path = path_of(folder, kind, seed)
    if summary is None or not summary["iterations"] or not (kind == "game" or path.is_file()):
        return {"status": NOT_RUN}
    row = selected(summary)
    return figures(row if kind == "game" else deployed(row, json.loads(path.read_text())))


def deployed(row: Row, found: Summary) -> Row:
    """The selected iteration's row with the figures of its policy at the clearance."""
    names = ("reward", "length", "true_raw", "true_cost")
    return {**row, **{f"learner_{name}_mean": found[name] for name in names}}
