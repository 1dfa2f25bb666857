"""The tables of recorded flights. Here, and only here, they are held against the true rule: a
table's `options.truth`, kt and ft."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ringfence.reproduce.rows import Found, Row
from ringfence.reproduce.study import Study, Summary

ENDS = [0.025, 0.975]


def _played(study: Study) -> Iterator[tuple[str, Summary]]:
    """Each variant with its summary, where there is one."""
    for variant in study.variants:
        for summary in study.summaries(variant).values():
            yield variant.name, summary


def _truth(study: Study) -> tuple[float, float]:
    speed, altitude = study.options["truth"]
    return float(speed), float(altitude)


def rules(study: Study) -> Found:
    """The rule of each half and part, with its interval and its errors."""
    speed, altitude = _truth(study)
    rows = []
    for half, summary in _played(study):
        for row in summary["parts"]:
            rows.append({
                "half": half,
                **{k: v for k, v in row.items() if not isinstance(v, list)},
                "seen": half != "quoted",
                "speed_error": row["speed_kt"] / speed - 1,
                "altitude_error": row["altitude_ft"] / altitude - 1,
                "inside": row["speed_low"] <= speed <= row["speed_high"]
                and row["altitude_low"] <= altitude <= row["altitude_high"],
            })  # fmt: skip
    return Found(rows)


def budgets(study: Study) -> Found:
    """The player's answer and the rule for each budget."""
    rows = []
    for half, summary in _played(study):
        for part in summary["parts"]:
            for b, first, given, rule in zip(
                part["budgets"], part["first"], part["answers"], part["rules"], strict=True
            ):
                rows.append({
                    "half": half, "part": part["part"], "budget": b,
                    "first_kt": first[0], "first_ft": first[1],
                    "answer_kt": given[0], "answer_ft": given[1],
                    "rule_kt": rule[0], "rule_ft": rule[1],
                })  # fmt: skip
    return Found(rows)


def sensitivity(study: Study) -> Found:
    """What other choices would have said."""
    rows: list[Row] = []
    for half, summary in _played(study):
        if summary["sensitivity"]:
            whole = summary["parts"][0]
            frozen = {k: whole[k] for k in ("speed_kt", "altitude_ft", "apart")}
            every: list[Row] = [{"changed": "nothing: as frozen", **frozen}]
            every += summary["sensitivity"]
            rows += [
                {
                    "half": half,
                    **row,
                    "speed_change": row["speed_kt"] - whole["speed_kt"],
                    "altitude_change": row["altitude_ft"] - whole["altitude_ft"],
                }
                for row in every
            ]
    return Found(rows)


def sizes(study: Study) -> Found:
    """The error of the rule from few flights."""
    truth = np.array(_truth(study))
    rows = []
    for half, summary in _played(study):
        for entry in summary["curve"]:
            found = np.array(entry["rules"])
            low, high = np.quantile(found, ENDS, axis=0)
            error = np.abs(found - truth).mean(axis=0)
            rows.append({
                "half": half, "flights": entry["flights"], "draws": entry["draws"],
                "speed_error": float(error[0]), "speed_low": float(low[0]),
                "speed_high": float(high[0]), "altitude_error": float(error[1]),
                "altitude_low": float(low[1]), "altitude_high": float(high[1]),
            })  # fmt: skip
    return Found(rows)


def evidence(study: Study) -> Found:
    """How many cells are labelled how, and whether conflicts hold a truly forbidden one."""
    rows = []
    for half, summary in _played(study):
        found = summary.get("evidence")
        if found is None:
            continue
        bad = [c for c in found["cells"] if _forbidden(study, found, c["altitude"], c["speed"])]
        holding = sum(
            any(_forbidden(study, found, a, v) for a, v in cells) for cells in found["conflicts"]
        )
        counts, total = found["counts"], len(found["cells"])
        rows.append({
            "half": half,
            **{name: sum(c["label"] == name for c in found["cells"]) for name in counts},
            "unknown_share": sum(c["label"] == "unknown" for c in found["cells"]) / total,
            "cells": total,
            "truly_forbidden": len(bad),
            "implicated_and_forbidden": sum(c["label"] == "implicated" for c in bad),
            "proven_and_forbidden": sum(c["label"] == "proven" for c in bad),
            "allowed_and_forbidden": sum(c["label"] == "allowed" for c in bad),
            "conflicts": len(found["conflicts"]),
            "conflicts_holding": holding,
            "conflict_size": float(np.mean([len(c) for c in found["conflicts"]]))
            if found["conflicts"]
            else None,
            "suboptimality_s": 60 * found["suboptimality_min"],
        })  # fmt: skip
    return Found(rows)


def _forbidden(study: Study, found: dict[str, Any], altitude: float, speed: float) -> bool:
    """Is all of the cell at this middle in the region that the rule forbids?"""
    limit, until = _truth(study)
    top, slowest = altitude + found["height"] / 2, speed - found["width"] / 2
    return bool(top <= until and slowest >= limit)


def games(study: Study) -> Found:
    """Whole games, per class."""
    rows = []
    for half, summary in _played(study):
        for game in summary.get("games", []):
            rows.append({
                "half": half, "class": game["class"], "constraint": game["constraint"],
                "selected": game["selected"],
                "learner_min": -game["learner_reward"][game["selected"] - 1],
                "free_min": -game["learner_reward"][0], "expert_min": -game["expert_reward"],
                "doubts": len(game["doubts"]),
            })  # fmt: skip
    return Found(rows)


def crossed(study: Study) -> Found:
    """One kind's rule against the other kind."""
    return Found([
        {"half": half, **row} for half, summary in _played(study) for row in summary["crossed"]
    ])  # fmt: skip


def breaches(study: Study) -> Found:
    """Who broke the rule that the other half showed; the worst first."""
    rows: list[Row] = []
    facts: Row = {"watched": 0, "breaking": 0, "tolerance": 0.0}
    for half, summary in _played(study):
        if "watched" in summary:
            found = summary["watched"]
            facts = {"watched": found["flights"], "breaking": found["breaking"],
                     "tolerance": found["tolerance_kt"]}  # fmt: skip
            rows += [{"learned_on": half, **row} for row in found["breaches"]]
    return Found(rows[: int(study.options.get("most", len(rows)))], facts)


def cleaning(study: Study) -> Found:
    """What was used, and what not."""
    rows = []
    for half, summary in _played(study):
        flights = {k: v for k, v in summary["flights"].items() if k != "by_task"}
        rows.append({"half": half, **flights, **summary["rows"], "wind": summary["wind"]})
    return Found(rows)
