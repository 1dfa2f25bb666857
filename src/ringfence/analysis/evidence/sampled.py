"""What demonstrations determine about each cell of the class's features, on continuous worlds.

The same four labels as on finite worlds. There a planner finds the smallest sets of cells that
can't all be allowed; here policies that were played are the witnesses (`witnesses.py`):

    X            the cells of a witness: those that any of its episodes entered and no demonstrator
                 visited. Not all of them can be allowed
    allowed      a demonstrator was there
    proven       X is this cell alone
    implicated   it is in an X of m cells, none of whose subsets is known to be one; m is the size
                 of the smallest, an upper bound of what a complete search would find
    unknown      in none

A cell is as large as it is: a demonstrator may have been in the free half of one. So X also has the
visited cells in which the witness was farther than a quarter of a cell from every demonstrated step
(its `border`), or than less, where some witness wins without going so far. A witness with an empty
X speaks against the cells, the class or the demonstrators, and nothing is proven from that task.

If demonstrators could spend a budget, "allowed" reads "visited", nothing is proven, and a conflict
is the inequality: sum over cells of visits x cost > budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis.evidence.moves import Mask
from ringfence.analysis.evidence.result import ALLOWED, IMPLICATED, LABELS, PROVEN, UNKNOWN
from ringfence.analysis.evidence.witnesses import Statement
from ringfence.constraints.cell_grid import Grid, named_box
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Feature

SCHEMA = 1


@dataclass(frozen=True, eq=False)
class Conflict:
    """Cells that can't all be allowed: `witness` entered them and no other unvisited ones.

    border: those of them that demonstrators visited, elsewhere in the cell; visits: of each cell,
    steps per episode; least: the lower bound of its mean return; bar: what it had to exceed; path
    [t, k]: one of its episodes, in the cells' features; start: the first observation, where only
    episodes from there are compared.
    """

    cells: tuple[int, ...]
    border: tuple[int, ...]
    visits: tuple[float, ...]
    task: str
    witness: str
    least: float
    bar: float
    path: Array
    start: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class SampledEvidence:
    """Labels of all cells, with their reasons.

    grid: the cells, numbered row by row; features: all of the world's; labels [S]: indices into
    LABELS; m [S]: the size of the smallest known conflict set, 0 for none; slack: the share of the
    best return that demonstrators may have missed; budget: the cost that their episodes may have
    had (None: not stated); candidates: how many policies were tried; episodes: of each of them;
    doubts: what speaks against the labels.
    """

    grid: Grid
    features: tuple[Feature, ...]
    labels: NDArray[np.int8]
    m: NDArray[np.intp]
    conflicts: tuple[Conflict, ...]
    statements: tuple[Statement, ...]
    doubts: tuple[str, ...]
    slack: float
    budget: float | None
    candidates: int
    episodes: int

    @property
    def allowed(self) -> Mask:
        return np.asarray(self.labels == ALLOWED)

    @property
    def unknown(self) -> Mask:
        return np.asarray(self.labels == UNKNOWN)

    @property
    def strict(self) -> bool:
        """Were demonstrators never to break the constraint?"""
        return self.budget == 0

    @property
    def over(self) -> tuple[Feature, ...]:
        """The features that have cells."""
        return tuple(self.features[k] for k in self.grid.columns)

    @property
    def proven(self) -> Mask:
        return np.asarray(self.labels == PROVEN)

    @property
    def implicated(self) -> Mask:
        return np.asarray(self.labels == IMPLICATED)

    def index(self, phi: Array) -> NDArray[np.intp]:
        """features [n, d] -> the number of the cell that each is in [n]."""
        return cells_of(self.grid, phi)

    def counts(self) -> dict[str, int]:
        """The number of cells with each label."""
        return {name: int((self.labels == i).sum()) for i, name in enumerate(LABELS)}

    def name(self, cell: int) -> str:
        """A cell as people call it: "x 0.2 to 0.4 m x y above 1 m"."""
        first = [int(n) for n in np.unravel_index(cell, self.grid.shape)]
        return named_box(self.grid, self.over, first, [n + 1 for n in first])

    def why(self, cell: int) -> str:
        """The reason for a cell's label, as a sentence."""
        name, label = self.name(cell), int(self.labels[cell])
        if label == ALLOWED:
            word = "allowed" if self.strict else "visited"
            return f"{name} is {word}: a demonstrator was there."
        if label == UNKNOWN:
            return f"{name} is unknown: no demonstration speaks for or against it."
        smallest = min((c for c in self.conflicts if cell in c.cells), key=lambda c: len(c.cells))
        reason = self.explain(smallest)
        if label == PROVEN:
            return f"{name} is proven forbidden: {reason}"
        return f"{name} is implicated (m = at most {self.m[cell]}): {reason}"

    def explain(self, conflict: Conflict) -> str:
        """What a witness shows."""
        where = ", from one of its starts" if conflict.start else ""
        earned = (
            f"on {conflict.task}{where}, {conflict.witness} earns at least {conflict.least:.4g}, "
            f"more than {conflict.bar:.4g}, the most that the demonstrators' constraint can allow"
        )
        if not self.strict:
            budget = "their budget" if self.budget is None else f"{self.budget:.4g}"
            return (
                f"{earned}: in the {len(conflict.cells)} cells where it was, visits x cost of "
                f"an episode must be more than {budget}."
            )
        count, shared = len(conflict.cells), len(conflict.border)
        within = "here" if count == 1 else f"in {count} cells"
        part = f" (of {shared} of them they kept to another part)" if shared else ""
        return f"{earned}, and only {within} it is where no demonstrator was{part}."

    def sentences(self) -> list[str]:
        """What the labels rest on."""
        size = ", ".join(
            f"{f.name} by {s:.4g}{'' if f.unit == '1' else f' {f.unit}'}"
            for f, s in zip(self.over, self.grid.size, strict=True)
        )
        tried = (
            f"{self.candidates} policies were tried on {self.episodes} fresh episodes each"
            if self.candidates
            else "No policy earned more than the demonstrators could, so nothing is shown"
        )
        said = [
            f"{tried}; demonstrators are taken to earn at least {1 - self.slack:.0%} of the best.",
            f"A cell is {size}. Larger cells hold more of what a step shows, but also of what it "
            "doesn't; smaller ones leave gaps between demonstrators' steps, and conflicts larger.",
            "m is an upper bound: other policies might do with fewer of the cells.",
        ]
        if not self.strict:
            said.append(
                "Demonstrators had a budget: a cell that they visited may cost something, and "
                "nothing is proven. Conflicts are inequalities."
            )
        if any(c.start for c in self.conflicts):
            said.append(
                "Where several episodes begin alike they are also compared start by start, and "
                "demonstrators are taken to earn as much of the best from each start."
            )
        told = [f"{t.task}: {t.reason}." for t in self.statements if not t.testifies]
        return [*said, *told, *(f"{doubt}." for doubt in self.doubts)]

    def to_json(self) -> dict[str, Any]:
        """The evidence as plain JSON values; `from_json` reads it back."""
        grid = self.grid
        return {
            "schema": SCHEMA,
            "grid": {
                "columns": list(grid.columns),
                "low": grid.low.tolist(),
                "size": grid.size.tolist(),
                "shape": list(grid.shape),
            },
            "features": [[f.name, f.unit] for f in self.features],
            "labels": {
                name: np.flatnonzero(self.labels == i).tolist()
                for i, name in enumerate(LABELS)
                if i != UNKNOWN
            },
            "m": self.m[self.implicated].tolist(),
            "conflicts": [
                {**asdict(c), "path": np.round(c.path, 6).tolist()} for c in self.conflicts
            ],
            "statements": [
                {**asdict(t), **{n: _finite(getattr(t, n)) for n in ("upper", "bar")}}
                for t in self.statements
            ],
            "doubts": list(self.doubts),
            **{n: getattr(self, n) for n in ("slack", "budget", "candidates", "episodes")},
        }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def from_json(document: Mapping[str, Any]) -> SampledEvidence:
    """The evidence that `to_json` wrote."""
    try:
        if document["schema"] != SCHEMA:
            raise InvalidInput(f"evidence: schema {document['schema']!r}, this one reads {SCHEMA}")
        d = document["grid"]
        grid = Grid(
            tuple(map(int, d["columns"])),
            np.array(d["low"], np.float64),
            np.array(d["size"], np.float64),
            tuple(map(int, d["shape"])),
        )
        labels = np.full(int(np.prod(grid.shape)), UNKNOWN, np.int8)
        for name, cells in document["labels"].items():
            labels[np.array(cells, np.intp)] = LABELS.index(name)
        m = np.zeros(len(labels), np.intp)
        m[labels == IMPLICATED], m[labels == PROVEN] = document["m"], 1
        told = [
            {**t, **{n: np.inf if t[n] is None else t[n] for n in ("upper", "bar")}}
            for t in document["statements"]
        ]
        found = SampledEvidence(
            grid=grid,
            features=tuple(Feature(str(name), str(unit)) for name, unit in document["features"]),
            labels=labels,
            m=m,
            conflicts=tuple(_read_conflict(c, grid) for c in document["conflicts"]),
            statements=tuple(Statement(**t) for t in told),
            doubts=tuple(map(str, document["doubts"])),
            **{n: document[n] for n in ("slack", "budget", "candidates", "episodes")},
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InvalidInput(
            f"evidence: not a document that Ringfence wrote ({error!r}); label again"
        ) from error
    if max(grid.columns) >= len(found.features):
        raise InvalidInput("evidence: cells of features that there aren't; label again")
    return found


def _read_conflict(d: Mapping[str, Any], grid: Grid) -> Conflict:
    path = np.array(d["path"], np.float64).reshape(-1, len(grid.columns))
    whole = {n: tuple(map(int, d[n])) for n in ("cells", "border")}
    real = {n: tuple(map(float, d.get(n, ()))) for n in ("visits", "start")}
    return Conflict(**{**d, **whole, **real, "path": path})


def cells_of(grid: Grid, phi: Array) -> NDArray[np.intp]:
    """features [n, d] -> the number of the cell that each is in [n]."""
    return np.asarray(np.ravel_multi_index(grid.index(phi), grid.shape), np.intp)
