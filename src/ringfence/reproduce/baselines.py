"""Chou et al.'s method beside ICL: one regression, no game."""

from __future__ import annotations

from ringfence.reproduce.iterates import FIGURES, ITERATES, figures, played
from ringfence.reproduce.rows import NOT_RUN, Found, Row, Rows, mean_of
from ringfence.reproduce.study import Study, Summary, read_summaries

COMPARED = FIGURES[:4]


def methods(study: Study) -> Found:
    """ICL's variants by their first, last and selected iterates, and Chou et al., by problem."""
    rows: Rows = []
    for on, names in study.options["games"].items():
        experiment = on.partition("-")[0]
        for name in names:
            found = list(read_summaries(study.out.parent / experiment / name).values())
            for iterate, row in ITERATES.items():
                chosen = [figures(row(s)) for s in played(dict(enumerate(found)))]
                line = {"on": on, "method": f"ICL, {name}", "iterate": iterate}
                rows.append({**line, **summed(chosen, found)})
        ours = list(read_summaries(study.out / on).values())
        results = [figures(s["result"]) for s in ours if s["result"] is not None]
        line = {"on": on, "method": "Chou et al.", "iterate": "only one"}
        rows.append({**line, **summed(results, ours)})
    return Found(rows)


def summed(rows: Rows, summaries: list[Summary]) -> Row:
    """rows: the figures of those summaries that have a constraint."""
    if not summaries:
        return {"status": NOT_RUN}
    steps = sum(s["env_steps"] for s in summaries) / len(summaries)
    with_constraint = f"{len(rows)} of {len(summaries)}"
    return {**mean_of(rows, COMPARED), "env_steps": steps, "with_constraint": with_constraint}
