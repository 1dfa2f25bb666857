"""Tables from the summaries of games: iterates, parameters, choices, seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ringfence.analysis.choices import COMPARED
from ringfence.report.read import true_parameters
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.rows import NOT_RUN, Found, Row, Rows, mean_of, with_means
from ringfence.reproduce.study import Study, Summary

#: A learner is good that has at least the experts' reward less this many standard errors ..
REWARD_ERRORS = 2.0
#: .. and, by the raw measure, a true raw value per step at most this much above the experts',
RAW_PER_STEP = 0.02
#: or, by cost, an activated true cost of an episode at most this share above theirs.
COST_SHARE = 0.1

ALL_ITERATIONS = "all iterations"
#: Which rows of a summary's iterations a line shows; of several, their mean.
ITERATES: dict[str, Callable[[Summary], list[Row]]] = {
    "first iteration": lambda s: s["iterations"][:1],
    "last iteration": lambda s: s["iterations"][-1:],
    "selected": lambda s: [s["iterations"][s["selected"] - 1]],
    ALL_ITERATIONS: lambda s: s["iterations"],
}
CHOICES = {
    "selected": "on held-out demonstrations",
    "last": "the last",
    "random": "a random one (mean over iterations)",
    "truth": "by the truth",
}
GAPS = ("constraint_error", "reward_gap", "raw_gap", "cost_gap")


def selected(summary: Summary) -> Row:
    """The selected iteration's row."""
    return ITERATES["selected"](summary)[0]


def figures(row: Mapping[str, Any]) -> Row:
    """An iteration's row as the tables show it. A gap is the experts' less the learners'."""

    def gap(name: str) -> float | None:
        expert, learner = row[f"expert_{name}_mean"], row[f"learner_{name}_mean"]
        return None if expert is None or learner is None else expert - learner

    reward, cost = gap("reward"), gap("true_cost")
    return {
        "constraint_error": row["constraint_error"],
        "reward_gap": reward,
        "raw_gap": gap("true_raw"),
        "cost_gap": cost,
        "reward_above": None if reward is None else -reward,
        "cost_above": None if cost is None else -cost,
        "cost": row["learner_true_cost_mean"],
        "expert_cost": row["expert_true_cost_mean"],
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
    return {seed: found.get(seed) for seed in sorted({*variant.numbers, *found})}


# Tables ----------------------------------------------------------------------------------------


def iterates(study: Study) -> Found:
    """First, last and selected iteration, and the mean of all, of each variant and seed."""
    rows: Rows = []
    for name, chosen in ITERATES.items():
        for variant in study.variants:
            seconds = study.seconds(variant)
            for seed, summary in each_seed(study, variant).items():
                row: Row = {"iterate": name, "variant": variant.name, "seed": seed}
                row["reason"] = " ".join(variant.reason.split())
                status = outcome(summary)
                if summary is None or status is not None:
                    rows.append({**row, **(status or {})})
                    continue
                row |= average([figures(r) for r in chosen(summary)])
                row |= {"env_steps": summary["env_steps"]}
                rows.append({**row, "minutes": minutes(seconds.get(seed))})
    return Found(with_means(rows, ["iterate", "variant", "reason"]))


def average(rows: Sequence[Row]) -> Row:
    """One row as it is; of several the mean, in which a truth value is the share of true ones."""
    if len(rows) == 1:
        return rows[0]
    shares = [{k: float(v) if isinstance(v, bool) else v for k, v in row.items()} for row in rows]
    return {key: value for key, value in mean_of(shares).items() if not key.endswith("_se")}


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
    truth = true_parameters(games[0]) if games else {}
    rows: Rows = []
    for iterate, row in list(ITERATES.items())[:-1]:
        for name, true in truth.items():
            mean = mean_of([{"value": row(s)[0]["constraint"]["parameters"][name]} for s in games])
            error = abs(mean["value"] - true)
            rows.append(
                {"iterate": iterate, "parameter": name, "true": true, **mean, "error": error}
            )
    return Found(rows)


def choices(study: Study) -> Found:
    """Selection on held-out demonstrations beside the last, a random and the best iterate."""
    (variant,) = study.variants
    games = played(study.summaries(variant))
    rows: Rows = [] if games else [{"status": NOT_RUN}]
    for key, name in CHOICES.items():
        found = [s["choices"][key] for s in games if s["choices"] and s["choices"][key]]
        if found:
            rows.append({"chosen": name, **mean_of([{k: f[k] for k in COMPARED} for f in found])})
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
