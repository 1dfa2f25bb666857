"""evidence.json of a continuous world as the report shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringfence.analysis.evidence.sampled import SampledEvidence, from_json
from ringfence.errors import InvalidInput
from ringfence.objects import Feature

SUGGESTED = 3  # so many demonstrations are suggested


@dataclass(frozen=True, eq=False)
class SampledLabels:
    """relation: the selected constraint against the labels; wishes: demonstrations worth asking
    for, both in words."""

    evidence: SampledEvidence
    relation: tuple[str, ...]
    wishes: tuple[str, ...]


def make_sampled(document: Mapping[str, Any], features: Sequence[Feature]) -> SampledLabels:
    """The labels in an evidence.json, which must be about the run's features."""
    try:
        evidence = from_json(document["evidence"])
        if [f.name for f in evidence.features] != [f.name for f in features]:
            raise ValueError("it is about other features")
        judged = [cell for c in evidence.conflicts for cell in c.cells]
        if judged and not 0 <= min(judged) <= max(judged) < len(evidence.labels):
            raise ValueError("a conflict is about cells that there aren't")
        if not all(np.isfinite(c.path).all() and len(c.path) for c in evidence.conflicts):
            raise ValueError("a witness without a path")
        relation = document["relation"] or {"sentences": ["The cells don't tell what it forbids."]}
        return SampledLabels(
            evidence,
            tuple(map(str, relation["sentences"])),
            tuple(f"{w['words']}: {int(w['score'])} unknown cells on the way."
                  for w in document["next"][:SUGGESTED]),
        )  # fmt: skip
    except (InvalidInput, KeyError, TypeError, ValueError) as problem:
        cause = f"no entry {problem}" if isinstance(problem, KeyError) else str(problem)
        raise InvalidInput(
            f"evidence.json: not the evidence of this run ({cause}); write it again with "
            "'ringfence resume RUN'"
        ) from None
