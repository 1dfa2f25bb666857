from __future__ import annotations

from ringfence.report import svg
from ringfence.report.labels import Labels
from ringfence.report.markup import Markup
from ringfence.report.read import RunData


def evidence(run: RunData, labels: Labels | None) -> Markup:
    return Markup("") if labels is None else svg.evidence_map(run, labels)


def undetermined(run: RunData, labels: Labels | None) -> Markup:
    return Markup("")


def tile(run, labels):
    return ("x", "y")
