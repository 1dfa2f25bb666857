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

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringfence.errors import InvalidInput
from ringfence.objects import Array

NEEDED = ("lengths", "observations", "actions", "terminated")
OPTIONAL = ("rewards", "features", "seeds")
INFO = "info/"
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
    if path.is_dir():
        data = path / "data" if (path / "data").is_dir() else path
        return read_minari(str(path), lambda minari: minari.MinariDataset(data.absolute()))
    return read_minari(place, lambda minari: minari.load_dataset(place, download=False))


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
        with np.load(path) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, KeyError, MemoryError) as problem:
        raise InvalidInput(
            f"{path}: can't be read as .npz of plain arrays ({type(problem).__name__}); write "
            "it with np.savez and arrays of numbers"
        ) from None


def _whole(path: Path, name: str, array: Any) -> Any:
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidInput(
            f"{path}: {name!r} must be whole numbers [n], got {array.dtype} {array.shape}"
        )
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
        bool(arrays["terminated"][i]),
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
    ends = np.asarray(episode.terminations, bool) | np.asarray(episode.truncations, bool)
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
