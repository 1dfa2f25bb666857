"""The selected policies of a variant's games at a clearance from what was learned.

A learner earns most right at the boundary; whoever deploys it may want it further inside. Each
seed's selected policy is told that the constraint that its game handed back lies further in (it
sees the constraint's value), and from there trained on for one more iteration's steps. Nothing of
the game changes.
"""

from __future__ import annotations

import json
from pathlib import Path

from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.iterates import FIGURES, ITERATES, each_seed, figures
from ringfence.reproduce.rows import NOT_RUN, Found, Row, Rows, with_means
from ringfence.reproduce.study import Study, Summary

FOLDER = "clearance"
#: Episodes that the policies are judged by.
EPISODES = 100
KINDS = ("told", "trained")


def clearance_of(variant: Variant) -> float:
    """0 where the variant's policies are left as they are."""
    return float(variant.get("transfer").get("clearance", 0.0))


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
    good = ("good_raw", "good_cost")
    return Found(with_means(rows, ["policy", "clearance"], FIGURES[:4], good))


def _judged(folder: Path, kind: str, seed: int, summary: Summary | None) -> Row:
    path = path_of(folder, kind, seed)
    if summary is None or not summary["iterations"] or not (kind == "game" or path.is_file()):
        return {"status": NOT_RUN}
    selected = ITERATES["selected"](summary)
    if kind == "game":
        return figures(selected)
    return figures(deployed(selected, json.loads(path.read_text())))


def deployed(selected: Row, found: Summary) -> Row:
    """The selected iteration's row with the figures of its policy at the clearance."""
    names = ("reward", "length", "true_raw", "true_cost")
    return {**selected, **{f"learner_{name}_mean": found[name] for name in names}}
