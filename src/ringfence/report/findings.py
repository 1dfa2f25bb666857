"""What the demonstrations prove, what they leave open, and which to ask for next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ringfence.report import svg
from ringfence.report.labels import Labels
from ringfence.report.markup import Child, Markup, figure_text, tag
from ringfence.report.read import RunData
from ringfence.report.shell import folded, section
from ringfence.report.words import cell_name, cell_names, plural, some

SUGGESTED = 3  # so many demonstrations are suggested
EXPLAINED = 20  # so many conflict sets are spelled out


def tile(run: RunData, labels: Labels) -> tuple[str, str]:
    """How many of the forbidden cells the demonstrations speak against."""
    relation = labels.relation
    backed = len(relation.confirmed) + len(relation.implicated)
    total = int(run.selected.forbidden.sum())
    return f"{backed} of {total}", "forbidden cells have evidence against them"


def evidence(run: RunData, labels: Labels | None) -> Markup:
    """The section with the labels."""
    title = "What the demonstrations prove"
    if labels is None:
        missing = "This run holds no evidence.json, so its cells have no labels."
        return section(title, tag("p", missing), name="evidence")
    drawing = tag(
        "figure",
        svg.evidence_map(run, labels),
        tag("figcaption", "Evidence of each cell. The dashed line is the selected constraint."),
        class_="card",
    )
    words = tag(
        "div",
        _key(labels),
        _listed("The learned constraint against these labels", relation_words(run, labels)),
        _listed("Experts that look suboptimal", suspect_words(labels)),
        _listed("Demonstrations worth asking for next", suggestion_words(labels)),
    )
    intro = (
        "From the demonstrations alone, if their makers were near-optimal: which cells can't have "
        "been allowed. No learning step and no truth enters."
    )
    return section(
        title,
        tag("p", intro, class_="muted"),
        tag("div", drawing, words, class_="two"),
        name="evidence",
    )


def _listed(title: str, sentences: Sequence[str]) -> list[Child]:
    if len(sentences) == 1:
        return [tag("h3", title), tag("p", sentences[0])]
    return [tag("h3", title), tag("ul", [tag("li", sentence) for sentence in sentences])]


def _key(labels: Labels) -> Markup:
    sizes = Counter(label.m for label in labels.cells.values() if label.kind == "implicated")
    by_size = ", ".join(f"m = {m}: {count}" for m, count in sorted(sizes.items()))
    entries = {
        "allowed": ("\u2022", "a demonstrator was there."),
        "proven": ("P", "if it alone were allowed, some task could beat its experts."),
        "implicated": (
            "m",
            "the same, but only if m \u2212 1 other cells were allowed with it"
            + (f" ({by_size})." if by_size else "."),
        ),
        "unknown": ("?", "no demonstration speaks for or against it."),
    }
    rows: list[Child] = []
    for kind, (letter, meaning) in entries.items():
        rows.append(tag("dt", letter, class_=kind))
        rows.append(tag("dd", tag("b", f"{labels.count(kind)} {kind}"), f": {meaning}"))
    return tag("dl", rows, class_="key")


def _names(labels: Labels, cells: Sequence[int]) -> str:
    return some([labels.evidence.name(cell) for cell in cells])


def relation_words(run: RunData, labels: Labels) -> list[str]:
    """The selected constraint against the labels."""
    found, total = labels.relation, int(run.selected.forbidden.sum())
    if total == 0:
        return ["The selected constraint forbids no cell."]
    said = []
    if found.contradicted:
        said.append(
            f"A contradiction: it forbids {plural(len(found.contradicted), 'cell')} where an "
            f"expert was: {_names(labels, found.contradicted)}."
        )
    if found.confirmed:
        said.append(f"{len(found.confirmed)} of its {total} forbidden cells are proven.")
    if found.implicated:
        said.append(
            f"{len(found.implicated)} of its {total} forbidden cells are implicated: not all of "
            "them can be allowed, and that it is these is the learner's choice."
        )
    if found.unknown:
        said.append(
            f"{plural(len(found.unknown), 'cell')} it forbids without any evidence, by the "
            f"learner's choice: {_names(labels, found.unknown)}."
        )
    if found.missed:
        said.append(f"It lets {_names(labels, found.missed)} in, proven to be forbidden.")
    if found.unexplained:
        count = plural(len(found.unexplained), "known conflict set")
        said.append(f"It leaves {count} unexplained: no cell of theirs is forbidden.")
    elif labels.evidence.conflicts:
        said.append("It explains every known conflict: in each, at least one cell is forbidden.")
    return said + [remark for remark in labels.remarks if "could be beaten" in remark]


def suspect_words(labels: Labels) -> list[str]:
    """Groups of demonstrations that do not testify, and why."""
    standings, suspects = labels.evidence.standings, labels.evidence.suspects
    if not suspects:
        return [
            f"None of {plural(len(standings), 'group')} (a task from one start): each did as well "
            "as the cells that experts visited allow."
        ]
    return [
        f"{s.task} from {labels.evidence.name(s.start)}: {s.reason}"
        + (f" (by {figure_text(s.gap)})." if s.gap > 0 else ".")
        for s in suspects
    ]


def suggestion_words(labels: Labels) -> list[str]:
    if not labels.evidence.unknown.any():
        return ["None: no cell is unknown."]
    if labels.suggestions is None:
        return ["This run did not look for any."]
    if not labels.suggestions:
        return ["None of the world's tasks would lead an expert through an unknown cell."]
    best: dict[tuple[str, tuple[tuple[int, int], ...]], str] = {}
    for s in labels.suggestions:
        cells = some([cell_name(cell) for cell in s.cells], 6)
        through = f", through {cells}" if cells else ""
        best.setdefault(
            (s.task, s.cells),
            f"{s.task} from {cell_name(s.start)}: expected to settle {figure_text(s.score, 2)} "
            f"of {plural(labels.count('unknown'), 'unknown cell')}{through}.",
        )
    return list(best.values())[:SUGGESTED]


# ------------------------------------------------------------------------------- what is open


def undetermined(run: RunData, labels: Labels | None) -> Markup | None:
    """The section about what nobody can know from these demonstrations."""
    if labels is None:
        return None
    return section(
        "What the demonstrations do not determine",
        [tag("p", text) for text in open_words(run, labels)],
        _conflicts(labels),
        name="undetermined",
    )


def open_words(run: RunData, labels: Labels) -> list[str]:
    said = [_on_implicated(labels), _on_unknown(run, labels), _on_truth(run, labels)]
    return [text for text in said if text] + list(labels.evidence.sentences())


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


def _on_unknown(run: RunData, labels: Labels) -> str:
    unknown = labels.region("unknown")
    count = int(unknown.sum())
    if count == 0:
        return "Every cell was visited or stands in a conflict: none is unknown."
    forbids = int((unknown & run.selected.forbidden).sum())
    return (
        f"They do not say whether {plural(count, 'unknown cell')} may be entered: "
        f"{cell_names(unknown)}. The constraint forbids {forbids} and allows {count - forbids} of "
        "them, on no evidence. A new task that needs such a cell is not covered: transfer says so "
        "before it runs."
    )


def _on_truth(run: RunData, labels: Labels) -> str:
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
    more = tag("p", f"And {rest} more in evidence.json.", class_="muted") if rest else None
    return folded(
        f"Known sets of cells that can't all be allowed ({len(known)})", tag("ul", items), more
    )
