"""The evidence on the page: counts, reasons, and what is said about the constraint."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringfence.analysis.evidence import LABELS
from ringfence.errors import InvalidInput
from ringfence.report import findings, page
from ringfence.report.labels import Suggestion, read_labels
from ringfence.report.read import RunData, read_run
from ringfence.report.svg import evidence_letters, outline


@pytest.fixture
def run(finished: Path) -> RunData:
    return read_run(finished)


def test_labels_are_those_of_the_file(finished: Path, run: RunData) -> None:
    labels = read_labels(run)
    assert labels is not None
    document = json.loads((finished / "evidence.json").read_text())
    kinds = [labels.cells[cell].kind for cell in np.ndindex(run.shape)]
    assert kinds == document["evidence"]["labels"]
    for n, cell in enumerate(np.ndindex(run.shape)):
        assert document["why"][n] in labels.cells[cell].words


def test_counts_on_the_page_are_the_summary_s(finished: Path, run: RunData) -> None:
    text = page.render(finished)
    for kind in LABELS:
        assert f"<b>{run.summary['evidence'][kind]} {kind}</b>" in text


def test_implicated_cells_show_their_m(run: RunData) -> None:
    labels = read_labels(run)
    assert labels is not None
    drawn = evidence_letters(labels, {})
    for label in labels.cells.values():
        if label.kind == "implicated":
            assert label.letter == str(label.m)
            assert f">{label.m}</text>" in drawn
    bounded = replace(next(iter(labels.cells.values())), kind="implicated", m=4, exact=False)
    assert bounded.letter == "\u22644"


def test_relation_counts_add_up(run: RunData) -> None:
    labels = read_labels(run)
    assert labels is not None
    r = labels.relation
    parts = (r.contradicted, r.confirmed, r.implicated, r.unknown)
    assert sum(map(len, parts)) == run.selected.forbidden.sum()
    backed, total = findings.tile(run, labels)[0].split(" of ")
    assert int(backed) == len(r.confirmed) + len(r.implicated)
    assert int(total) == run.selected.forbidden.sum()


def test_contradictions_and_choices_are_listed(run: RunData) -> None:
    everything = replace(run.selected, forbidden=np.ones(run.shape, dtype=bool))
    changed = replace(run, selected=everything)
    labels = read_labels(changed)
    assert labels is not None
    said = " ".join(findings.relation_words(changed, labels))
    assert "A contradiction" in said
    nothing = replace(run.selected, forbidden=np.zeros(run.shape, dtype=bool))
    changed = replace(run, selected=nothing)
    labels = read_labels(changed)
    assert labels is not None
    assert "forbids no cell" in findings.relation_words(changed, labels)[0]


def test_slow_experts_are_named_with_their_reason(run: RunData) -> None:
    labels = read_labels(run)
    assert labels is not None
    assert "None of" in findings.suspect_words(labels)[0]
    slow = replace(labels.evidence.standings[0], testifies=False, reason="too slow", gap=3.0)
    evidence = replace(labels.evidence, standings=(slow, *labels.evidence.standings[1:]))
    (said,) = findings.suspect_words(replace(labels, evidence=evidence))
    assert "too slow (by 3)" in said
    assert slow.task in said


def test_suggestions_name_task_start_and_cells(run: RunData) -> None:
    labels = read_labels(run)
    assert labels is not None
    unknown = np.full(len(labels.evidence.labels), LABELS.index("unknown"), dtype=np.int8)
    evidence = replace(labels.evidence, labels=unknown)
    best = Suggestion("goal (3,3)", (1, 2), 2.4, ((0, 3), (0, 4)))
    again = replace(best, start=(2, 2), score=1.1)
    said = findings.suggestion_words(replace(labels, evidence=evidence, suggestions=(best, again)))
    assert len(said) == 1  # the same task through the same cells is one wish
    for part in ("goal (3,3)", "from (1,2)", "2.4", "(0,3) and (0,4)"):
        assert part in said[0]


def test_what_is_open_is_said(run: RunData) -> None:
    labels = read_labels(run)
    assert labels is not None
    said = " ".join(findings.open_words(run, labels))
    if labels.count("implicated"):
        assert "They do not say which" in said
    assert "Here the truth is known" in said
    assert "truth" not in " ".join(findings.open_words(replace(run, walls=None), labels))


def shorten(document: Any) -> None:
    document["evidence"]["m"].pop()


def other_shape(document: Any) -> None:
    document["evidence"]["shape"] = [6, 4]


def no_witness(document: Any) -> None:
    document["evidence"]["witness"] = [-1] * len(document["evidence"]["witness"])


def bad_suggestion(document: Any) -> None:
    document["next"] = [{"task": "goal"}]


def no_evidence(document: Any) -> None:
    del document["evidence"]


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (shorten, "one entry for each"),
        (other_shape, "the map has"),
        (no_witness, "without a witness"),
        (bad_suggestion, "start"),
        (no_evidence, "no entry 'evidence'"),
    ],
)
def test_damaged_evidence_is_named(
    finished: Path, tmp_path: Path, damage: Callable[[Any], None], cause: str
) -> None:
    copy = Path(shutil.copytree(finished, tmp_path / "copy"))
    document = json.loads((copy / "evidence.json").read_text())
    damage(document)
    (copy / "evidence.json").write_text(json.dumps(document))
    with pytest.raises(InvalidInput, match=r"evidence\.json") as caught:
        page.render(copy)
    assert cause in str(caught.value)
    assert "resume" in str(caught.value)


def test_outline_is_as_long_as_the_border() -> None:
    region = np.zeros((3, 4), dtype=bool)
    region[0, :2] = region[2, 3] = True
    drawn = outline(region, "truth")
    assert drawn.count("M") == 6 + 4
