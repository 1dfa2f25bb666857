"""A constraint as other software meets it: loaded, called on features, asked what it says.

`ringfence.load` and `ringfence.save` are this module's. They need numpy and safetensors only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ringfence.constraints import constraint_files
from ringfence.constraints.tightening import tightened
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint, Feature


@dataclass(frozen=True, eq=False)
class SavedConstraint:
    """A learned constraint with what it was saved with.

    delta: the most that the cost of an episode should sum to (what the demonstrations have);
    interval: [low, high] of parameters by name, or None; provenance: where it came from.
    Calling it checks the features; `raw` and `cost` are the constraint's own.
    """

    constraint: Constraint
    delta: float
    interval: constraint_files.Interval | None
    provenance: Mapping[str, Any]

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.constraint.features

    def __call__(self, phi: ArrayLike) -> Array:
        """The cost [n] of features [n, d]."""
        return self.cost(self.checked(phi))

    def raw(self, phi: ArrayLike) -> Array:
        return self.constraint.raw(phi)

    def activate(self, raw: Array) -> Array:
        return self.constraint.activate(raw)

    def cost(self, phi: ArrayLike) -> Array:
        return self.constraint.cost(phi)

    def describe(self) -> str:
        return self.constraint.describe()

    def tightened(self, clearance: float) -> SavedConstraint:
        """The same moved inwards, for who is to keep a clearance from it: "speed <= 0.75" at 0.05
        is "speed <= 0.7". The interval is of what was learned, so there is none."""
        if not clearance:
            return self
        return replace(self, constraint=tightened(self.constraint, clearance), interval=None)

    def checked(self, phi: ArrayLike) -> Array:
        """Features as an array [n, d] of finite numbers, or an error that names the feature."""
        rows = np.asarray(phi, np.float64)
        names = [f.name for f in self.features]
        if rows.ndim != 2 or rows.shape[1] != len(names):
            raise InvalidInput(
                f"features have shape {rows.shape}; this constraint takes [n, {len(names)}]: "
                f"{', '.join(names)}"
            )
        finite = np.isfinite(rows)
        if not finite.all():
            bad = names[int(np.argmin(finite.all(axis=0)))]
            raise InvalidInput(f"feature {bad!r} is not finite in some row")
        return rows


def load(folder: str | Path) -> SavedConstraint:
    """The constraint saved in a folder, or in a run's folder; anything doubtful is refused."""
    folder = Path(folder)
    if (folder / "constraint").is_dir():
        folder = folder / "constraint"
    elif (folder / "config.toml").is_file():
        raise InvalidInput(
            f"{folder}: this run has no constraint: it is unfinished (go on with 'ringfence "
            "resume'), or none was needed (see its report.html)"
        )
    c, document = constraint_files.load_document(folder)
    interval = document["interval"]
    return SavedConstraint(
        constraint=c,
        delta=float(document["delta"]),
        interval=None if interval is None else {k: (v[0], v[1]) for k, v in interval.items()},
        provenance=document["provenance"],
    )


def save(
    constraint: Constraint,
    folder: str | Path,
    delta: float,
    provenance: Mapping[str, Any] | None = None,
    interval: constraint_files.Interval | None = None,
) -> None:
    """Write a constraint into a new folder, with the limit on an episode's cost under it."""
    folder = Path(folder)
    if isinstance(constraint, SavedConstraint):
        constraint = constraint.constraint
    contents = constraint_files.to_bytes(constraint, delta, provenance or {}, interval)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise InvalidInput(f"{folder}: it exists already; choose another folder") from None
    for name, content in contents.items():
        (folder / name).write_bytes(content)
