"""Tables from the summaries of games: iterates, parameters, choices, seeds, and all variants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ringfence.constraints.template import HOLE, linear_template, parse_template
from ringfence.objects import Feature
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.rows import MEAN, NOT_RUN, Found, Row, Rows, mean_of, with_means
from ringfence.reproduce.study import Study, Summary

#: A learner is good that has at least the experts' reward less this many standard errors ..
REWARD_ERRORS = 2.0
#: .. and, by the raw measure, a true raw value per step at most this much above the experts',
RAW_PER_STEP = 0.02
#: or, by cost, an activated true cost of an episode at most this share above theirs.
COST_SHARE = 0.1

#: Which row of a summary's iterations a line shows.
ITERATES: dict[str, Callable[[Summary], Row]] = {
    "first iteration": lambda s: s["iterations"][0],
    "last iteration": lambda s: s["iterations"][-1],
    "selected": lambda s: s["iterations"][s["selected"] - 1],
}
CHOICES = {
    "selected": "on held-out demonstrations",
    "last": "the last",
    "random": "a random one (mean over iterations)",
    "truth": "by the truth",
}
COMPARED = (
    "constraint_error",
    "learner_reward_mean",
    "learner_true_raw_mean",
    "learner_true_cost_mean",
)
FIGURES = (
    *("constraint_error", "reward_gap", "raw_gap", "cost_gap"),
    *("error_expert_mean", "error_expert_p95"),
)


def difference(row: Mapping[str, Any], name: str) -> float | None:
    """The experts' figure less the learners'."""
    expert, learner = row[f"expert_{name}_mean"], row[f"learner_{name}_mean"]
    return None if expert is None or learner is None else expert - learner


def figures(row: Mapping[str, Any]) -> Row:
    """An iteration's row as the tables show it."""
    return {
        "constraint_error": row["constraint_error"],
        "reward_gap": difference(row, "reward"),
        "raw_gap": difference(row, "true_raw"),
        "cost_gap": difference(row, "true_cost"),
        "error_expert_mean": row["constraint"].get("error_expert_mean"),
        "error_expert_p95": row["constraint"].get("error_expert_p95"),
        "good_raw": good(row, as_safe_by_raw),
        "good_cost": good(row, as_safe_by_cost),
    }


def good(row: Mapping[str, Any], as_safe: Callable[[Mapping[str, Any]], bool]) -> bool | None:
    """Does a learner earn what experts do, as safely as they? None where the truth is unknown."""
    if row["learner_true_raw_mean"] is None:
        return None
    enough = row["expert_reward_mean"] - REWARD_ERRORS * row["expert_reward_se_mean"]
    return bool(row["learner_reward_mean"] >= enough) and as_safe(row)


def as_safe_by_raw(row: Mapping[str, Any]) -> bool:
    learner, expert = (
        row[f"{who}_true_raw_mean"] / row[f"{who}_length_mean"] for who in ("learner", "expert")
    )
    return bool(learner <= expert + RAW_PER_STEP)


def as_safe_by_cost(row: Mapping[str, Any]) -> bool:
    most = (1 + COST_SHARE) * row["expert_true_cost_mean"]
    return bool(row["learner_true_cost_mean"] <= most)


def played(summaries: Mapping[int, Summary]) -> list[Summary]:
    """Those in which a game was played: not where no constraint was needed."""
    return [s for s in summaries.values() if s["iterations"]]


def each_seed(study: Study, variant: Variant) -> dict[int, Summary | None]:
    """Every seed that is wanted or there."""
    found = study.summaries(variant)
    return {seed: found.get(seed) for seed in sorted({*range(variant.seeds), *found})}


# Tables of one variant -------------------------------------------------------------------------


def iterates(study: Study) -> Found:
    """First, last and selected iteration, seed by seed."""
    (variant,) = study.variants
    rows: Rows = []
    for name, row in ITERATES.items():
        for seed, summary in each_seed(study, variant).items():
            found = outcome(summary) or figures(row(summary or {}))
            rows.append({"iterate": name, "seed": seed, **found})
    return Found(with_means(rows, ["iterate"], FIGURES))


def outcome(summary: Summary | None) -> Row | None:
    """The status of a seed that has no iterations."""
    if summary is None:
        return {"status": NOT_RUN}
    return None if summary["iterations"] else {"status": summary["outcome"]}


def parameters(study: Study) -> Found:
    """The learned parameters and the error of their mean: what the paper's table calls error.

    Errors of opposite sign cancel in it, so it may be far below the mean of the seeds' errors.
    Nothing where the class leaves the scale free: such parameters have no mean to compare.
    """
    (variant,) = study.variants
    games = played(study.summaries(variant))
    truth = comparable_parameters(games[0]) if games else {}
    rows: Rows = []
    for iterate, row in ITERATES.items():
        for name, true in truth.items():
            found = [{"value": row(s)["constraint"]["parameters"][name]} for s in games]
            mean = mean_of(found, ["value"])
            error = abs(mean["value"] - true)
            rows.append(
                {"iterate": iterate, "parameter": name, "true": true, **mean, "error": error}
            )
    return Found(rows)


def comparable_parameters(summary: Summary) -> Mapping[str, float]:
    """The truth's parameters, where the class fixes the scale of the learned ones."""
    true: Mapping[str, float] | None = summary["true_parameters"]
    if not true:
        return {}
    used = [Feature(name, "1") for name in summary["used"]]
    text = summary["class"]
    template = (
        parse_template(text, used) if HOLE in text else linear_template(used, summary["used"])
    )
    return {} if template.scale_free else true


def choices(study: Study) -> Found:
    """Selection on held-out demonstrations beside the last, a random and the best iterate."""
    (variant,) = study.variants
    games = played(study.summaries(variant))
    rows: Rows = [] if games else [{"status": NOT_RUN}]
    for key, name in CHOICES.items():
        found = [s["choices"][key] for s in games if s["choices"] and s["choices"][key]]
        if found:
            rows.append({"chosen": name, **mean_of(found, COMPARED)})
    return Found(rows)


def seeds_played(study: Study) -> Found:
    """What each seed handed back, and what it took."""
    (variant,) = study.variants
    seconds, rows = study.seconds(variant), []
    for seed, summary in each_seed(study, variant).items():
        row: Row = {"seed": seed, "minutes": minutes(seconds.get(seed)), **(outcome(summary) or {})}
        if summary is not None and summary["iterations"]:
            last = summary["iterations"][-1]
            row |= {
                "constraint": summary["constraint"]["description"],
                "interval": interval(summary),
                "expert_reward": last["expert_reward_mean"],
                "expert_reward_error": last["expert_reward_se_mean"],
                "expert_true_raw": last["expert_true_raw_mean"],
                "expert_true_cost": last["expert_true_cost_mean"],
                "env_steps": summary["env_steps"],
            }
        rows.append(row)
    return Found(rows)


def minutes(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 60


def interval(summary: Summary) -> str | None:
    found = summary["constraint"]["interval"]
    if found is None:
        return None
    return "; ".join(f"{k} {a:.4g} to {b:.4g}" for k, (a, b) in found["parameters"].items())


def good_seeds(study: Study) -> Found:
    (variant,) = study.variants
    games = played(study.summaries(variant))
    rows: Rows = [] if games else [{"status": NOT_RUN}]
    for name in ("selected", "last iteration") if games else ():
        found = [figures(ITERATES[name](s)) for s in games]
        counts = {key: count(found, key) for key in ("good_raw", "good_cost")}
        rows.append({"iterate": name, **counts, "seeds": len(games)})
    return Found(rows)


def count(rows: Sequence[Row], key: str) -> int:
    return sum(bool(row[key]) for row in rows)


# Tables of an experiment -----------------------------------------------------------------------


def variants(study: Study) -> Found:
    """A row per variant: its selected iterates, on the mean of the seeds."""
    rows = []
    for variant in study.variants:
        games = played(study.summaries(variant))
        row: Row = {"variant": variant.name, "reason": " ".join(variant.reason.split())}
        if not games:
            rows.append({**row, "status": NOT_RUN})
            continue
        chosen = [ITERATES["selected"](s) for s in games]
        found = [
            {
                **figures(r),
                "reward_above": -(difference(r, "reward") or 0.0),
                "cost": r["learner_true_cost_mean"],
                "expert_cost": r["expert_true_cost_mean"],
                "env_steps": float(s["env_steps"]),
            }
            for r, s in zip(chosen, games, strict=True)
        ]
        keys = ("constraint_error", "reward_above", "cost", "expert_cost", "env_steps")
        mean = mean_of(found, keys)
        seconds = list(study.seconds(variant).values())
        rows.append(
            {
                **row,
                **{key: value for key, value in mean.items() if not key.endswith("_se")},
                "good_raw": count(found, "good_raw"),
                "good_cost": count(found, "good_cost"),
                "seeds": len(games),
                "minutes": minutes(float(np.mean(seconds)) if seconds else None),
            }
        )
    return Found(rows)


def compared(study: Study) -> Found:
    """Variants of one game by their selected and last iterates, and the mean of all.

    A row per seed, and one for the mean over those that were run.
    """
    keys = ("constraint_error", "reward_above", "cost_above")
    rows: Rows = []
    for iterate in ("selected", "last iteration", "all iterations"):
        for variant in study.variants:
            each: Rows = []
            for seed, summary in each_seed(study, variant).items():
                found = outcome(summary) or _above(summary or {}, iterate)
                each.append({"seed": seed, **found})
            run = [row for row in each if "status" not in row]
            mean: Row = {"status": NOT_RUN}
            if run:
                mean = mean_of(run, keys)
                mean |= {k: sum(row[k] for row in run) for k in ("good_raw", "good_cost")}
            names = {"iterate": iterate, "variant": variant.name, "reason": variant.reason}
            missing = len(each) - len(run)
            rows += [{**names, **row} for row in each]
            rows.append({**names, "seed": MEAN, **mean, "not_run": missing})
    return Found(rows)


def _above(summary: Summary, iterate: str) -> Row:
    """What learners have more than the experts; of all iterations: the mean."""
    chosen = summary["iterations"]
    if iterate != "all iterations":
        chosen = [ITERATES[iterate](summary)]
    found = [
        {
            "constraint_error": row["constraint_error"],
            "reward_above": -(difference(row, "reward") or 0.0),
            "cost_above": -(difference(row, "true_cost") or 0.0),
            "good_raw": float(bool(good(row, as_safe_by_raw))),
            "good_cost": float(bool(good(row, as_safe_by_cost))),
        }
        for row in chosen
    ]
    return {key: float(np.mean([row[key] for row in found])) for key in found[0]}
