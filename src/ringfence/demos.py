"""Demonstrations: in memory, on disk as Minari datasets, and the checks that need no world.

A folder of demonstrations:

    demonstrations.json     schema, features with units, the tasks in order with their split,
                            provenance, hash of the content
    task-00-v0/data/        one Minari dataset per task: first the training episodes, then the
    task-01-v0/data/ ..     held-out ones; features [T, d] stand under infos["features"]

Plain Minari reads each: `minari.MinariDataset("FOLDER/task-00-v0/data")`, or, where
MINARI_DATASETS_PATH names the folder, `minari.load_dataset("task-00-v0")`. Minari's own writer
(`create_dataset_from_buffers`) needs its `create` extra and a global folder; its storage class
needs neither. Trajectories are counted from 0 in every message.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringfence.errors import InvalidInput
from ringfence.objects import Array, Feature, Trajectory, behaviour_of

JSON = dict[str, "JSON"] | list["JSON"] | str | int | float | bool | None
Severity = Literal["error", "warning", "note"]
_Kind = TypeVar("_Kind")

SCHEMA = 1
INDEX = "demonstrations.json"
FEATURES_KEY = "features"
ARRAYS = ("observations", "actions", "rewards", "features")

#: A return stands apart above the median of its group by this many robust standard deviations
#: (up to half of a group may be contaminated), below by this many times the others' usual
#: shortfall (a few may fail; if many do, the experts are noisy and none stands apart), and in
#: both cases by at least this share of the median (experts often all have the same return).
FAR_ABOVE, FAR_BELOW, SLACK = 5.0, 3.0, 0.05
#: Fewer trajectories than this have no "rest" to stand apart from.
SMALLEST_GROUP = 4
#: The median absolute deviation times this is a normal distribution's standard deviation.
MAD_TO_SIGMA = 1.4826
#: No text map beyond this many rows or columns.
LARGEST_MAP = 200


@dataclass(frozen=True, eq=False)
class TaskDemos:
    """One task's trajectories, training and held-out. Their arrays are read-only copies."""

    task: str
    train: tuple[Trajectory, ...]
    heldout: tuple[Trajectory, ...]

    def __post_init__(self) -> None:
        if not self.train:
            raise InvalidInput(f"task {self.task!r}: no training trajectories; give at least one")
        for split in ("train", "heldout"):
            sealed = tuple(
                _sealed(t, where(self.task, split, n)) for n, t in enumerate(getattr(self, split))
            )
            object.__setattr__(self, split, sealed)

    @property
    def labelled(self) -> list[tuple[str, Trajectory]]:
        """All trajectories, training first, each with what to call it in a message."""
        return [
            (where(self.task, split, n), trajectory)
            for split in ("train", "heldout")
            for n, trajectory in enumerate(getattr(self, split))
        ]


@dataclass(frozen=True, eq=False)
class Demonstrations:
    """Demonstrations of several tasks with the same features. Valid by construction.

    `provenance` says where they come from (world, seed, versions, noise, ...); nothing is
    computed from it.
    """

    tasks: tuple[TaskDemos, ...]
    features: tuple[Feature, ...]
    provenance: dict[str, JSON]

    def __post_init__(self) -> None:
        if not self.tasks:
            raise InvalidInput("demonstrations without a task; give at least one task")
        _unique([task.task for task in self.tasks], "task", "rename or merge them")
        _unique([feature.name for feature in self.features], "feature", "rename one")
        first = self.tasks[0].train[0]
        for label, trajectory in (pair for task in self.tasks for pair in task.labelled):
            _check_widths(trajectory, label, first, self.features)
        try:
            copy = json.loads(json.dumps(self.provenance, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"provenance must be plain JSON: {error}") from error
        object.__setattr__(self, "provenance", copy)


def where(task: str, split: str, n: int) -> str:
    """What a trajectory is called in messages."""
    return f"task {task!r}, {'training' if split == 'train' else 'held-out'} trajectory {n}"


def _sealed(t: Trajectory, label: str) -> Trajectory:
    """The trajectory with read-only arrays, after a check of its shapes and numbers."""
    obs, actions, rewards, features = (_numbers(getattr(t, name), name, label) for name in ARRAYS)
    T = rewards.size
    if rewards.ndim != 1 or T == 0:
        raise InvalidInput(
            f"{label}: rewards have shape {rewards.shape}; an episode has one reward per step "
            "and at least one step; drop empty episodes"
        )
    if obs.ndim != 2 or len(obs) != T + 1:
        raise InvalidInput(
            f"{label}: observations have shape {obs.shape}, but {T} rewards need ({T + 1}, o): "
            "the first observation and one after each step"
        )
    for name, values in (("actions", actions), ("features", features)):
        if values.ndim != 2 or len(values) != T:
            raise InvalidInput(
                f"{label}: {name} have shape {values.shape}, but {T} rewards need ({T}, n): "
                "one row per step"
            )
    return Trajectory(obs, actions, rewards, features, bool(t.terminated))


def _numbers(values: Any, name: str, label: str) -> Array:
    """A read-only array of finite numbers, copied unless nobody else can change it."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{label}: {name} are not an array of numbers ({error})") from error
    if not np.isfinite(array).all():
        at = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
        raise InvalidInput(
            f"{label}: {name} hold {array[at]} at index {at}; repair or drop the trajectory"
        )
    as_given = array is values
    if as_given and array.flags.owndata and not array.flags.writeable:
        return array
    array = np.array(array, order="C")
    array.setflags(write=False)
    return array


def _check_widths(
    t: Trajectory, label: str, first: Trajectory, features: Sequence[Feature]
) -> None:
    if t.features.shape[1] != len(features) or not features:
        names = ", ".join(feature.name for feature in features) or "none"
        raise InvalidInput(
            f"{label}: {t.features.shape[1]} feature columns, but {len(features)} named features "
            f"({names}); give each column one name and unit"
        )
    for name in ("observations", "actions"):
        width, expected = getattr(t, name).shape[1], getattr(first, name).shape[1]
        if width != expected:
            raise InvalidInput(
                f"{label}: {name} have {width} columns, those of the first trajectory {expected}; "
                "all tasks share one observation and one action space"
            )


def _unique(names: Sequence[str], kind: str, fix: str) -> None:
    for name in names:
        if not name or names.count(name) > 1:
            problem = f"{names.count(name)} {kind}s have the name {name!r}" if name else "no name"
            raise InvalidInput(f"{kind} names must be distinct and not empty: {problem}; {fix}")


def content_hash(demos: Demonstrations) -> str:
    """sha256 of all names, shapes, end flags and numbers; provenance and files don't enter."""
    layout = {
        "features": [[f.name, f.unit] for f in demos.features],
        "tasks": [
            [
                task.task,
                len(task.train),
                [
                    [*(list(getattr(t, name).shape) for name in ARRAYS), t.terminated]
                    for _, t in task.labelled
                ],
            ]
            for task in demos.tasks
        ],
    }
    digest = hashlib.sha256(json.dumps(layout, sort_keys=True).encode() + b"\n")
    for _, t in (pair for task in demos.tasks for pair in task.labelled):
        for name in ARRAYS:
            digest.update(getattr(t, name).astype("<f8").tobytes())
    return digest.hexdigest()


# ---------------------------------------------------------------------------------- to disk


def save(demos: Demonstrations, folder: Path) -> None:
    """Write a new folder; it appears complete under its name or not at all."""
    folder = Path(folder)
    if folder.exists() or folder.is_symlink():
        raise InvalidInput(f"{folder} exists already; choose another folder or remove it")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(".partial", f".{folder.name}.", folder.parent) as temporary:
            # One level down, because a temporary folder's own permissions are private.
            partial = Path(temporary, folder.name)
            partial.mkdir()
            _write(demos, partial)
            for path in (*partial.rglob("*"), partial):
                _sync(path)
            os.rename(partial, folder)
        _sync(folder.parent)
    except (PermissionError, NotADirectoryError, FileExistsError) as error:
        raise InvalidInput(f"can't write {folder}: {error.strerror}; choose another") from error


def _sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(demos: Demonstrations, folder: Path) -> None:
    for k, task in enumerate(demos.tasks):
        _write_minari(task, folder / _dataset_id(k))
    index = {
        "schema": SCHEMA,
        "features": [{"name": f.name, "unit": f.unit} for f in demos.features],
        "tasks": [
            {
                "name": task.task,
                "dataset": _dataset_id(k),
                "train": len(task.train),
                "heldout": len(task.heldout),
            }
            for k, task in enumerate(demos.tasks)
        ],
        "provenance": demos.provenance,
        "content_hash": content_hash(demos),
    }
    text = json.dumps(index, indent=2, allow_nan=False)
    (folder / INDEX).write_text(text + "\n", encoding="utf-8")


def _dataset_id(k: int) -> str:
    """Minari's ids allow letters, digits, - and _ only, so a task's name can't be one."""
    return f"task-{k:02d}-v0"


def _write_minari(task: TaskDemos, folder: Path) -> None:
    """One Minari dataset in folder/data, where Minari expects the data of the id `folder`."""
    import minari
    from gymnasium.spaces import Box
    from minari.data_collector import EpisodeBuffer
    from minari.dataset.minari_storage import MinariStorage

    def episode(t: Trajectory) -> Any:
        last = np.arange(len(t)) == len(t) - 1
        return EpisodeBuffer(
            observations=t.observations,
            actions=t.actions,
            rewards=t.rewards,
            terminations=last & t.terminated,
            truncations=last & (not t.terminated),
            infos={FEATURES_KEY: t.features},
        )

    def space(width: int) -> Any:
        return Box(-np.inf, np.inf, (width,), np.float64)

    first, data = task.train[0], folder / "data"
    data.mkdir(parents=True)
    storage = MinariStorage.new(
        data,
        observation_space=space(first.observations.shape[1]),
        action_space=space(first.actions.shape[1]),
        data_format="hdf5",
    )
    storage.update_metadata(
        {
            "dataset_id": folder.name,
            "minari_version": minari.__version__,
            "description": f"Demonstrations of task {task.task!r}: {len(task.train)} training "
            f"episodes, then {len(task.heldout)} held-out ones.",
        }
    )
    storage.update_episodes([episode(t) for _, t in task.labelled])


# -------------------------------------------------------------------------------- from disk


def load(folder: Path) -> Demonstrations:
    """Read a folder that `save` wrote. Anything missing, altered or malformed is refused."""
    folder = Path(folder)
    path = folder / INDEX
    index = _read_index(path)
    features = tuple(
        Feature(_field(f, "name", str, path), _field(f, "unit", str, path))
        for f in _field(index, "features", list, path)
    )
    entries = _field(index, "tasks", list, path)
    tasks = tuple(_read_task(folder, k, entry, features) for k, entry in enumerate(entries))
    try:
        demos = Demonstrations(tasks, features, _field(index, "provenance", dict, path))
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error
    if content_hash(demos) != _field(index, "content_hash", str, path):
        raise InvalidInput(
            f"{folder}: the content does not have the hash that {INDEX} states, so it was altered "
            "after it was written; take an unaltered copy or make the demonstrations again"
        )
    return demos


def _read_index(path: Path) -> Any:
    fix = "make one with `ringfence demos make`"
    if not path.parent.is_dir():
        raise InvalidInput(f"{path.parent}: no such folder of demonstrations; {fix}")
    if not path.is_file():
        raise InvalidInput(f"{path.parent}: no {INDEX}, so not a folder of demonstrations; {fix}")
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path}: can't be read as JSON ({error}); {fix}") from error
    schema = _field(index, "schema", int, path)
    if schema != SCHEMA:
        advice = "upgrade Ringfence" if schema > SCHEMA else fix
        raise InvalidInput(
            f"{path}: schema {schema}, but this version of Ringfence reads {SCHEMA}; {advice}"
        )
    return index


def _field(entry: Any, key: str, kind: type[_Kind], path: Path) -> _Kind:
    """entry[key] if the entry is a JSON object that has it with the right type."""
    value = entry.get(key) if isinstance(entry, dict) else None
    if type(value) is not kind:  # not isinstance: True is no count
        raise InvalidInput(
            f"{path}: {key!r} is missing or not of type {kind.__name__}; the file was edited or "
            "is none of Ringfence's; make the demonstrations again"
        )
    return value


def _read_task(folder: Path, k: int, entry: Any, features: Sequence[Feature]) -> TaskDemos:
    """The k-th task. Its folder's name is computed, so that no file can lead elsewhere."""
    path = folder / INDEX
    name, dataset = _field(entry, "name", str, path), _field(entry, "dataset", str, path)
    train, heldout = _field(entry, "train", int, path), _field(entry, "heldout", int, path)
    if dataset != _dataset_id(k):
        raise InvalidInput(f"{path}: task {k} must be in {_dataset_id(k)!r}, not {dataset!r}")
    if train < 1 or heldout < 0:
        raise InvalidInput(
            f"{path}: task {name!r} has {train} training and {heldout} held-out trajectories; "
            "at least one training trajectory is needed"
        )
    data = folder / dataset / "data"
    episodes = list(_read_minari(data, name))
    if len(episodes) != train + heldout:
        raise InvalidInput(
            f"{data}: {len(episodes)} episodes of task {name!r}, but {INDEX} counts {train} + "
            f"{heldout}; take an unaltered copy or make the demonstrations again"
        )
    for n, t in enumerate(episodes):
        _check_widths(t, _episode(data, name, n), episodes[0], features)
    return TaskDemos(name, tuple(episodes[:train]), tuple(episodes[train:]))


def _read_minari(data: Path, task: str) -> Iterator[Trajectory]:
    """The episodes of one Minari dataset, in order."""
    import minari

    n = 0
    try:
        for n, episode in enumerate(minari.MinariDataset(data)):
            yield _trajectory(episode, FEATURES_KEY, _episode(data, task, n))
    except InvalidInput:
        raise
    except Exception as error:  # Minari and h5py raise whatever they stumble over
        raise InvalidInput(
            f"{data}, task {task!r}: can't be read as a Minari dataset, at or after episode {n} "
            f"({type(error).__name__}: {error}); take an unaltered copy or make it again"
        ) from error


def _episode(data: Path, task: str, n: int) -> str:
    return f"{data}, task {task!r}, episode {n}"


def _trajectory(episode: Any, features_key: str, label: str) -> Trajectory:
    """One Minari episode as a trajectory whose features stand in infos[features_key]."""
    if features_key not in (episode.infos or {}):
        raise InvalidInput(f"{label}: no features; infos must hold {features_key!r} [T, d]")
    ends = np.asarray(episode.terminations, bool) | np.asarray(episode.truncations, bool)
    if len(ends) != len(episode.rewards) or not ends[-1:].all() or ends[:-1].any():
        raise InvalidInput(
            f"{label}: an episode ends (terminations or truncations) at its last step and at no "
            "other; split or repair it"
        )
    return _sealed(
        Trajectory(
            episode.observations,
            episode.actions,
            episode.rewards,
            episode.infos[features_key],
            terminated=bool(len(ends) and episode.terminations[-1]),
        ),
        label,
    )


# ----------------------------------------------------------------------------------- checks


@dataclass(frozen=True)
class Finding:
    """What a check found. Errors make demonstrations unusable, warnings deserve a look."""

    severity: Severity
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.where}: {self.message}"


def check(demos: Demonstrations) -> list[Finding]:
    """What can be said of valid demonstrations without knowing their world."""
    findings = list(_constant_features(demos))
    for task in demos.tasks:
        findings += [*_repeats(task), *_standing_apart(task)]
    return findings


def _constant_features(demos: Demonstrations) -> Iterator[Finding]:
    points = np.concatenate([t.features for task in demos.tasks for _, t in task.labelled])
    for feature, low, high in zip(demos.features, points.min(0), points.max(0), strict=True):
        if low == high:
            yield Finding(
                "warning",
                f"feature {feature.name!r}",
                f"it is {low:g} in every step of every trajectory; no constraint on it can be "
                "learned: check how it is computed, or leave it out",
            )


def _repeats(task: TaskDemos) -> Iterator[Finding]:
    """Trajectories that equal an earlier one in every number."""
    seen: dict[bytes, str] = {}
    repeats: list[tuple[str, str]] = []
    for label, t in task.labelled:
        key = b"".join(getattr(t, name).tobytes() for name in ARRAYS)
        if key in seen:
            repeats.append((label, seen[key]))
        else:
            seen[key] = label
    if not repeats:
        return
    label, earlier = repeats[0]
    total = len(task.labelled)
    message = f"{len(repeats)} of {total} trajectories repeat an earlier one (here: {earlier})"
    if all(_whole(t.observations) for _, t in task.labelled):
        yield Finding("note", label, f"{message}; they add weight, not evidence")
    else:  # continuous states never come out the same twice
        yield Finding("warning", label, f"{message}: copied by mistake? Drop the copies")


def _standing_apart(task: TaskDemos) -> Iterator[Finding]:
    """Returns far from the median of the trajectories from the same start."""
    labelled = task.labelled
    returns = np.array([t.rewards.sum() for _, t in labelled])
    groups = [g for g in _same_start([t for _, t in labelled]) if len(g) >= SMALLEST_GROUP]
    middle = returns.copy()
    for group in groups:
        middle[group] = np.median(returns[group])
    shortfall, slack = np.maximum(middle - returns, 0), SLACK * np.abs(middle) + 1e-9
    for group in groups:
        gain = returns[group] - middle[group]
        high = gain > FAR_ABOVE * MAD_TO_SIGMA * np.median(np.abs(gain)) + slack[group]
        rest = [labelled[n][1] for n in group[~high]]
        for n, beats in zip(group, high, strict=True):
            label, t = labelled[n]
            compared = f"its return is {returns[n]:.6g}, the median from its start {middle[n]:.6g}"
            usual = np.sqrt(np.mean(np.delete(shortfall, n) ** 2))
            if shortfall[n] > FAR_BELOW * usual + slack[n]:
                yield Finding("warning", label, f"{compared}: a failed or careless attempt?")
            elif beats and (alone := _alone(t, rest)):
                yield Finding(
                    "warning",
                    label,
                    f"{compared}, and {alone}: its maker may have ignored the constraint; "
                    "drop it unless you trust it",
                )


def _same_start(trajectories: Sequence[Trajectory]) -> list[NDArray[np.intp]]:
    """Indices grouped by first observation; one group if no two have the same."""
    first = np.stack([t.observations[0] for t in trajectories])
    _, index = np.unique(first, axis=0, return_inverse=True)
    index = index.ravel()
    if index.max() == len(trajectories) - 1:
        return [np.arange(len(trajectories))]
    return [np.flatnonzero(index == group) for group in range(index.max() + 1)]


def _alone(t: Trajectory, rest: Sequence[Trajectory]) -> str:
    """Where t was and no one of the rest; "" if nowhere. Only cells can be compared so."""
    if not all(_whole(other.features) for other in (t, *rest)):
        return "it beats all the others"
    others = {tuple(row) for other in rest for row in other.features}
    cells = [row for row in dict.fromkeys(map(tuple, t.features)) if row not in others]
    if not cells:
        return ""
    shown = ", ".join("(" + ",".join(f"{x:g}" for x in cell) + ")" for cell in cells[:5])
    return f"it visits {len(cells)} cells that those don't ({shown}{', ..' * (len(cells) > 5)})"


def _whole(values: Array) -> bool:
    return bool((values == np.floor(values)).all())


# ------------------------------------------------------------------------------ for reading


@dataclass(frozen=True)
class TaskSummary:
    """One task in figures; return, its standard error and length are of training trajectories."""

    task: str
    train: int
    heldout: int
    reward: float
    reward_se: float
    length: float
    cells: int


def summarise(demos: Demonstrations) -> list[TaskSummary]:
    """One row per task; `cells` counts distinct features of the training trajectories."""
    rows = []
    for task in demos.tasks:
        pi = behaviour_of(task.train)
        sizes = (len(task.train), len(task.heldout))
        rows.append(
            TaskSummary(task.task, *sizes, pi.reward, pi.reward_se, pi.length, len(pi.features))
        )
    return rows


def describe(demos: Demonstrations, shape: tuple[int, int] | None = None) -> str:
    """The demonstrations in words and figures, with a map where the features are cells."""
    names = ", ".join(f"{f.name} ({f.unit})" for f in demos.features)
    table = [("task", "train", "held-out", "return", "+- se", "steps", "cells")]
    for row in summarise(demos):
        figures = (f"{row.reward:.2f}", f"{row.reward_se:.2f}", f"{row.length:.1f}")
        table.append((row.task, str(row.train), str(row.heldout), *figures, str(row.cells)))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in table
    ]
    return "\n".join([f"features: {names}", *lines, *_map_with_key(demos, shape)])


def _map_with_key(demos: Demonstrations, shape: tuple[int, int] | None) -> list[str]:
    drawn = visit_map(demos, shape)
    key = "tenths of the training trajectories that visit a cell (9: 90% or more; '.': none)"
    return ["", key, drawn] if drawn else []


def visit_map(
    demos: Demonstrations, shape: tuple[int, int] | None = None, task: str | None = None
) -> str:
    """A text map of visits by (row, col), of all tasks or one; "" where features aren't cells.

    `shape` is the grid's; without it the map ends at the last row and column visited.
    """
    paths = [t.features for d in demos.tasks if task in (None, d.task) for t in d.train]
    if not paths:
        known = ", ".join(d.task for d in demos.tasks)
        raise InvalidInput(f"no task {task!r} in these demonstrations; there are: {known}")
    points = np.concatenate(paths)
    if [f.name for f in demos.features] != ["row", "col"] or not _whole(points):
        return ""
    last = points.max(axis=0).astype(int) + 1
    rows, cols = shape or (int(last[0]), int(last[1]))
    if points.min() < 0 or last[0] > rows or last[1] > cols or max(rows, cols) > LARGEST_MAP:
        return ""
    visitors = np.zeros((rows, cols), dtype=int)
    for path in paths:
        cells = np.unique(path.astype(int), axis=0)
        visitors[cells[:, 0], cells[:, 1]] += 1
    tenths = np.minimum(9, 10 * visitors // len(paths))
    letters = np.where(visitors > 0, tenths.astype(str), ".")
    return "\n".join("".join(line) for line in letters)
