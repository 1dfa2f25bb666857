"""Episodes as somebody recorded them, which may lack rewards, features or the reset's seed.

An .npz file holds n episodes, one after the other, N = sum(lengths) steps in all:

    lengths       [n]        steps of each episode
    observations  [N + n, o] T + 1 of each episode: the first one and one after each step
    actions       [N, a]
    terminated    [n]        did the episode end by itself (rather than being cut)?
    rewards       [N]        optional: recomputed where they are missing
    features      [N, d]     optional: in the order in which they are declared
    info/KEY      [N]        optional: info[KEY] after each step, for features that are read there
    seeds         [n]        optional: of each episode's reset; without them nothing is replayed

Only plain arrays of numbers are read. A Minari dataset has all of this under its own names.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.demos.dataset import INDEX
from ringfence.demos.minari_files import ABOUT, require_plain_data
from ringfence.disk import MOST_ARRAYS, read_file
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Demonstrations, Feature, TaskDemos, Trajectory, flag, flags

NEEDED = ("lengths", "observations", "actions", "terminated")
OPTIONAL = ("rewards", "features", "seeds")
INFO = "info/"
MOST_WHOLE = 2**32 - 1  # of a seed, or of steps
#: Names that end so are files, not ids of Minari's.
FILES = (".npz", ".csv", ".json", ".hdf5", ".h5", ".parquet")
#: The name under which `demos.save` keeps features in Minari's infos.
FEATURES = "features"


@dataclass(frozen=True, eq=False)
class Log:
    """One episode. observations [T+1, o], actions [T, a], rewards [T], features [T, d],
    infos: key -> [T]; label: what it is called in messages."""

    label: str
    observations: Array
    actions: Array
    rewards: Array | None
    features: Array | None
    infos: Mapping[str, Array]
    terminated: bool
    seed: int | None

    def __len__(self) -> int:
        return len(self.actions)


def is_log(place: str, base: Path) -> bool:
    """Is it an episodes' file or a Minari dataset, rather than a folder that `demos.save` wrote?"""
    path = base / place
    folders = (path, path / "data", _fetched(place) / "data")
    ours = (path / INDEX).is_file()
    return path.is_file() or (not ours and any((f / ABOUT).is_file() for f in folders))


def read(place: str, base: Path) -> list[Log]:
    """The episodes of an .npz file, a Minari folder (paths seen from `base`) or a Minari id."""
    path = base / place
    if path.is_file():
        if path.suffix != ".npz":
            raise InvalidInput(
                f"{path}: demonstrations are an .npz file (np.savez; the arrays are in "
                "docs/your-environment.md), a Minari dataset or its folder, not this"
            )
        return read_npz(path)
    if not path.is_dir() and path.suffix in FILES:
        raise InvalidInput(
            f"{path.absolute()}: no such file (paths are seen from the folder of the TOML file)"
        )
    data = path if path.is_dir() else _fetched(place)
    data = data / "data" if (data / "data").is_dir() else data
    if not data.is_dir():
        raise InvalidInput(
            f"{place}: not a file, a Minari folder, or a Minari dataset that can be read; give an "
            ".npz, a folder (both seen from the folder of the TOML file), or the id of one that "
            f"'minari download {place}' has fetched"
        )
    require_plain_data(data)
    return read_minari(str(path), lambda minari: minari.MinariDataset(data.absolute()))


def _fetched(place: str) -> Path:
    """Where Minari keeps the dataset of that id."""
    root = os.environ.get("MINARI_DATASETS_PATH")
    return (Path(root) if root else Path.home() / ".minari" / "datasets") / place


def as_demonstrations(episodes: Sequence[Log], name: str) -> Demonstrations:
    """Logs as they are, to look at: their features, else their infos, else their observations."""
    first = episodes[0]
    keys = tuple(key for key in first.infos if all(key in log.infos for log in episodes))

    def columns(log: Log) -> Array:
        if first.features is not None and log.features is not None:
            return log.features
        return np.column_stack([log.infos[k] for k in keys]) if keys else log.observations[1:]

    width, known = columns(first).shape[1], first.features is None and keys
    names = keys if known else [f"{FEATURES[:-1]}_{n}" for n in range(width)]
    made = [
        Trajectory(
            log.observations,
            log.actions,
            np.zeros(len(log)) if log.rewards is None else log.rewards,
            columns(log),
            log.terminated,
            log.seed,
        )
        for log in episodes
    ]
    return Demonstrations(
        (TaskDemos(name, tuple(made), ()),), tuple(Feature(n, "1") for n in names), {}
    )


# .npz --------------------------------------------------------------------------------------------


def read_npz(path: Path) -> list[Log]:
    arrays = _arrays(path)
    for name in NEEDED:
        if name not in arrays:
            raise InvalidInput(
                f"{path}: no array {name!r}; an .npz of demonstrations needs {', '.join(NEEDED)} "
                f"and may have {', '.join(OPTIONAL)} and {INFO}KEY"
            )
    lengths = _whole(path, "lengths", arrays.pop("lengths"))
    if not len(lengths):
        raise InvalidInput(f"{path}: no episode in it")
    if lengths.min() < 1:
        raise InvalidInput(f"{path}: lengths must be at least 1 step each; drop empty episodes")
    if lengths.max() > len(np.atleast_1d(arrays["actions"])):
        raise InvalidInput(f"{path}: an episode of {lengths.max()} steps, more than there are")
    n, N = len(lengths), int(lengths.sum())
    for name, array in arrays.items():
        rows = {"observations": N + n, "terminated": n, "seeds": n}.get(name, N)
        if name not in (*NEEDED, *OPTIONAL) and not name.startswith(INFO):
            raise InvalidInput(
                f"{path}: unknown array {name!r}; an .npz of demonstrations has "
                f"{', '.join((*NEEDED, *OPTIONAL))} and {INFO}KEY"
            )
        if array.ndim < 1 or len(array) != rows:
            raise InvalidInput(
                f"{path}: {name!r} has shape {array.shape}, but lengths sum to {N} steps in {n} "
                f"episodes, which need {rows} rows"
            )
    ends = np.cumsum(lengths)
    return [_episode(path, arrays, i, int(e - t), int(t)) for i, (e, t) in enumerate(
        zip(ends, lengths, strict=True))]  # fmt: skip


def _arrays(path: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(io.BytesIO(read_file(path, follow=True))) as archive:
            declared = sum(member.file_size for member in archive.infolist())
            if declared > MOST_ARRAYS:
                raise InvalidInput(
                    f"{path}: {declared} bytes of arrays are declared in it, at most {MOST_ARRAYS} "
                    "are read; split it by task"
                )
            return {
                name.removesuffix(".npy"): _array(archive.open(name), archive.getinfo(name))
                for name in archive.namelist()
            }
    except InvalidInput:
        raise
    except Exception as problem:  # of many kinds: zlib's, tokenize's, struct's
        raise InvalidInput(
            f"{path}: can't be read as .npz of plain arrays ({type(problem).__name__}: "
            f"{str(problem)[:100]}); write it with np.savez and arrays of numbers"
        ) from None


def _array(file: Any, member: zipfile.ZipInfo) -> Any:
    """An array of numbers whose declared shape is that of the bytes that are there."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0}
    reader = readers.get(version, np.lib.format.read_array_header_2_0)
    shape, fortran, dtype = reader(file)
    if dtype.hasobject or dtype.kind not in "fiub":
        raise ValueError(f"{member.filename} holds {dtype}")
    content = file.read(member.file_size)
    if math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError(f"{member.filename} declares {shape} of {dtype}, has {len(content)} bytes")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")


def _whole(path: Path, name: str, array: Any) -> Any:
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidInput(
            f"{path}: {name!r} must be whole numbers [n], got {array.dtype} {array.shape}"
        )
    if array.size and (int(array.max()) > MOST_WHOLE or int(array.min()) < 0):
        raise InvalidInput(f"{path}: {name!r} must be at least 0 and at most {MOST_WHOLE}")
    return array.astype(np.int64)


def columns(actions: Any) -> Any:
    """Actions [T, a]; those of a Discrete space are often recorded as [T]."""
    return actions[:, None] if np.ndim(actions) == 1 else actions


def _episode(path: Path, arrays: Mapping[str, Any], i: int, at: int, T: int) -> Log:
    """Episode i, whose T steps begin at row `at`; before it were i extra observations."""
    steps = slice(at, at + T)

    def rows(name: str) -> Any:
        return arrays[name][steps] if name in arrays else None

    seeds = _whole(path, "seeds", arrays["seeds"]) if "seeds" in arrays else None
    return Log(
        f"{path.name}, episode {i}",
        arrays["observations"][at + i : at + i + T + 1],
        columns(rows("actions")),
        rows("rewards"),
        rows("features"),
        {name.removeprefix(INFO): rows(name) for name in arrays if name.startswith(INFO)},
        flag(arrays["terminated"][i], f"{path.name}, episode {i}"),
        None if seeds is None else int(seeds[i]),
    )


# Minari ------------------------------------------------------------------------------------------


def read_minari(name: str, opened: Any) -> list[Log]:
    import minari

    try:
        dataset = opened(minari)
        metadata = dataset.storage.get_episode_metadata(dataset.episode_indices)
        pairs = zip(dataset, [m.get("seed") for m in metadata], strict=True)
        return [_of_minari(f"{name}, episode {i}", e, s) for i, (e, s) in enumerate(pairs)]
    except InvalidInput:
        raise
    except Exception as problem:  # Minari and h5py raise whatever they stumble over
        raise InvalidInput(
            f"{name}: not a file, a Minari folder, or a Minari dataset that can be read "
            f"({type(problem).__name__}: {problem}); give an .npz, a folder (both seen from the "
            f"folder of the TOML file), or the id of one that 'minari download {name}' has fetched"
        ) from None


def _of_minari(label: str, episode: Any, seed: Any) -> Log:
    if isinstance(episode.observations, dict | tuple) or isinstance(episode.actions, dict | tuple):
        raise InvalidInput(f"{label}: observations and actions must be flat arrays; flatten them")
    T = len(episode.rewards)
    ends = flags(episode.terminations, label) | flags(episode.truncations, label)
    if T == 0 or len(ends) != T or ends[:-1].any():
        raise InvalidInput(
            f"{label}: an episode has at least one step and ends at its last one; split or drop it"
        )
    infos = dict(episode.infos or {})
    features = infos.pop(FEATURES, None)
    # Minari keeps the info of the reset, too, so that most keys have T + 1 values.
    numbers = {k: np.asarray(v)[-T:] for k, v in infos.items() if np.ndim(v) == 1 and len(v) >= T}
    return Log(
        label,
        episode.observations,
        columns(episode.actions),
        episode.rewards,
        None if features is None else np.asarray(features)[-T:],
        numbers,
        bool(episode.terminations[-1]),
        None if seed is None else int(seed),
    )
