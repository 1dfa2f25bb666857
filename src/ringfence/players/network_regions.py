"""What a network forbids of all that its fit saw, in words that people can check."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ringfence.constraints.boxes import largest_boxes
from ringfence.constraints.cell_grid import MOST_FEATURES, around, named_box
from ringfence.constraints.mlp import MLPConstraint
from ringfence.objects import Array, Behaviour

NAMED = 3  # boxes


def forbidden_words(
    c: MLPConstraint, experts: Sequence[Behaviour], learners: Sequence[Behaviour]
) -> str:
    """The shares of steps that c forbids and, where it is on few features, of the cells that
    demonstrators and learners covered, with the largest boxes of these."""
    theirs, own = (_share(c, group) for group in (experts, learners))
    said = f"forbids {own:.0%} of learners' steps, {theirs:.0%} of demonstrators'"
    names = [f.name for f in c.features]
    columns = [names.index(f.name) for f in c.used]
    if not 1 <= len(columns) <= MOST_FEATURES:
        return said
    points = np.concatenate([pi.features[pi.visits > 0] for pi in (*experts, *learners)])
    grid = around(points, columns, [None] * len(columns))
    covered = np.zeros(grid.shape, np.bool_)
    covered[grid.index(points)] = True
    at = np.argwhere(covered)
    middles: Array = np.zeros((len(at), len(names)))
    middles[:, columns] = grid.low + grid.size * (at + 0.5)
    forbidden = np.zeros(grid.shape, np.bool_)
    forbidden[covered] = c.cost(middles) > 0
    share = forbidden.sum() / covered.sum()
    boxes = "; ".join(named_box(grid, c.used, *box) for box in largest_boxes(forbidden, NAMED))
    return f"{said}, {share:.0%} of the cells that they covered{': ' * bool(boxes)}{boxes}"


def _share(c: MLPConstraint, group: Sequence[Behaviour]) -> float:
    steps = sum(float(pi.visits.sum()) for pi in group)
    return sum(float(pi.visits @ (c.cost(pi.features) > 0)) for pi in group) / (steps or 1.0)
