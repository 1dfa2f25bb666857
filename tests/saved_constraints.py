"""Constraints of each kind, and one of them saved in a folder."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from ringfence.constraints.constraint_files import to_bytes
from ringfence.constraints.linear import parse_inequality
from ringfence.constraints.mlp import MLPConstraint
from ringfence.constraints.table import TableConstraint
from ringfence.constraints.written import parse_constraint
from ringfence.objects import Constraint, Feature

PLANE = (Feature("x", "m"), Feature("y", "m"))


def random_network(
    hidden: tuple[int, ...] = (8, 5), features: tuple[Feature, ...] = PLANE, offset: float = 0.25
) -> MLPConstraint:
    rng = np.random.default_rng(0)
    sizes = [len(features), *hidden, 1]
    pairs = list(pairwise(sizes))
    return MLPConstraint(
        features,
        rng.normal(size=len(features)),
        rng.uniform(0.5, 2, len(features)),
        tuple(rng.normal(size=pair).astype(np.float32) for pair in pairs),
        tuple(rng.normal(size=pair[1]).astype(np.float32) for pair in pairs),
        offset,
    )


CELLS = (Feature("row", "cell"), Feature("col", "cell"))
TABLE = TableConstraint(CELLS, np.random.default_rng(0).random((3, 4)))
LINE = parse_inequality("0.5 row - col <= 0.1", CELLS)
NETWORK = random_network(features=CELLS)
SEVERAL = parse_constraint("|row - 1| <= 1.5 and row >= -1 while 2 col >= 3 and col <= 2", CELLS)
INTERVAL = {"offset": (0.05, 0.2)}


def saved(folder: Path, c: Constraint = TABLE) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in to_bytes(c, 0.25, {"seed": 3}, INTERVAL).items():
        (folder / name).write_bytes(content)
    return folder
