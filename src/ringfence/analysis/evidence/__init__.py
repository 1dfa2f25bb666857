"""Evidence: what the demonstrations determine about each cell. On finite worlds:

groups.py    demonstrations by task and start
labels.py    allowed, proven, implicated, unknown: the definitions (read this first)
result.py    the labels with their reasons, in words and as JSON
conflicts.py the smallest sets of cells that can't all be allowed
moves.py     the dynamic programmes under them; ways.py: quicker ones where only goals pay;
             stretches.py prunes their search
relate.py    covered tasks, and a learned constraint against the labels
suggest.py   which demonstration to ask for next

On continuous worlds, over cells of the class's features:

sampled.py   the same labels, and what they mean there (read this first)
witnesses.py policies that beat the demonstrators, by bounds
witnessed.py labels from them; narrowing.py drops cells from their conflicts
ask.py       which demonstration to ask for next
"""

from ringfence.analysis.evidence.groups import Group, exact_group, groups_of
from ringfence.analysis.evidence.labels import label, shape_of
from ringfence.analysis.evidence.relate import Relation, covered, relate
from ringfence.analysis.evidence.result import (
    ALLOWED,
    IMPLICATED,
    LABELS,
    PROVEN,
    UNKNOWN,
    Conflict,
    Evidence,
    Standing,
    from_json,
)
from ringfence.analysis.evidence.suggest import Suggestion, next_demonstrations

__all__ = [
    "ALLOWED",
    "IMPLICATED",
    "LABELS",
    "PROVEN",
    "UNKNOWN",
    "Conflict",
    "Evidence",
    "Group",
    "Relation",
    "Standing",
    "Suggestion",
    "covered",
    "exact_group",
    "from_json",
    "groups_of",
    "label",
    "next_demonstrations",
    "relate",
    "shape_of",
]
