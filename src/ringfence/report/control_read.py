"""A finished run on a continuous world as the report sees it, read from its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import safetensors.numpy
from contourpy import contour_generator
from safetensors import SafetensorError

from ringfence.constraints import files as constraint_files
from ringfence.constraints.linear import LinearConstraint, parse_inequality
from ringfence.constraints.template import HOLE, linear_template, parse_template
from ringfence.demos import dataset as demonstrations
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint, Feature, widened
from ringfence.report.read import read_json
from ringfence.runs import files

EXPERT_PATHS = 10  # of each task
GRID = 161  # points along each side, between which a network's edge is drawn
OUTCOMES = ("constraint", "no constraint needed")


@dataclass(frozen=True, eq=False)
class ControlRun:
    """All that a report shows of a run on a continuous world.

    learned[n] is c_{n+1}; experts: features [t, d] of some training episodes of the first task;
    learners[n]: the same of iteration n + 1, as far as they were kept.
    """

    config_text: str
    summary: Mapping[str, Any]
    features: tuple[Feature, ...]
    learned: tuple[Constraint, ...]
    experts: tuple[Array, ...]
    learners: tuple[tuple[Array, ...], ...]
    truth: LinearConstraint | None
    seconds: float | None

    @property
    def rows(self) -> list[dict[str, Any]]:
        return list(self.summary["iterations"])

    @property
    def best(self) -> dict[str, Any]:
        """The selected iteration's row."""
        chosen: int = self.summary["selected"]
        return self.rows[chosen - 1]

    def column(self, name: str) -> int | None:
        names = [f.name for f in self.features]
        return names.index(name) if name in names else None

    @property
    def planar(self) -> tuple[int, int] | None:
        """The columns of x and y, if there are any."""
        x, y = self.column("x"), self.column("y")
        return None if x is None or y is None else (x, y)


def is_control(run: Path) -> bool:
    """Is this a finished run on a continuous world?"""
    path = run / "summary.json"
    return path.is_file() and read_json(path).get("outcome") in OUTCOMES


def read_control(run: Path) -> ControlRun:
    """Read a finished run; whatever is missing or broken is an InvalidInput that names it."""
    summary = read_json(run / "summary.json")
    try:
        rows = summary["iterations"]
        given = demonstrations.load(run / "demos")
        learned = tuple(
            constraint_files.load(run / f"constraints/c_{n:03d}") for n in range(len(rows))
        )
        features = learned[0].features if learned else given.features
        truth = parse_inequality(summary["truth"], features) if summary["truth"] else None
        return ControlRun(
            config_text=(run / "config.toml").read_text(encoding="utf-8"),
            summary=summary,
            features=features,
            learned=learned,
            experts=tuple(
                widened(t, len(features)) for task in given.tasks for t in task.train[:EXPERT_PATHS]
            ),
            learners=tuple(
                tuple(t for name in row["ledger"] for t in episodes(run, name)) for row in rows
            ),
            truth=truth,
            seconds=_seconds(run / "timing.json"),
        )
    except (KeyError, TypeError, OSError) as problem:
        raise InvalidInput(
            f"{run}: not a whole run ({type(problem).__name__}: {problem}); write it again with "
            f"'ringfence resume {run}'"
        ) from None


def episodes(run: Path, ledger: str) -> tuple[Array, ...]:
    """The kept episodes of a solve, features [t, d] each; none where they are gone."""
    path = run / "episodes" / ledger / "episodes.safetensors"
    if not path.is_file():
        return ()
    try:
        arrays = safetensors.numpy.load_file(path)
    except SafetensorError as problem:
        raise InvalidInput(f"{path}: can't be read ({problem}); delete it") from None
    return tuple(np.asarray(arrays[k], np.float64) for k in sorted(arrays, key=int))


def _seconds(path: Path) -> float | None:
    if not path.is_file():
        return None
    value = files.read_json(path).get("seconds")
    return float(value) if isinstance(value, int | float) else None


def edges(c: Constraint, xy: tuple[int, int], low: Array, high: Array) -> list[Array]:
    """The lines raw = 0 in a box in x and y, points [n, 2] each; none if other features enter c."""
    if isinstance(c, LinearConstraint):
        return _straight(c, xy, low, high)
    across, up = np.linspace(low, high, GRID).T
    points = np.zeros((2, GRID * GRID, len(c.features)))
    points[1] = 1.0  # other features, at other values
    points[:, :, xy] = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    raw, elsewhere = (c.raw(p) for p in points)
    if not np.array_equal(raw, elsewhere):
        return []
    lines = contour_generator(across, up, raw.reshape(GRID, GRID)).lines(0.0)
    return [np.asarray(line) for line in cast(list[Array], lines)]


def _straight(c: LinearConstraint, xy: tuple[int, int], low: Array, high: Array) -> list[Array]:
    others = [w for n, w in enumerate(c.weights) if n not in xy]
    a, b = float(c.weights[xy[0]]), float(c.weights[xy[1]])
    if any(others) or a == b == 0:
        return []
    if abs(b) >= abs(a):
        x = np.array([low[0], high[0]])
        return [np.column_stack([x, (c.offset - a * x) / b])]
    y = np.array([low[1], high[1]])
    return [np.column_stack([(c.offset - b * y) / a, y])]


def box(paths: Sequence[Array], margin: float) -> tuple[Array, Array]:
    """Corners (low, high) around points [n, 2]."""
    points = np.concatenate(list(paths))
    return points.min(axis=0) - margin, points.max(axis=0) + margin


def parameter_words(name: str) -> str:
    """A parameter's name for reading: "limit", or the coefficient of a feature."""
    return name if name == "limit" else f"coefficient of {name}"


def true_parameters(summary: Mapping[str, Any]) -> Mapping[str, float]:
    """What the truth has in the place of each learned parameter, where these can be compared.

    Nothing where the class leaves the scale free: theta and 2 theta are the same constraint.
    """
    true: Mapping[str, float] | None = summary["true_parameters"]
    if not true:
        return {}
    text, names = summary["class"], summary["used"]
    used = [Feature(name, "1") for name in names]
    template = parse_template(text, used) if HOLE in text else linear_template(used, names)
    return {} if template.scale_free else true
