"""report.html: one page about a run of any world, complete in itself, and one over several seeds.

A page is a list of sections. Each is offered to every run; one that can't apply says why, and the
page says so in a line. It is written from the run's files and holds everything it shows: drawings
are SVG in the text, so that a program can check them, and a small script shows and hides them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ringfence.disk import write_file
from ringfence.objects import NotHere
from ringfence.report import facts, seeds
from ringfence.report.markup import Markup, document, tag, titled
from ringfence.report.read import Run, read_run
from ringfence.report.sections import (
    choices,
    evidence,
    explorer,
    headline,
    intervals,
    iterations,
    provenance,
    undetermined,
    use,
    walks,
)

NAME = "report.html"
Section = Callable[[Run], Markup | NotHere]

#: In the order of the page; what is absent is listed before the last one.
SECTIONS: tuple[tuple[str, Section], ...] = (
    (headline.TITLE, headline.section),
    (explorer.TITLE, explorer.section),
    (walks.TITLE, walks.section),
    (iterations.TITLE, iterations.section),
    (evidence.TITLE, evidence.section),
    (undetermined.TITLE, undetermined.section),
    (intervals.TITLE, intervals.section),
    (choices.TITLE, choices.section),
    (use.TITLE, use.section),
    (provenance.TITLE, provenance.section),
)


def write(run: Path, out: Path | None = None) -> Path:
    """Write a finished run's page, by default its report.html, whole or not at all."""
    return write_file(out or run / NAME, render(run).encode())


def render(run: Path) -> str:
    """The page of a finished run."""
    return render_run(read_run(run))


def render_run(run: Run) -> str:
    found = [(title, section(run)) for title, section in SECTIONS]
    *body, last = [part for _, part in found if isinstance(part, Markup)]
    missing = [(title, part.reason) for title, part in found if isinstance(part, NotHere)]
    title = f"{run.summary['world']}: {facts.title(run)}"
    return document(title, [*body, _absent(missing), last], explored=bool(run.rows and run.views))


def _absent(missing: Sequence[tuple[str, str]]) -> Markup | None:
    """What is not on the page, and why: a line for each reason."""
    if not missing:
        return None
    by_reason: dict[str, list[str]] = {}
    for title, reason in missing:
        by_reason.setdefault(reason, []).append(title)
    lines = [
        tag("li", tag("b", "; ".join(titles)), f": {reason.rstrip('.')}.")
        for reason, titles in by_reason.items()
    ]
    return titled("Not on this page", tag("ul", lines, class_="absent"), name="absent")


def write_many(runs: Sequence[Path], out: Path) -> Path:
    """Write one page over several seeds of the same experiment."""
    seeds.require_one_experiment(runs)
    return write_file(out, seeds.render([read_run(run) for run in runs]).encode())
