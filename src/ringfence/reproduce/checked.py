"""What the check of demonstrations says about saturation, beside what a game learned from them."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from ringfence.constraints.linear import parse_inequality
from ringfence.disk import write_json
from ringfence.objects import Demonstrations, Feature, J, TaskDemos, behaviour_of
from ringfence.reproduce.demonstrate import configuration, demonstrations
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.iterates import each_seed, minutes, selected
from ringfence.reproduce.rows import NOT_RUN, Found, Row, Rows
from ringfence.reproduce.study import Study, Summary
from ringfence.runs import check

PACES = "paces"


def checked(study: Study) -> Found:
    """A row per seed's demonstrators, and one for those who keep paces of their own."""
    rows: Rows = []
    for variant in study.variants:
        seconds = study.seconds(variant)
        for seed, summary in each_seed(study, variant).items():
            row: Row = {"variant": variant.name, "demonstrators": f"seed {seed}"}
            row |= verdict(study, variant, str(seed))
            if "status" not in row and summary is not None:
                row |= learned(summary, study.options["truth"])
                row["minutes"] = minutes(seconds.get(seed))
            rows.append(row)
        row = {"variant": variant.name, "demonstrators": "own paces"}
        rows.append({**row, **verdict(study, variant, PACES)})
    return Found(rows)


def play(study: Study, variant: Variant, seed: int) -> None:
    """check-<seed>.json of a seed's demonstrators; with the last seed, check-paces.json."""
    (shown,) = [table for table in study.experiment.tables if table.rows == "checked"]
    options, folder = shown.options, study.folder(variant)
    folder.mkdir(parents=True, exist_ok=True)
    demos = demonstrations(study.experiment, variant, seed, study.say)
    found = examined(study, variant, seed, demos, options["truth"])
    write_json(folder / f"check-{seed}.json", found)
    if seed < variant.seeds - 1:
        return
    study.say("demonstrators who keep paces of their own")
    each = []
    for n, name in enumerate(options["paces"]):
        making = {
            "expert": name,
            "paths": options["pace_paths"],
            "heldout": options["pace_heldout"],
        }
        slow = replace(variant, settings={**variant.settings, "demonstrations": making})
        each.append(
            demonstrations(study.experiment, slow, options["pace_seed"] + n, study.say).tasks[0]
        )
    task = TaskDemos(
        each[0].task, *(tuple(t for d in each for t in getattr(d, s)) for s in ("train", "heldout"))
    )
    demos = Demonstrations((task,), demos.features, {"paces": list(options["paces"])})
    found = examined(study, variant, 0, demos, options["truth"])
    write_json(folder / f"check-{PACES}.json", found)


def examined(
    study: Study, variant: Variant, seed: int, demos: Demonstrations, truth: str
) -> Summary:
    """What the check says, and how the demonstrators stand to the truth (for the table only)."""
    config = configuration(study.experiment, variant, seed)
    findings = check.examine(config, study.experiment.folder, demos).findings
    (found,) = [f for f in findings if f.where.startswith("saturation")]
    pi, c = behaviour_of(demos.tasks[0].train), parse_inequality(truth, demos.features)
    return {
        "saturated": found.severity == "ok",
        "verdict": found.message,
        "findings": [asdict(f) for f in findings],
        "expert_true_cost": J(pi, c),
        "expert_mean": float(pi.visits @ pi.features[:, 0] / pi.visits.sum()),
        "expert_reward": pi.reward,
    }


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
    row = selected(summary)
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
