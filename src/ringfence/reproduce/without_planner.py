"""The multi-task game without a planner: a point on the Ant's floor, PPO on a policy that sees the
goal."""

from __future__ import annotations

from ringfence.reproduce.rows import Found
from ringfence.reproduce.study import Study


def point_course(study: Study) -> Found:
    (variant,) = study.variants
    rows = [
        {"seed": seed, **row}
        for seed, summary in study.summaries(variant).items()
        for row in summary["rows"]
    ]
    chosen = [str(s["selected"]) for s in study.summaries(variant).values()]
    return Found(rows, {"selected": ", ".join(chosen)})
