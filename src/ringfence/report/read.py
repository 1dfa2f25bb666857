"""A finished run as the report sees it: arrays over the cells of its map, read from its files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.constraints import files as constraint_files
from ringfence.constraints.table import TableConstraint, visit_table
from ringfence.demos import dataset as demonstrations
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Constraint
from ringfence.runs import config as configs
from ringfence.runs.config import RunConfig
from ringfence.runs.ledger import Ledger
from ringfence.worlds.grid import FEATURES as CELLS
from ringfence.worlds.grid import Cell, GridWorld, read_map
from ringfence.worlds.sim.floor import Layout

SCHEMA = 1
MAX_BYTES = 1 << 28  # a summary is small; anything larger is not one
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Learned:
    """One constraint over the map: cost [rows, cols], the cells it forbids, and its words."""

    cost: Array
    forbidden: Bools
    words: str


@dataclass(frozen=True, eq=False)
class RunData:
    """All that a report shows of a run.

    walls is None where the truth is not known. paths[k] are the training trajectories of task k
    as cells [T, 2]. learned[n] is c_{n+1}. visits[n][k] are the expected visits per episode
    [rows, cols] of task k's learner in iteration n + 1, None where the ledger lacks the solve.
    evidence is evidence.json as it stands, None if there is none.
    """

    config: RunConfig
    config_text: str
    summary: Mapping[str, Any]
    world: GridWorld
    walls: Bools | None
    paths: tuple[tuple[NDArray[np.intp], ...], ...]
    learned: tuple[Learned, ...]
    selected: Learned
    visits: tuple[tuple[Array | None, ...], ...]
    evidence: Mapping[str, Any] | None
    seconds: float | None

    @property
    def rows(self) -> list[dict[str, Any]]:
        return list(self.summary["iterations"])

    @property
    def tasks(self) -> list[str]:
        return list(self.summary["tasks"])

    @property
    def best(self) -> dict[str, Any]:
        """The selected iteration's row."""
        chosen: int = self.summary["selected"]
        return self.rows[chosen - 1]

    @property
    def shape(self) -> tuple[int, int]:
        return self.world.shape


def read_run(run: Path) -> RunData:
    """Read a finished run; whatever is missing or broken is an InvalidInput that names it."""
    config = configs.read(run / "config.toml")
    summary = read_summary(run)
    world = read_map(
        "\n".join(config.world.map), config.world.horizon, config.world.slip, config.world.reward
    )
    count = len(summary["iterations"])
    # In the Ant's maze constraints, paths and visits are over (x, y): the map shows them by cell.
    floor = Layout(world.shape) if config.world.simulator == "ant" else None
    return RunData(
        config=config,
        config_text=(run / "config.toml").read_text(encoding="utf-8"),
        summary=summary,
        world=world,
        walls=world.truth.walls if world.truth.known else None,
        paths=_read_paths(run / "demos", summary["tasks"], world.shape, floor),
        learned=tuple(
            _learned(run / f"constraints/c_{n:03d}", world.shape, floor) for n in range(count)
        ),
        selected=_learned(run / "constraint", world.shape, floor),
        visits=_read_visits(run / "ledger", summary["iterations"], world.shape, floor),
        evidence=_optional(run / "evidence.json"),
        seconds=_seconds(_optional(run / "timing.json")),
    )


# ---------------------------------------------------------------------------------- the summary


def require_finished(run: Path) -> None:
    """The summary is what a run writes last."""
    if not (run / "summary.json").is_file():
        configs.read_document(run / "config.toml")  # or it is no run at all
        raise InvalidInput(f"{run}: unfinished; go on with 'ringfence resume {run}'")


def read_summary(run: Path) -> dict[str, Any]:
    """summary.json, after a check that what the report reads is there."""
    require_finished(run)
    path = run / "summary.json"
    document = read_json(path)
    if document.get("schema") != SCHEMA:
        raise InvalidInput(
            f"{path}: schema {document.get('schema')!r}, this version reads {SCHEMA}; "
            "use the version of ringfence that wrote it"
        )
    try:
        check_summary(document)
    except (KeyError, TypeError, ValueError) as problem:
        cause = f"no entry {problem}" if isinstance(problem, KeyError) else str(problem)
        raise InvalidInput(
            f"{path}: not a whole summary ({cause}); write it again with 'ringfence resume {run}'"
        ) from None
    return document


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object in a file of reasonable size."""
    if path.stat().st_size > MAX_BYTES:
        raise InvalidInput(
            f"{path}: larger than {MAX_BYTES} bytes; a run doesn't write such a file"
        )
    try:
        document = json.loads(path.read_bytes())
    except ValueError as problem:
        raise InvalidInput(
            f"{path}: not valid JSON ({problem}), it was cut short or altered; write it again "
            f"with 'ringfence resume {path.parent}'"
        ) from None
    if not isinstance(document, dict):
        raise InvalidInput(f"{path}: it holds no JSON object; a run did not write it")
    return document


#: Columns of an iteration that are one number, and those that are a list by task with a mean.
SCALARS = ("bound", "best_payoff")
PER_TASK = (
    "delta",
    "lam",
    "learner_reward",
    "expert_reward",
    "learner_true_cost",
    "expert_true_cost",
)


def check_summary(document: Mapping[str, Any]) -> None:
    """Raise KeyError, TypeError or ValueError for the first thing that is not as it should be."""
    for name in ("command", "world", "method"):
        if not isinstance(document[name], str):
            raise TypeError(f"{name} is not text")
    tasks, rows = document["tasks"], document["iterations"]
    if not isinstance(tasks, list) or not tasks or not all(isinstance(t, str) for t in tasks):
        raise TypeError("tasks are not a list of names")
    if not isinstance(rows, list) or not rows:
        raise TypeError("iterations are not a list")
    for n, row in enumerate(rows, start=1):
        if row["i"] != n:
            raise ValueError(f"iteration {n} is called {row['i']!r}")
        _check_row(row, len(tasks))
    chosen = document["selected"]
    if type(chosen) is not int or not 1 <= chosen <= len(rows):
        raise ValueError(f"selected is {chosen!r}, there are {len(rows)} iterations")
    for name in ("versions", "heldout"):
        if not isinstance(document[name], dict):
            raise TypeError(f"{name} is not a table")
    for name in ("seed", "env_steps"):
        _check_number(document[name], name, must_be_known=True)


def _check_row(row: Mapping[str, Any], tasks: int) -> None:
    for name in SCALARS:
        _check_number(row[name], name)
    for name in PER_TASK:
        _check_number(row[f"{name}_mean"], f"{name}_mean")
        for value in _per_task(row[name], name, tasks):
            _check_number(value, name)
    for name in ("constraint", "updated"):
        if not isinstance(row[name], dict) or not isinstance(row[name].get("description"), str):
            raise TypeError(f"{name} has no description")
        _check_number(row[name].get("iou"), "iou")
    _check_number(row.get("env_steps"), "env_steps")
    if row.get("ledger") is not None:
        _per_task(row["ledger"], "ledger", tasks)


def _per_task(values: Any, name: str, tasks: int) -> list[Any]:
    if not isinstance(values, list) or len(values) != tasks:
        raise ValueError(f"{name} has not one entry for each of {tasks} tasks")
    return values


def _check_number(value: object, name: str, must_be_known: bool = False) -> None:
    if value is None and not must_be_known:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is {value!r}, not a number")
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}; what can't be had is null")


def _optional(path: Path) -> dict[str, Any] | None:
    return read_json(path) if path.is_file() else None


def _seconds(timing: Mapping[str, Any] | None) -> float | None:
    """Wall-clock time of the game, if it was noted."""
    ends = (timing or {}).get("iteration_end_s")
    good = isinstance(ends, list) and ends and isinstance(ends[-1], int | float)
    return float(ends[-1]) if good and isinstance(ends, list) else None


# ----------------------------------------------------------------------------- over the map


def _learned(folder: Path, shape: tuple[int, int], floor: Layout | None) -> Learned:
    c = constraint_files.load(folder)
    return over_map(c, shape) if floor is None else over_floor(c, floor)


def over_floor(c: Constraint, floor: Layout) -> Learned:
    """A constraint on (x, y) over the cells of a maze, as the planner sees it."""
    from ringfence.solvers.planner import THRESHOLD, cell_means

    cost = cell_means(c, floor)
    forbidden = cost > THRESHOLD
    table = TableConstraint(CELLS, forbidden.astype(np.float64))
    return Learned(cost, forbidden, f"{table.describe()} ({c.describe()})")


def over_map(c: Constraint, shape: tuple[int, int]) -> Learned:
    """A constraint on (row, col) over the cells of a map; tables and linear ones alike."""
    if isinstance(c, TableConstraint) and c.values.shape != shape:
        raise InvalidInput(f"a constraint over {c.values.shape} cells, the map has {shape}")
    cells = np.indices(shape).reshape(2, -1).T.astype(np.float64)
    if len(c.features) != cells.shape[1]:
        raise InvalidInput(f"a constraint on {len(c.features)} features can't be drawn on a map")
    return Learned(
        cost=c.cost(cells).reshape(shape),
        forbidden=(c.raw(cells) > 0).reshape(shape),
        words=c.describe(),
    )


def _read_paths(
    folder: Path, tasks: Sequence[str], shape: tuple[int, int], floor: Layout | None
) -> tuple[tuple[NDArray[np.intp], ...], ...]:
    demos = {d.task: d for d in demonstrations.load(folder).tasks}
    if missing := [name for name in tasks if name not in demos]:
        raise InvalidInput(f"{folder}: no demonstrations of task {missing[0]!r}; restore them")
    return tuple(
        tuple(
            _cells(t.features, shape, folder)
            if floor is None
            else floor.cell_path(t.observations[:, :2])
            for t in demos[name].train
        )
        for name in tasks
    )


def _cells(features: Array, shape: tuple[int, int], folder: Path) -> NDArray[np.intp]:
    """A trajectory's cells [T, 2], up to where it comes to rest."""
    cells = features.astype(np.intp)
    if features.shape[1] != 2 or (cells < 0).any() or (cells >= np.array(shape)).any():
        raise InvalidInput(
            f"{folder}: a trajectory leaves the map of {shape[0]} x {shape[1]} cells; these are "
            "not the demonstrations of this run"
        )
    moving = np.flatnonzero((np.diff(cells, axis=0) != 0).any(axis=1))
    return cells[: (moving[-1] + 2) if len(moving) else 1]


def _read_visits(
    folder: Path, rows: Sequence[Mapping[str, Any]], shape: tuple[int, int], floor: Layout | None
) -> tuple[tuple[Array | None, ...], ...]:
    """The learners' visits, as far as the ledger has them (it may have been cleared)."""
    ledger = Ledger(folder)

    def table(name: object) -> Array | None:
        # A name is a hash: anything else, such as "../x", is not looked for.
        solution = ledger.get(name) if isinstance(name, str) and name.isalnum() else None
        if solution is None:
            return None
        pi = solution.behaviour
        return visit_table(pi, shape) if floor is None else floor.visits(pi)

    return tuple(
        tuple(table(name) for name in row.get("ledger") or [None] * len(row["learner_reward"]))
        for row in rows
    )


def visitors(run: RunData) -> dict[Cell, list[tuple[int, int]]]:
    """For each cell that an expert visited: (task index, on how many of its paths)."""
    found: dict[Cell, list[tuple[int, int]]] = {}
    for k, paths in enumerate(run.paths):
        for cell, count in zip(*_count(paths), strict=True):
            found.setdefault((int(cell[0]), int(cell[1])), []).append((k, int(count)))
    return found


def _count(paths: Sequence[NDArray[np.intp]]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Distinct cells of some paths, and how many of the paths visit each."""
    each = np.concatenate([np.unique(path, axis=0) for path in paths])
    cells, count = np.unique(each, axis=0, return_counts=True)
    return cells, count


def violation_gap(rows: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """Mean over iterations 1..i of the learners' true cost less the experts', for each i."""
    gaps: list[float] = []
    means: list[float | None] = []
    for row in rows:
        learner, expert = row["learner_true_cost_mean"], row["expert_true_cost_mean"]
        if learner is not None and expert is not None:
            gaps.append(learner - expert)
        means.append(float(np.mean(gaps)) if len(gaps) == row["i"] else None)
    return means
