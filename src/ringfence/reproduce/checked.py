"""What the check of demonstrations says about saturation, beside what a game learned from them."""

from __future__ import annotations

import json

from ringfence.constraints.linear import parse_inequality
from ringfence.objects import Feature
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.iterates import ITERATES, each_seed, minutes
from ringfence.reproduce.rows import NOT_RUN, Found, Row, Rows
from ringfence.reproduce.study import Study, Summary

PACES = "paces"


def checked(study: Study) -> Found:
    """A row per seed's demonstrators, and one for those who keep paces of their own."""
    (variant,) = study.variants
    seconds = study.seconds(variant)
    rows: Rows = []
    for seed, summary in each_seed(study, variant).items():
        row = {"demonstrators": f"seed {seed}", **verdict(study, variant, str(seed))}
        if "status" not in row and summary is not None:
            row |= learned(summary, study.options["truth"])
            row["minutes"] = minutes(seconds.get(seed))
        rows.append(row)
    rows.append({"demonstrators": "own paces", **verdict(study, variant, PACES)})
    return Found(rows)


def verdict(study: Study, variant: Variant, name: str) -> Row:
    """What was said about these demonstrators before anything was trained."""
    path = study.folder(variant) / f"check-{name}.json"
    if not path.is_file():
        return {"status": NOT_RUN}
    found = json.loads(path.read_text())
    said = "saturated" if found["saturated"] else "not saturated"
    figures = ("expert_mean", "expert_true_cost", "expert_reward")
    return {"check": said, **{key: found[key] for key in figures}}


def learned(summary: Summary, truth: str) -> Row:
    """The selected constraint against the true limit, which the game was not told."""
    if summary["selected"] is None:
        return {"limit": None}
    row = ITERATES["selected"](summary)
    (name,) = summary["used"]
    true = parse_inequality(truth, [Feature(name, "1")]).offset
    limit = row["constraint"]["parameters"]["limit"]
    low, high = summary["constraint"]["interval"]["parameters"]["limit"]
    return {
        "limit": limit,
        "limit_low": low,
        "limit_high": high,
        "error": abs(limit - true) / true,
        "learner_reward": row["learner_reward_mean"],
        "learner_cost": row["learner_cost_mean"],
        "expert_cost": row["expert_cost_mean"],
    }
