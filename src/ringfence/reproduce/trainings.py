"""Tables of trainings: what their policies do, how the multiplier went, who kept its limit.

The summary of a training has, beside what a solve says, `course` (figures of its curves) and
`judged` (an unconstrained policy under constraints that it does not know).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringfence.objects import Array
from ringfence.reproduce.experiment import Variant
from ringfence.reproduce.iterates import each_seed, minutes
from ringfence.reproduce.rows import NOT_RUN, Found, Row, Rows, flat, with_means
from ringfence.reproduce.study import Study, Summary

ACTIONS = ("stochastic", "deterministic")
#: Rollouts that a smoothed curve averages over.
SMOOTH = 10
#: Of a training, where the table shows its multiplier.
QUARTERS = (0.25, 0.5, 0.75, 1.0)
UNCONSTRAINED = "none"
#: Of a policy's episodes; without a limit there is no cost.
FIGURES = ("reward", "length", "speed", "true_cost", "true_raw")


def is_trained(variant: Variant) -> bool:
    return "policy" not in variant.get("training")


def limited(variant: Variant) -> bool:
    return is_trained(variant) and variant.get("training").get("constraint") != UNCONSTRAINED


def policies(study: Study) -> Found:
    """Every training's policy, with its noise and without, and how its multiplier went."""
    rows: Rows = []
    for actions in ACTIONS:
        for variant in filter(is_trained, study.variants):
            training, seconds = variant.get("training"), study.seconds(variant)
            for seed, summary in each_seed(study, variant).items():
                row: Row = {"actions": actions, "variant": variant.name, "seed": seed}
                row |= {"reason": variant.reason, "delta": training["delta"]}
                if summary is None:
                    rows.append({**row, "status": NOT_RUN})
                    continue
                found = summary[actions] or {}
                names = FIGURES if limited(variant) else FIGURES[:3]
                row |= {name: found[name] for name in names if name in found}
                if limited(variant) and found:
                    row["within"] = found["true_cost"] <= training["delta"]
                row |= {"lam": summary["lam"], "env_steps": summary["env_steps"]}
                row |= {"minutes": minutes(seconds.get(seed)), **(summary["course"] or {})}
                rows.append(row)
    return Found(with_means(rows, ["actions", "variant", "reason", "delta"]))


def judged(study: Study) -> Found:
    """Policies under constraints that they were not trained under."""
    rows: Rows = []
    for variant in study.variants:
        for seed, summary in study.summaries(variant).items():
            for actions, of in (summary.get("judged") or {}).items():
                for constraint, figures in of.items():
                    row = {"variant": variant.name, "seed": seed, "actions": actions}
                    rows.append({**row, "constraint": f"`{constraint}`", **figures})
    return Found(rows)


def reasons(study: Study) -> Found:
    """Every variant's settings with the measurement behind them."""
    rows = []
    for variant in study.variants:
        solver = flat(variant.get("solver"), mark=".")
        text = ", ".join(f"{k} = {v}" for k, v in solver.items() if k != "kind")
        reason = " ".join(variant.reason.split())
        rows.append({"variant": variant.name, "settings": text, "reason": reason})
    return Found(rows)


# Figures of a training's curves ----------------------------------------------------------------


def smooth(values: Array, window: int = SMOOTH) -> Array:
    """The mean of the last `window` values (fewer at the beginning), [n] -> [n]."""
    total = np.cumsum(np.concatenate([[0.0], values]))
    at = np.arange(1, len(values) + 1)
    first = np.maximum(at - window, 0)
    smoothed: Array = (total[at] - total[first]) / (at - first)
    return smoothed


def course_figures(cost: Array, lam: Array, limit: float) -> Summary:
    """Of the multiplier [updates] and of an episode's cost [updates] against its limit."""
    level = smooth(lam)
    at = {n: float(level[max(0, round(q * len(lam)) - 1)]) for n, q in enumerate(QUARTERS, 1)}
    return {
        **{f"quarter_{n}": value for n, value in at.items()},
        "highest": float(lam.max()),
        "above_0": float((lam > 0).mean()),
        **{f"cost_{name}": value for name, value in cost_figures(cost, limit).items()},
    }


def cost_figures(cost: Array, limit: float) -> dict[str, Any]:
    """highest: of the smoothed cost; excess: what it was above the limit on the mean of all
    updates, unsmoothed; reached: the share of the training after which it first crosses the limit,
    from whichever side it began on; overshoot: its highest excess from then on; both None if it
    never does. oscillation: its standard deviation in the last half; share_above: of all updates,
    unsmoothed.
    """
    level = smooth(cost)
    above = level > limit
    crossed = np.flatnonzero(above != above[0])
    first = int(crossed[0]) if len(crossed) else None
    return {
        "highest": float(level.max()),
        "excess": float(np.maximum(cost - limit, 0.0).mean()),
        "reached": None if first is None else (first + 1) / len(level),
        "overshoot": None if first is None else max(0.0, float((level[first:] - limit).max())),
        "oscillation": float(level[len(level) // 2 :].std()),
        "share_above": float((cost > limit).mean()),
    }
