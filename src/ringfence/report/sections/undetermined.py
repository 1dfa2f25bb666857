"""What nobody can know from these demonstrations."""

from __future__ import annotations

from ringfence.objects import NotHere
from ringfence.report.cell_labels import Labels
from ringfence.report.markup import Markup, folded, muted, tag, titled
from ringfence.report.read import Run
from ringfence.report.sampled_labels import SampledLabels
from ringfence.report.text import cell_names, plural, some

TITLE = "What the demonstrations do not determine"
EXPLAINED = 20  # so many conflict sets are spelled out


def section(run: Run) -> Markup | NotHere:
    if run.sampled is not None:
        return titled(
            TITLE, [tag("p", text) for text in sampled_words(run.sampled)], name="undetermined"
        )
    if run.labels is None:
        return NotHere(run.reason("evidence"))
    said = [tag("p", text) for text in open_words(run, run.labels)]
    return titled(TITLE, said, _conflicts(run.labels), name="undetermined")


def sampled_words(labels: SampledLabels) -> list[str]:
    evidence = labels.evidence
    counts, sets = evidence.counts(), len(evidence.conflicts)
    said = [
        f"They do not say whether {plural(counts['unknown'], 'unknown cell')} may be entered. What "
        "the constraint says of them is the learner's choice; a new task that needs one is not "
        "covered, and --unknown avoid keeps off them."
    ]
    if counts["implicated"]:
        said.insert(
            0,
            f"They do not say which of {plural(counts['implicated'], 'implicated cell')} are "
            f"forbidden: {plural(sets, 'set')} of cells can't all be allowed.",
        )
    return said


def open_words(run: Run, labels: Labels) -> list[str]:
    said = [_on_implicated(labels), _on_unknown(labels), _on_truth(run, labels)]
    return [text for text in said if text]


def _on_implicated(labels: Labels) -> str:
    count, sets = labels.count("implicated"), len(labels.evidence.conflicts)
    if count == 0:
        return ""
    thick = (
        ""
        if labels.count("proven")
        else " No single cell is proven: in a thick wall one open cell would help nobody."
    )
    return (
        f"They do not say which of {plural(count, 'implicated cell')} are forbidden. Each stands "
        f"in at least one of {plural(sets, 'known set')} of cells that can't all be allowed, and "
        f"any cell of a set could be the forbidden one.{thick}"
    )


def _on_unknown(labels: Labels) -> str:
    unknown = labels.region("unknown")
    count = int(unknown.sum())
    if count == 0:
        return "Every cell was visited or stands in a conflict: none is unknown."
    forbids = int((unknown & labels.forbidden).sum())
    return (
        f"They do not say whether {plural(count, 'unknown cell')} may be entered: "
        f"{cell_names(unknown)}. The constraint forbids {forbids} and allows {count - forbids} of "
        "them, on no evidence. A new task that needs such a cell is not covered: transfer says so "
        "before it runs."
    )


def _on_truth(run: Run, labels: Labels) -> str:
    """How the labels fare, where the truth is known: it was not used to make them."""
    if run.walls is None:
        return ""
    proven, implicated = labels.region("proven"), labels.region("implicated")
    right = [
        f"{int((region & run.walls).sum())} of {int(region.sum())} {kind} cells"
        for kind, region in (("proven", proven), ("implicated", implicated))
        if region.any()
    ]
    if not right:
        return ""
    entered = run.walls & labels.region("allowed")
    slips = (
        f" {plural(int(entered.sum()), 'allowed cell')} {cell_names(entered)} are walls: some "
        "expert went through."
        if entered.any()
        else ""
    )
    return f"Here the truth is known, and {some(right)} are walls.{slips}"


def _conflicts(labels: Labels) -> Markup | None:
    known = labels.evidence.conflicts
    if not known:
        return None
    smallest = sorted(known, key=lambda c: (len(c.cells), c.cells))[:EXPLAINED]
    rest = len(known) - len(smallest)
    sentences = [labels.evidence.explain(conflict) for conflict in smallest]
    items = [tag("li", text[0].upper() + text[1:]) for text in sentences]
    more = muted(f"And {rest} more in evidence.json.") if rest else None
    return folded(
        f"Known sets of cells that can't all be allowed ({len(known)})", tag("ul", items), more
    )
