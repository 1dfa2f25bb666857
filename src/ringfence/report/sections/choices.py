"""What other choices among the iterations would have given."""

from __future__ import annotations

from ringfence.objects import NotHere
from ringfence.report.markup import Child, Markup, muted, number, table, titled
from ringfence.report.read import Run
from ringfence.report.text import DASH

TITLE = "Which iterate"
NAMED = {
    "selected": "on held-out demonstrations",
    "last": "the last iterate",
    "random": "a random iterate, on average",
    "truth": "the best by the truth",
}
COLUMNS = {
    "error": "constraint_error",
    "reward": "learner_reward_mean",
    "true raw": "learner_true_raw_mean",
    "true cost": "learner_true_cost_mean",
}


def section(run: Run) -> Markup | NotHere:
    choices = {k: c for k, c in (run.summary["choices"] or {}).items() if c and k in NAMED}
    if not choices:
        return NotHere(run.reason("choices"))
    shown = {
        title: name
        for title, name in COLUMNS.items()
        if any(choice[name] is not None for choice in choices.values())
    }
    rows: list[list[Child]] = [
        [
            words,
            DASH if choices[key]["i"] is None else choices[key]["i"],
            *(number(choices[key][name], 4) for name in shown.values()),
        ]
        for key, words in NAMED.items()
        if key in choices
    ]
    note = "The first row is what the run hands out; it was chosen without the truth."
    return titled(TITLE, muted(note), table(["choice", "iteration", *shown], rows), name="choices")
