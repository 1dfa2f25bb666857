"""The paper's maze with the Ant: the course of its games, one task alone, tasks never seen."""

from __future__ import annotations

from typing import Any

from ringfence.reproduce.rows import Found, Row, Rows, mean_of
from ringfence.reproduce.study import Study, Summary, read_summaries


def maze_course(study: Study) -> Found:
    """A variant's iterations over its seeds, beside the paper's."""
    name, paper = study.options["variant"], study.options["paper"]
    games = list(read_summaries(study.out / name).values())
    if not games:
        return Found([])
    count = min(len(s["iterations"]) for s in games)
    rows = [course_row(name, games, i, paper) for i in range(count)]
    measured = mean_of(
        [{"cost": s["iterations"][0]["expert_true_cost_mean"]} for s in games], ["cost"]
    )
    own = f"{measured['cost']:.3f}"
    own += f" ± {measured['cost_se']:.3f}" if "cost_se" in measured else ""
    return Found(rows, {"expert_true_cost": own, "violations": violations_text(games)})


def course_row(name: str, games: list[Summary], i: int, paper: dict[str, Any]) -> Row:
    rows = [s["iterations"][i] for s in games]
    values: Rows = [
        {
            "iou": row["updated"]["iou"],
            "violation": row["learner_true_cost_mean"],
            "reward": row["learner_reward_mean"],
            "expert_reward": row["expert_reward_mean"],
        }
        for row in rows
    ]
    ends = [row["episodes"] for row in rows]
    return {
        "variant": name,
        "i": i + 1,
        **mean_of(values, values[0]),
        **{f"paper_{key}": figures[i] for key, figures in paper.items() if i < len(figures)},
        "arrived": sum(e["arrived"] for e in ends),
        "fell_or_late": sum(e["fell"] + e["late"] for e in ends),
        "reused": sum(x is not None for row in rows for x in row["reused"]),
        "expert_cost": max(max(row["expert_cost"]) for row in rows),
    }


def violations_text(games: list[Summary]) -> str:
    """Every violating trajectory from iteration 2 on."""
    found = [
        f"- seed {s['seed']}, iteration {row['i']}, {v['task']}, episode {v['episode']}: "
        f"{v['where']}"
        for s in games
        for row in s["iterations"][1:]
        for v in row["violations"] or ()
    ]
    if not found:
        return "No trajectory of any seed violates from iteration 2 on."
    return "Trajectories that violate from iteration 2 on:\n\n" + "\n".join(found)


def never_seen(walks: list[Row]) -> Rows:
    """Every walk to a task that nobody demonstrated, and sums by what was said before it."""
    rows: Rows = []
    for walk in walks:
        said = "covered" if walk["covered"] else "uncovered"
        places = {key: f"({walk[key][0]},{walk[key][1]})" for key in ("goal", "start")}
        figures = {key: walk[key] for key in ("episodes", "arrived", "true_cost")}
        rows.append({"trained": walk["trained"], "said": said, **places, **figures})
    sums: Rows = []
    for trained, said in dict.fromkeys((r["trained"], r["said"]) for r in rows):
        of = [r for r in rows if (r["trained"], r["said"]) == (trained, said)]
        sums.append(
            {
                "trained": trained,
                "said": said,
                "goal": "all",
                "pairs": len(of),
                "episodes": sum(r["episodes"] for r in of),
                "arrived": sum(r["arrived"] for r in of),
                "worst": min(r["arrived"] / r["episodes"] for r in of),
                "true_cost": max(r["true_cost"] for r in of),
            }
        )
    return [*rows, *sums]
