"""The evidence as the report shows it: counts, reasons, and what damage is called."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ringfence.analysis.evidence import LABELS
from ringfence.errors import InvalidInput
from ringfence.report.cell_labels import Labels, make_labels
from ringfence.report.read import read_run


@pytest.fixture
def document(finished: Path) -> Any:
    return json.loads((finished / "evidence.json").read_text())


@pytest.fixture
def labels(finished: Path) -> Labels:
    found = read_run(finished).labels
    assert found is not None
    return found


def test_labels_are_those_of_the_file(document: Any, labels: Labels) -> None:
    kinds = [label.kind for label in labels.cells.values()]
    assert kinds == document["evidence"]["labels"]
    for why, label in zip(document["why"], labels.cells.values(), strict=True):
        assert why in label.words
    for kind in LABELS:
        assert labels.count(kind) == labels.region(kind).sum() == kinds.count(kind)


def test_implicated_cells_show_their_m(labels: Labels) -> None:
    label = replace(next(iter(labels.cells.values())), kind="implicated", m=4, exact=True)
    assert label.letter == "4"
    assert replace(label, exact=False).letter == "\u22644"


def test_relation_counts_add_up(labels: Labels) -> None:
    r = labels.relation
    parts = (r.contradicted, r.confirmed, r.implicated, r.unknown)
    assert sum(map(len, parts)) == labels.forbidden.sum()


def test_a_wish_names_task_start_and_cells_once(document: Any, labels: Labels) -> None:
    wish = {"task": "goal (3,3)", "start": [1, 2], "score": 2.4, "cells": [[0, 3], [0, 4]]}
    again = {**wish, "start": [2, 2], "score": 1.1}
    found = make_labels({**document, "next": [wish, again]}, labels.forbidden).wishes
    assert found is not None
    assert len(found) == 1  # the same task through the same cells
    for part in ("goal (3,3)", "from (1,2)", "2.4", "(0,3) and (0,4)"):
        assert part in found[0]
    assert make_labels({**document, "next": None}, labels.forbidden).wishes is None


def test_labels_of_states_in_a_row_lie_on_a_map_of_one_row(document: Any) -> None:
    count = len(document["evidence"]["labels"])
    document["evidence"]["shape"] = [count]
    found = make_labels(document, np.zeros((1, count), np.bool_))
    assert list(found.cells) == [(0, n) for n in range(count)]


def shorten(document: Any) -> None:
    document["evidence"]["m"].pop()


def other_shape(document: Any) -> None:
    document["evidence"]["shape"] = [6, 4]


def no_witness(document: Any) -> None:
    document["evidence"]["witness"] = [-1] * len(document["evidence"]["witness"])


def bad_wish(document: Any) -> None:
    document["next"] = [{"task": "goal", "cells": []}]


def no_evidence(document: Any) -> None:
    del document["evidence"]


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (shorten, "one entry for each"),
        (other_shape, "the map has"),
        (no_witness, "without a witness"),
        (bad_wish, "score"),
        (no_evidence, "no entry 'evidence'"),
    ],
)
def test_damaged_evidence_is_named(
    document: Any, labels: Labels, damage: Callable[[Any], None], cause: str
) -> None:
    damage(document)
    with pytest.raises(InvalidInput, match=r"evidence\.json") as caught:
        make_labels(document, labels.forbidden)
    assert cause in str(caught.value)
    assert "resume" in str(caught.value)
