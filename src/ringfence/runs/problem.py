"""What a single problem asks for: a world's task, a constraint and its limit.

The constraint may come from a run, and then also what was learned of the task's cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ringfence.analysis import evidence as evidences
from ringfence.analysis.evidence import Evidence
from ringfence.constraints import constraint_files
from ringfence.constraints.table import TableConstraint
from ringfence.constraints.written import is_written, nothing_forbidden, parse_constraint
from ringfence.demos import dataset
from ringfence.disk import read_json
from ringfence.errors import InvalidInput
from ringfence.objects import (
    Constraint,
    Start,
    Task,
    widened,
)
from ringfence.runs.config import build, read_document, tagged
from ringfence.runs.ledger import Ledger
from ringfence.runs.setting_ranges import check_ranges
from ringfence.worlds.finite import FiniteTask
from ringfence.worlds.world import World

FILE = "solve.toml"


@dataclass(frozen=True)
class TaskTable:
    """The world's task of that name, or a new one by its description."""

    name: str = ""
    spec: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ProblemTable:
    """What is solved, and how it is counted.

    delta: the limit on an episode's cost; clearance: to be kept from the constraint in training;
    unknown: keep to cells that demonstrations showed to be allowed ("avoid"), or use any not
    forbidden; covered: can the task be done within such cells, where that can be said; episodes:
    how many are counted afterwards, where behaviour is sampled; train: without it the policy is
    only told of the clearance, by its input of the constraint's value; start, states: hashes of
    the files beside; true_limit: the most that a demonstration truly costs, where that is known;
    doubts: of the run that learned the constraint.
    """

    delta: float
    clearance: float = 0.0
    unknown: Literal["avoid", "allow"] = "allow"
    covered: bool | None = None
    episodes: int = 100
    train: bool = True
    start: str = ""
    states: str = ""
    true_limit: float | None = None
    doubts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_ranges("[problem]", "problem", self)
        if self.unknown not in ("avoid", "allow"):
            raise InvalidInput(f"[problem] unknown: {self.unknown!r} is not 'avoid' or 'allow'")


@dataclass(frozen=True)
class Single:
    """All that determines a solve's result, beside the files in its folder."""

    command: str
    seed: int
    world: Any
    task: TaskTable
    problem: ProblemTable
    solver: Any


def read(folder: Path) -> Single:
    path = folder / FILE
    document, where = read_document(path), str(path)
    return Single(
        str(document.get("command", "")),
        int(document.get("seed", 0)),
        tagged(where, "world", document.get("world", {})),
        build(f"{where}: [task]", document.get("task", {}), TaskTable),
        build(f"{where}: [problem]", document.get("problem", {}), ProblemTable),
        tagged(where, "solver", document.get("solver", {})),
    )


def doubts_of(run: Path) -> tuple[str, ...]:
    """What speaks against a finished run's constraint, if it is one."""
    path = run / "summary.json"
    found = read_json(path).get("doubts", []) if path.is_file() else []
    if not isinstance(found, list) or not all(isinstance(doubt, str) for doubt in found):
        raise InvalidInput(f"{path}: doubts must be a list of texts")
    # They may be a stranger's, and are printed: no control characters.
    return tuple("".join(x if x.isprintable() else " " for x in doubt) for doubt in found)


def read_constraint(spec: str, world: World, truth: str = "") -> tuple[Constraint, float]:
    """A constraint and its limit: "truth", "none", a saved one's folder (or its run), or text."""
    features = world.features
    if spec == "none":
        return nothing_forbidden(features), 0.0
    if spec == "truth":
        if truth:
            return parse_constraint(truth, features), 0.0
        cells = world.cells
        if cells is None or cells.walls is None or cells.path is not None:
            raise InvalidInput(
                f"constraint 'truth': {world.name} has none of its own; state one, such as "
                f'--constraint "{features[-1].name} <= 1", or none'
            )
        return TableConstraint(features, cells.walls.astype(float)), 0.0
    if is_written(spec):
        return parse_constraint(spec, features), 0.0
    folder = saved_folder(Path(spec))
    c, document = constraint_files.load_document(folder)
    require_fit(c, world, str(folder))
    return c, float(document["delta"])


def saved_folder(place: Path) -> Path:
    """A saved constraint, or that of a run."""
    return place / "constraint" if (place / "constraint").is_dir() else place


def require_fit(c: Constraint, world: World, where: str) -> None:
    """A constraint can only be asked about the features, and cells, that it was learned on."""
    names = [f.name for f in world.features]
    units = {f.name: f.unit for f in world.features}
    if [f.name for f in c.features] != names:
        raise InvalidInput(
            f"{where}: a constraint on {', '.join(f.name for f in c.features)}, this world has "
            f"{', '.join(names)}"
        )
    for f in c.features:
        if units[f.name] != f.unit:
            raise InvalidInput(
                f"{where}: it has {f.name!r} in {f.unit}, this world in {units[f.name]}; bring "
                "both to one unit"
            )
    shape = None if world.cells is None else world.cells.shape
    if isinstance(c, TableConstraint) and c.values.shape != shape:
        sizes = [" x ".join(map(str, s)) for s in (c.values.shape, shape or ())]
        raise InvalidInput(
            f"{where}: a constraint on {sizes[0]} cells, this world has {sizes[1] or 'none'}; give "
            "the world it was learned on"
        )


def find_task(world: World, table: TaskTable) -> Task:
    """A task by its name or number, or a new one by its description."""
    if table.spec:
        return world.new_task(table.spec)
    name, tasks = table.name or "0", list(world.tasks)
    if name.isdigit() and int(name) < len(tasks):
        return tasks[int(name)]
    for task in tasks:
        if task.name == name:
            return task
    there = ", ".join(repr(task.name) for task in tasks)
    raise InvalidInput(f"task {name!r}: there is none; use 0-{len(tasks) - 1} or one of {there}")


def selected_policy(run: Path, name: str | None) -> tuple[str, Start]:
    """A task of a finished game, and its policy of the selected iterate."""
    if not (run / "summary.json").is_file():
        raise InvalidInput(f"{run}: not finished; 'ringfence resume {run}'")
    summary = read_json(run / "summary.json")
    tasks: list[str] = summary["tasks"]
    if name is None and len(tasks) > 1:
        there = ", ".join(tasks)
        raise InvalidInput(f"{run}: several tasks ({there}); choose one with --task NAME")
    if name is not None and name not in tasks:
        raise InvalidInput(f"{run}: there is no task {name!r}; it has {', '.join(tasks)}")
    if summary["outcome"] != "constraint":
        raise InvalidInput(f"{run}: no constraint was needed, so there is none to train under")
    k = 0 if name is None else tasks.index(name)
    solution = Ledger(run / "ledger").get(
        summary["iterations"][summary["selected"] - 1]["ledger"][k]
    )
    if solution is None:
        raise InvalidInput(f"{run}: the selected policy is not in its ledger; play the game again")
    return tasks[k], solution.policy


def is_covered(world: World, table: TaskTable, evidence: Evidence) -> bool | None:
    """Can the task be done within cells that demonstrators walked? None: that can't be said."""
    cells = world.cells
    if cells is None:
        return None
    if table.spec and cells.towards is not None:
        task = cells.towards(tuple(table.spec["goal"]), [tuple(table.spec["start"])])
    elif isinstance(found := find_task(world, table), FiniteTask):
        task = found
    else:
        task = cells.task(found.name)
    starts = np.flatnonzero(task.mdp.start)
    return all(bool(evidences.covered(evidence, task, int(s))) for s in starts)


def costliest(run: Path, provenance: Mapping[str, Any], truth: Constraint) -> float | None:
    """The most that a demonstration costs; None unless the constraint was learned in this run."""
    if not ((run / "config.toml").is_file() and (run / "demos").is_dir()):
        return None
    demos = dataset.load(run / "demos")
    if dataset.content_hash(demos) != provenance.get("demonstrations_sha256"):
        return None
    episodes = [t for task in demos.tasks for _, t in task.labelled]
    return max(float(truth.cost(widened(t, len(truth.features))).sum()) for t in episodes)
