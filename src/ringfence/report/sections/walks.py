"""Learners walking over a floor, under the first constraint and under the last."""

from __future__ import annotations

from ringfence.objects import Array, NotHere
from ringfence.report.cells import Cells
from ringfence.report.draw.svg_cells import walking
from ringfence.report.markup import Markup, muted, tag, titled
from ringfence.report.read import Run
from ringfence.report.text import plural

TITLE = "Walks"


def section(run: Run) -> Markup | NotHere:
    cells = run.cells
    if not run.rows:
        return NotHere(run.reason("walks"))
    if cells is None or cells.layout is None:
        return NotHere("they are shown on a maze's floor, and this world has none")
    walked = [n for n in sorted({0, len(run.rows) - 1}) if _paths(run, cells, n)]
    if not walked:
        return NotHere("the ledger keeps no episodes")
    intro = (
        "One Ant per task and start, ten times faster than they walk. Hatched: cells that the "
        "planner goes around; violet line: cost 0.5 of the network; outlined: the true walls."
    )
    figures = [_figure(run, cells, n) for n in walked]
    return titled(TITLE, muted(intro), tag("div", figures, class_="two even"), name="walks")


def _figure(run: Run, cells: Cells, n: int) -> Markup:
    paths = _paths(run, cells, n)
    drawing = walking(cells, run.maps[n], run.learned[n], paths, f"walk-{n + 1}")
    cost = run.rows[n]["learner_true_cost_mean"]
    spent = "" if cost is None else f", {cost:.1f} steps per episode in walls"
    flagged = plural(int(run.maps[n].forbidden.sum()), "cell")
    caption = f"Under the constraint of iteration {n + 1}: {flagged} flagged{spent}."
    return tag("figure", drawing, tag("figcaption", caption), class_="card")


def _paths(run: Run, cells: Cells, n: int) -> list[Array]:
    """One walk from each start of each task, as far as the ledger has them."""
    found = [learner for learner in run.learners[n] if learner is not None]
    return [cells.places(walk) for one in found for walk in one.walks or one.episodes[:1]]
