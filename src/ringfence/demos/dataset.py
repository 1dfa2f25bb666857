"""Demonstrations: in memory, and on disk as Minari datasets.

A folder of demonstrations:

    demonstrations.json     schema, features with units, the tasks in order with their split,
                            provenance, hash of the content, SHA-256 of the files and of itself
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
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from errno import ENOSPC
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ringfence.demos.minari_files import ABOUT, DATA, require_plain_data
from ringfence.disk import (
    claim,
    fresh_partial,
    read_file,
    read_json,
    sha256,
    sync,
    write_document,
    writing,
)
from ringfence.errors import InvalidInput
from ringfence.objects import (
    ARRAYS,
    JSON,
    Demonstrations,
    Feature,
    TaskDemos,
    Trajectory,
    check_widths,
    flags,
    sealed,
)

_Kind = TypeVar("_Kind")

#: Schema 1 has no sums of files, only the hash of their content.
SCHEMA, WITHOUT_SUMS = 2, 1
INDEX = "demonstrations.json"
FEATURES_KEY = "features"
#: What HDF5 takes for an episode of a few numbers, and for each byte of a long one, as measured.
EPISODE_BYTES, HDF5_SHARE = 20_000, 1.1


def of_tasks(demos: Demonstrations, names: Sequence[str]) -> list[TaskDemos]:
    """Each named task's demonstrations, in that order; where there is one of each, it is it."""
    by_name = {d.task: d for d in demos.tasks}
    if len(names) == len(demos.tasks) == 1:
        by_name = {names[0]: demos.tasks[0]}
    for name in names:
        if name not in by_name:
            raise InvalidInput(
                f"task {name!r} has no demonstrations; there are some of "
                f"{', '.join(map(repr, by_name))}"
            )
    return [by_name[name] for name in names]


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
    given = Path(folder)
    folder = given.absolute()  # h5py would look for a relative path from its own folder
    if folder.exists() or folder.is_symlink():
        raise InvalidInput(f"{folder} exists already; choose another folder or remove it")
    with writing(given):
        folder.parent.mkdir(parents=True, exist_ok=True)
        # HDF5 on a full disk prints an error per object, and then may end the process.
        if shutil.disk_usage(folder.parent).free < _room(demos):
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        partial = fresh_partial(folder)
        try:
            _write(demos, partial)
            for path in partial.rglob("*"):
                sync(path)
            claim(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _room(demos: Demonstrations) -> float:
    """Bytes that `demos` take on a disk, at most."""
    episodes = [t for task in demos.tasks for _, t in task.labelled]
    arrays: int = sum(getattr(t, name).nbytes for t in episodes for name in ARRAYS)
    return EPISODE_BYTES * len(episodes) + HDF5_SHARE * arrays


def _write(demos: Demonstrations, folder: Path) -> None:
    for k, task in enumerate(demos.tasks):
        _write_minari(task, folder / _dataset_id(k), _spec(demos.provenance, task.task))
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
        "files": {
            str(path.relative_to(folder)): sha256(path.read_bytes())
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        },
    }
    write_document(folder / INDEX, index)


def _dataset_id(k: int) -> str:
    """Minari's ids allow letters, digits, - and _ only, so a task's name can't be one."""
    return f"task-{k:02d}-v0"


def _spec(provenance: Mapping[str, Any], task: str) -> Any | None:
    """Gymnasium's description of the environment, where its id is registered: with it Minari
    recovers the environment."""
    import gymnasium

    world = provenance.get("world")
    if not isinstance(world, dict) or world.get("env") not in gymnasium.registry:
        return None
    kwargs = dict(world.get("kwargs", {}))
    for one in world.get("tasks", ()):
        kwargs |= one.get("kwargs", {}) if one.get("name") == task else {}
    spec = gymnasium.spec(world["env"])
    steps = world.get("steps") or spec.max_episode_steps
    return replace(spec, kwargs={**spec.kwargs, **kwargs}, max_episode_steps=steps)


def _write_minari(task: TaskDemos, folder: Path, spec: Any | None) -> None:
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
            seed=t.seed,
        )

    def space(width: int) -> Any:
        return Box(-np.inf, np.inf, (width,), np.float64)

    first, data = task.train[0], folder / "data"
    data.mkdir(parents=True)
    storage = MinariStorage.new(
        data,
        observation_space=space(first.observations.shape[1]),
        action_space=space(first.actions.shape[1]),
        env_spec=spec,
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
    if index["schema"] != WITHOUT_SUMS:
        _check_files(folder, _field(index, "files", dict, path), len(entries))
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


def provenance(folder: Path) -> dict[str, JSON]:
    """Where a folder's demonstrations come from; nothing where it is none of `save`'s."""
    path = folder / INDEX
    return _field(_read_index(path), "provenance", dict, path) if path.is_file() else {}


def _read_index(path: Path) -> Any:
    fix = "make one with `ringfence demos make`"
    if not path.parent.is_dir():
        raise InvalidInput(f"{path.parent}: no such folder of demonstrations; {fix}")
    if not path.is_file():
        raise InvalidInput(f"{path.parent}: no {INDEX}, so not a folder of demonstrations; {fix}")
    index = read_json(path, f"take an unaltered copy or {fix}")
    schema = _field(index, "schema", int, path)
    if schema not in (SCHEMA, WITHOUT_SUMS):
        advice = "upgrade Ringfence" if schema > SCHEMA else fix
        raise InvalidInput(
            f"{path}: schema {schema}, but this version of Ringfence reads {SCHEMA}; {advice}"
        )
    return index


def _check_files(folder: Path, sums: dict[str, Any], tasks: int) -> None:
    """The files are those that were written. Their names are computed, as the folders' are."""
    names = [f"{_dataset_id(k)}/data/{name}" for k in range(tasks) for name in (DATA, ABOUT)]
    for name in names:
        path = folder / name
        if not path.is_file() or sha256(read_file(path)) != sums.get(name):
            raise InvalidInput(
                f"{path}: not the file that was written (its SHA-256 is not what {INDEX} says); "
                "take an unaltered copy or make the demonstrations again"
            )


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
        check_widths(t, _episode(data, name, n), episodes[0], features)
    return TaskDemos(name, tuple(episodes[:train]), tuple(episodes[train:]))


def _read_minari(data: Path, task: str) -> Iterator[Trajectory]:
    """The episodes of one Minari dataset, in order."""
    import minari

    require_plain_data(data)
    n = 0
    try:
        dataset = minari.MinariDataset(data)
        seeds = [
            m.get("seed") for m in dataset.storage.get_episode_metadata(dataset.episode_indices)
        ]
        for n, (episode, seed) in enumerate(zip(dataset, seeds, strict=True)):
            found = _trajectory(episode, FEATURES_KEY, _episode(data, task, n))
            yield found if seed is None else replace(found, seed=int(seed))
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
    ends = flags(episode.terminations, label) | flags(episode.truncations, label)
    if len(ends) != len(episode.rewards) or not ends[-1:].all() or ends[:-1].any():
        raise InvalidInput(
            f"{label}: an episode ends (terminations or truncations) at its last step and at no "
            "other; split or repair it"
        )
    return sealed(
        Trajectory(
            episode.observations,
            episode.actions,
            episode.rewards,
            episode.infos[features_key],
            terminated=bool(len(ends) and episode.terminations[-1]),
        ),
        label,
    )
