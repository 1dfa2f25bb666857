"""A finished run of any world as the report sees it, read from its files and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from ringfence.constraints import constraint_files
from ringfence.constraints.template import HOLE, linear_template
from ringfence.constraints.written import parse_class, parse_constraint
from ringfence.demos import dataset as demonstrations
from ringfence.disk import (
    MOST_TOML,
    read_file,
    read_json,
    read_sealed,
    read_toml,
    reading,
    require_plain,
    sha256,
)
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour, Constraint, Feature, widened
from ringfence.report.cell_labels import Labels, make_labels
from ringfence.report.cells import Bools, Cells, Learned, make_cells
from ringfence.report.sampled_labels import SampledLabels, make_sampled
from ringfence.report.validate import CELL_VIEWS, check_summary

SCHEMA = 2
EPISODES = "episodes.safetensors"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class View:
    """A way to look at the features: "map", "floor", "plane" or "line", of these columns."""

    kind: str
    columns: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Learner:
    """What the ledger keeps of a solve.

    behaviour: all that it did; episodes: features [t, d] of some, every few steps; walks: on a
    floor, one from each start, (x, y) [t, 2].
    """

    behaviour: Behaviour
    episodes: tuple[Array, ...]
    walks: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Run:
    """All that a report shows of a run.

    learned[n] is c_{n+1}; experts[k]: features [t, d] of task k's training episodes;
    learners[n][k]: task k's learner of iteration n + 1, None where the ledger lacks it;
    truth: the true constraint where it is an inequality over the features; labels, sampled: the
    evidence about cells of a map, and of continuous features.
    """

    config: Mapping[str, Any]
    config_text: str
    summary: Mapping[str, Any]
    features: tuple[Feature, ...]
    views: tuple[View, ...]
    cells: Cells | None
    learned: tuple[Constraint, ...]
    experts: tuple[tuple[Array, ...], ...]
    learners: tuple[tuple[Learner | None, ...], ...]
    truth: Constraint | None
    labels: Labels | None
    sampled: SampledLabels | None
    seconds: float | None
    has_policy: bool

    @property
    def rows(self) -> list[Row]:
        return list(self.summary["iterations"])

    @property
    def tasks(self) -> list[str]:
        return list(self.summary["tasks"])

    @property
    def selected(self) -> int:
        """The number of the selected iteration; 0 if the game was not played."""
        return self.summary["selected"] or 0

    @property
    def best(self) -> Row:
        """The selected iteration's row."""
        return self.rows[self.selected - 1]

    @property
    def walls(self) -> Bools | None:
        return None if self.cells is None else self.cells.walls

    @property
    def truth_known(self) -> bool:
        return self.truth is not None or self.walls is not None

    @cached_property
    def maps(self) -> tuple[Learned, ...]:
        """c_1 .. c_N over the cells; empty where there are none."""
        return () if self.cells is None else tuple(map(self.cells.over, self.learned))

    @property
    def chosen(self) -> Learned:
        """The selected constraint over the cells."""
        return self.maps[self.selected - 1]

    def reason(self, name: str) -> str:
        """Why the page doesn't show an analysis."""
        if not self.rows:
            return "no game was played"
        known = self.summary["not_here"].get(name)
        return known or f"the run has no {name} that could be drawn"


# Reading ----------------------------------------------------------------------------------------


def read_run(run: Path) -> Run:
    """Read a finished run; whatever is missing or broken is an InvalidInput that names it."""
    require_plain(run)
    require_finished(run)
    config, summary = read_config(run), read_summary(run)
    rows, given = summary["iterations"], demonstrations.load(run / "demos")
    learned = tuple(constraint_files.load(run / f"constraints/c_{n:03d}") for n in range(len(rows)))
    if rows:
        constraint_files.load(run / "constraint")  # what users load must be whole, too
    features = learned[0].features if learned else given.features
    if any(c.features != features for c in learned):
        raise InvalidInput(
            f"{run}/constraints: not of one run, their features differ; restore them"
        )
    cells = _cells(summary, config, features)
    experts = {d.task: tuple(widened(t, len(features)) for t in d.train) for d in given.tasks}
    if missing := [name for name in summary["tasks"] if name not in experts]:
        raise InvalidInput(f"{run}/demos: no demonstrations of task {missing[0]!r}; restore them")
    return Run(
        config=config,
        config_text=read_file(run / "config.toml", MOST_TOML).decode(),
        summary=summary,
        features=features,
        views=_views(summary, cells),
        cells=cells,
        learned=learned,
        experts=tuple(experts[name] for name in summary["tasks"]),
        learners=tuple(_learners(run / "ledger", row, len(summary["tasks"])) for row in rows),
        truth=_truth(summary, features),
        labels=_labels(run, cells, learned[summary["selected"] - 1] if learned else None),
        sampled=_sampled(run, features) if learned else None,
        seconds=_seconds(_optional(run / "timing.json")),
        has_policy=(run / "policy").is_dir(),
    )


def require_finished(run: Path) -> None:
    """The summary is what a run writes last."""
    if not (run / "summary.json").is_file():
        read_config(run)  # or it is no run at all
        raise InvalidInput(f"{run}: unfinished; go on with 'ringfence resume {run}'")


def read_config(run: Path) -> dict[str, Any]:
    """config.toml as it stands."""
    path = run / "config.toml"
    if (run / "solve.toml").is_file():
        raise InvalidInput(
            f"{run}: not a game, so it has no page; what came of it is in its summary.json, "
            "curves.csv and pictures"
        )
    if not path.is_file():
        raise InvalidInput(f"{run}: no config.toml; this is not a run of 'ringfence learn'")
    return read_toml(path)


def read_summary(run: Path) -> dict[str, Any]:
    """summary.json, after a check that what the report reads is there."""
    path = run / "summary.json"
    document = read_document(path)
    if document.get("schema") != SCHEMA:
        raise InvalidInput(_other_schema(path, document))
    try:
        check_summary(document)
    except (KeyError, TypeError, ValueError) as problem:
        cause = f"no entry {problem}" if isinstance(problem, KeyError) else str(problem)
        raise InvalidInput(
            f"{path}: not a whole summary ({cause}); write it again with 'ringfence resume {run}'"
        ) from None
    return document


def _other_schema(path: Path, document: Mapping[str, Any]) -> str:
    versions = document.get("versions")
    version = versions.get("ringfence", "") if isinstance(versions, dict) else ""
    wrote = f"ringfence {version}" if version else "another version of ringfence"
    return (
        f"{path}: schema {document.get('schema')!r} of {wrote}; this version reads schema "
        f"{SCHEMA}. Make its page with the version that wrote it, or play it again with this one"
    )


def read_document(path: Path) -> dict[str, Any]:
    """A JSON object that a run wrote."""
    return read_json(path, f"'ringfence resume {path.parent}' makes it again")


def _optional(path: Path) -> dict[str, Any] | None:
    return read_document(path) if path.is_file() else None


def _seconds(timing: Mapping[str, Any] | None) -> float | None:
    value = (timing or {}).get("seconds")
    return float(value) if isinstance(value, int | float) else None


def _cells(
    summary: Mapping[str, Any], config: Mapping[str, Any], features: Sequence[Feature]
) -> Cells | None:
    """The first map or floor, if the constraint is on its two columns and nothing else."""
    for view in summary["views"]:
        if view["kind"] in CELL_VIEWS and view["columns"] == list(range(len(features))):
            world = config.get("world")
            lines = world.get("map") if isinstance(world, dict) else None
            drawn = lines if isinstance(lines, list) else []
            return make_cells(view, [line for line in drawn if isinstance(line, str)])
    return None


def _views(summary: Mapping[str, Any], cells: Cells | None) -> tuple[View, ...]:
    """Those that show what the constraint is on come first."""
    views = [View(v["kind"], tuple(v["columns"])) for v in summary["views"]]
    shown = [v for v in views if v.kind in CELL_VIEWS][: 0 if cells is None else 1]
    views = [v for v in views if v.kind not in CELL_VIEWS or v in shown]
    names, used = [f["name"] for f in summary["features"]], set(summary["used"])
    return tuple(sorted(views, key=lambda v: not used <= {names[n] for n in v.columns}))


def _truth(summary: Mapping[str, Any], features: Sequence[Feature]) -> Constraint | None:
    try:
        return parse_constraint(summary["truth"], features) if summary["truth"] else None
    except InvalidInput:  # of another form, such as a map's cells
        return None


def _labels(run: Path, cells: Cells | None, c: Constraint | None) -> Labels | None:
    """What is proven about the cells, and how the selected constraint stands to it."""
    document = _optional(run / "evidence.json")
    if document is None or cells is None or c is None:
        return None
    return make_labels(document, cells.over(c).forbidden)


def _sampled(run: Path, features: Sequence[Feature]) -> SampledLabels | None:
    """The same where cells are of continuous features."""
    document = _optional(run / "evidence.json")
    if document is None or "grid" not in document.get("evidence", ()):
        return None
    return make_sampled(document, features)


# The ledger -------------------------------------------------------------------------------------


def _learners(ledger: Path, row: Row, tasks: int) -> tuple[Learner | None, ...]:
    """An iteration's learners, as far as the ledger has them (it may have been cleared)."""
    return tuple(_learner(ledger, name) for name in row["ledger"] or [None] * tasks)


def _learner(ledger: Path, name: object) -> Learner | None:
    # A name is a hash: anything else, such as "../x", is not looked for.
    if not isinstance(name, str) or not name.isalnum():
        return None
    folder = ledger / name
    if not folder.is_dir():
        return None
    files = read_sealed(folder)
    with reading(folder):
        arrays = safetensors.numpy.load(files["arrays.safetensors"])
        features, visits = (np.asarray(arrays[n], np.float64) for n in ("features", "visits"))
        _, reward, reward_se, length = map(float, arrays["scalars"])
        behaviour = Behaviour(features, visits, reward, reward_se, length, None)
        return Learner(behaviour, episodes_in(files), _walks(arrays))


def _walks(arrays: Mapping[str, Any]) -> tuple[Array, ...]:
    """The first walk from each start, where a planner noted them."""
    if any(f"policy.{name}" not in arrays for name in ("xy", "length", "start")):
        return ()
    ends = np.cumsum(arrays["policy.length"].astype(np.intp))
    _, first = np.unique(arrays["policy.start"], return_index=True)
    walks = np.split(np.asarray(arrays["policy.xy"], np.float64), ends[:-1])
    return tuple(walks[n] for n in first)


def episodes_in(files: Mapping[str, bytes]) -> tuple[Array, ...]:
    """The episodes that a solve kept, features [t, d] each; none where there are none."""
    if EPISODES not in files:
        return ()
    kept = safetensors.numpy.load(files[EPISODES])
    return tuple(np.asarray(kept[name], np.float64) for name in sorted(kept, key=int))


def read_episodes(folder: Path, summary: Mapping[str, Any]) -> tuple[Array, ...]:
    """Those of a single problem, whose sum its summary has."""
    path = folder / EPISODES
    if not path.is_file():
        return ()
    with reading(path):
        content = read_file(path)
        if summary.get("files", {}).get(EPISODES) not in (None, sha256(content)):
            raise ValueError("its SHA-256 is not what summary.json says")
        return episodes_in({EPISODES: content})


def true_parameters(summary: Mapping[str, Any]) -> Mapping[str, float]:
    """What the truth has in the place of each learned parameter, where these can be compared.

    Nothing where the class leaves the scale free: theta and 2 theta are the same constraint.
    """
    true: Mapping[str, float] | None = summary["true_parameters"]
    if not true:
        return {}
    text, names = summary["class"], summary["used"]
    used = [Feature(name, "1") for name in names]
    try:
        form = parse_class(text, used) if HOLE in text else linear_template(used, names)
    except InvalidInput:
        return {}
    return {} if getattr(form, "scale_free", False) else true
