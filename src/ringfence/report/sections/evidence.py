"""What the demonstrations prove about each cell, and which to ask for next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ringfence.objects import NotHere
from ringfence.report.cell_labels import Labels
from ringfence.report.draw.svg_cells import evidence_map
from ringfence.report.draw.svg_labels import label_map, witness_map
from ringfence.report.markup import Child, Markup, muted, tag, titled
from ringfence.report.read import Run
from ringfence.report.sampled_labels import SampledLabels
from ringfence.report.text import plural, some

TITLE = "What the demonstrations prove"
WITNESSES = 4  # of the smallest conflicts, that are shown walking
#: How the cells that the constraint forbids, or misses, stand to the labels.
RELATIONS = {
    "contradicted": "A contradiction: it forbids {count} where an expert was: {names}.",
    "confirmed": "{count} that it forbids: proven to be forbidden.",
    "implicated": "{count} that it forbids: implicated. Not all of them can be allowed, and that "
    "it is these is the learner's choice.",
    "unknown": "{count} that it forbids without any evidence, by the learner's choice: {names}.",
    "missed": "{count} that it lets in, though proven to be forbidden: {names}.",
}


def section(run: Run) -> Markup | NotHere:
    if run.sampled is not None:
        return sampled_section(run, run.sampled)
    if run.labels is None or run.cells is None:
        return NotHere(run.reason("evidence"))
    intro = (
        "From the demonstrations alone, if their makers were near-optimal: which cells can't have "
        "been allowed. No learning step and no truth enters."
    )
    caption = "Evidence of each cell. The dashed line is the selected constraint."
    drawing = evidence_map(run, run.cells, run.labels)
    words = [
        _key(run.labels),
        _listed("The learned constraint against these labels", relation_words(run.labels)),
        _listed("What the labels rest on", standing_words(run.labels)),
        _listed("Demonstrations worth asking for next", wish_words(run.labels)),
    ]
    figure = tag("figure", drawing, tag("figcaption", caption), class_="card")
    both = tag("div", figure, tag("div", words), class_="two")
    return titled(TITLE, muted(intro), both, name="evidence")


def sampled_section(run: Run, labels: SampledLabels) -> Markup:
    """Where cells are of continuous features: labels, and the witnesses behind them."""
    evidence, counts = labels.evidence, labels.evidence.counts()
    intro = (
        "From the demonstrations, and from policies of the game that earn more than their makers "
        "could, if these were near-optimal. No truth enters."
    )
    meaning = {
        "allowed": "a demonstrator was there.",
        "proven": "a policy that beats the demonstrators was here, and else only where they were.",
        "implicated": "such a policy was here, and in other cells where no demonstrator was: not "
        "all of them can be allowed.",
        "unknown": "no demonstration speaks for or against it.",
    }
    key = [
        child
        for kind, words in meaning.items()
        for child in (
            tag("dt", " ", class_=f"swatch {kind}"),
            tag("dd", tag("b", f"{counts[kind]} {kind}"), f": {words}"),
        )
    ]
    caption = "Green: allowed; dark: proven; grey: implicated; blank: unknown. Violet: the selected"
    figure = tag(
        "figure",
        label_map(run, evidence),
        tag("figcaption", f"{caption} constraint."),
        class_="card",
    )
    wishes = labels.wishes or ("None: no straight way leads through an unknown cell.",)
    words = [
        tag("dl", key, class_="key"),
        _listed("The learned constraint against these labels", labels.relation),
        _listed("What the labels rest on", evidence.sentences()),
        _listed("Demonstrations worth asking for next", wishes),
    ]
    both = tag("div", figure, tag("div", words), class_="two")
    shown = [
        tag(
            "figure",
            witness_map(evidence, conflict, n),
            tag("figcaption", _sentence(evidence.explain(conflict))),
            class_="card",
        )
        for n, conflict in enumerate(evidence.conflicts[:WITNESSES])
    ]
    walks = [tag("h3", "Witnesses"), tag("div", shown, class_="two even")] if shown else []
    return titled(TITLE, muted(intro), both, walks, name="evidence")


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _listed(title: str, sentences: Sequence[str]) -> list[Child]:
    if len(sentences) == 1:
        return [tag("h3", title), tag("p", sentences[0])]
    return [tag("h3", title), tag("ul", [tag("li", sentence) for sentence in sentences])]


def _key(labels: Labels) -> Markup:
    sizes = Counter(label.m for label in labels.cells.values() if label.kind == "implicated")
    by_size = ", ".join(f"m = {m}: {count}" for m, count in sorted(sizes.items()))
    others = "the same, but only if m \u2212 1 other cells were allowed with it"
    entries = {
        "allowed": ("\u2022", "a demonstrator was there."),
        "proven": ("P", "if it alone were allowed, some task could beat its experts."),
        "implicated": ("m", f"{others} ({by_size})." if by_size else f"{others}."),
        "unknown": ("?", "no demonstration speaks for or against it."),
    }
    rows: list[Child] = []
    for kind, (letter, meaning) in entries.items():
        rows.append(tag("dt", letter, class_=kind))
        rows.append(tag("dd", tag("b", f"{labels.count(kind)} {kind}"), f": {meaning}"))
    return tag("dl", rows, class_="key")


def relation_words(labels: Labels) -> list[str]:
    """The selected constraint against the labels."""
    if not labels.forbidden.any():
        return ["The selected constraint forbids no cell."]
    said = []
    for part, words in RELATIONS.items():
        cells = getattr(labels.relation, part)
        names = some([labels.evidence.name(cell) for cell in cells])
        if cells:
            said.append(words.format(count=plural(len(cells), "cell"), names=names))
    if labels.relation.unexplained:
        count = plural(len(labels.relation.unexplained), "known conflict set")
        said.append(f"It leaves {count} unexplained: no cell of theirs is forbidden.")
    elif labels.evidence.conflicts:
        said.append("It explains every known conflict: in each, at least one cell is forbidden.")
    return [*said, *labels.remarks]


def standing_words(labels: Labels) -> list[str]:
    said = list(labels.evidence.sentences())
    if not labels.evidence.suspects:
        groups = plural(len(labels.evidence.standings), "group")
        said.insert(0, f"No expert looks suboptimal: each of {groups} (a task from one start) did "
                    "as well as the cells that experts visited allow.")  # fmt: skip
    return said


def wish_words(labels: Labels) -> list[str]:
    if not labels.evidence.unknown.any():
        return ["None: no cell is unknown."]
    if labels.wishes is None:
        return ["This run did not look for any."]
    none = "None of the world's tasks would lead an expert through an unknown cell."
    return list(labels.wishes) or [none]
