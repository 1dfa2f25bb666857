"""A training's state on disk: all that the next update depends on, so that a solve that was
stopped ends in the bytes of one that was not.

A checkpoint is a folder that is either the old one or the new one, never half; of one that was
damaged since nothing is believed: the training begins anew, and ends in the same bytes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from ringfence.disk import SUMS, read_sealed, reading, sealed_files, sync, writing
from ringfence.errors import InvalidInput
from ringfence.objects import Problem

#: Bytes of a checkpoint mean the same only within one schema.
SCHEMA = 6
#: Keys that tell, among the plain values, the name of an array and the kind of an object.
ARRAY, KIND = "array of", "kind of"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Of a problem's solve, in a folder or nowhere (None).

    config: a dataclass with `checkpoint_every` how many updates; no result depends on that field.
    """

    folder: Path | None
    problem: Problem
    config: Any

    def due(self, update: int) -> bool:
        return self.folder is not None and update % self.config.checkpoint_every == 0

    def save(self, **state: Any) -> None:
        """Dataclasses, dicts, lists and tuples of arrays and plain values, in place of the last."""
        assert self.folder is not None
        arrays: dict[str, NDArray[Any]] = {}
        values = {"mark": self.mark, "state": _plain(state, "state", arrays)}
        write(self.folder, arrays, values)

    def load(self, kinds: Sequence[type]) -> dict[str, Any] | None:
        """What was saved; None if there is nothing. Refuses what belongs to another problem.

        kinds: the dataclasses and named tuples that may be in it.
        """
        found = None if self.folder is None else read(self.folder)
        if self.folder is None or found is None:
            return None
        arrays, values = found
        if values.get("mark") != self.mark:
            raise InvalidInput(
                f"{self.folder} is the checkpoint of another problem, configuration or version: "
                "use another folder"
            )
        named = {"tuple": lambda **parts: tuple(parts.values())} | {k.__name__: k for k in kinds}
        with reading(self.folder):
            state: dict[str, Any] = _whole(values["state"], arrays, named)
            return state

    @cached_property
    def mark(self) -> str:
        """What the checkpoint belongs to: the problem and all that determines its result."""
        c = self.problem.constraint
        probe = np.random.default_rng(0).standard_normal((64, len(c.features)))
        digest = sha256(c.raw(probe).tobytes() + c.cost(probe).tobytes())
        if self.problem.states is not None:
            digest.update(self.problem.states.tobytes())
        for key, value in sorted((self.problem.start or {}).items()):
            digest.update(key.encode() + value.tobytes())
        described = {
            "schema": SCHEMA,
            "task": repr(self.problem.task),
            "constraint": c.describe(),
            "delta": self.problem.delta,
            "seed": self.problem.seed,
            "config": {k: v for k, v in asdict(self.config).items() if k != "checkpoint_every"},
            "arrays": digest.hexdigest(),
        }
        return json.dumps(described, sort_keys=True)


def _plain(x: Any, place: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """x as JSON takes it; its arrays are put into `arrays`, by their place in x."""
    if isinstance(x, np.ndarray | jax.Array):
        arrays[place] = np.asarray(x)
        return {ARRAY: place}
    if isinstance(x, list):
        return [_plain(v, f"{place}.{i}", arrays) for i, v in enumerate(x)]
    kind = {} if isinstance(x, dict) else {KIND: type(x).__name__}
    if is_dataclass(x):
        x = vars(x)
    elif isinstance(x, tuple):
        x = x._asdict() if hasattr(x, "_asdict") else {f"_{i}": v for i, v in enumerate(x)}
    elif not isinstance(x, dict):
        return x
    return kind | {k: _plain(v, f"{place}.{k}", arrays) for k, v in x.items()}


def _whole(x: Any, arrays: Mapping[str, NDArray[Any]], kinds: Mapping[str, Any]) -> Any:
    """The inverse."""
    if isinstance(x, list):
        return [_whole(v, arrays, kinds) for v in x]
    if not isinstance(x, dict):
        return x
    if ARRAY in x:
        return arrays[x[ARRAY]]
    parts = {k: _whole(v, arrays, kinds) for k, v in x.items() if k != KIND}
    return kinds[x[KIND]](**parts) if KIND in x else parts


# The folder ------------------------------------------------------------------------------------


def write(folder: Path, arrays: dict[str, NDArray[Any]], values: dict[str, Any]) -> None:
    """Write to a temporary folder, sync, and put it in the place of the old one.

    A kill between the two renames leaves the old one under a hidden name; `read` finds it.
    """
    temporary, old = _beside(folder, "tmp"), _beside(folder, "old")
    with writing(folder):
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        # not ascontiguousarray, which turns a number into an array of one
        plain = {k: np.asarray(v, order="C") for k, v in arrays.items()}
        files = {"state.safetensors": save(plain), "state.json": json.dumps(values).encode()}
        for name, content in sealed_files(files).items():
            (temporary / name).write_bytes(content)
        for path in (*temporary.iterdir(), temporary):
            sync(path)
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
            folder.rename(old)
        temporary.rename(folder)
        sync(folder.parent)
        shutil.rmtree(old, ignore_errors=True)


def read(folder: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
    """The arrays and values of the last complete and whole checkpoint; None if there is none."""
    for place in (folder, _beside(folder, "old")):
        if not (place / SUMS).exists():
            continue
        with suppress(InvalidInput), reading(place):
            files = read_sealed(place)
            return load(files["state.safetensors"]), json.loads(files["state.json"])
    return None


def _beside(folder: Path, kind: str) -> Path:
    return folder.with_name(f".{folder.name}.{kind}")
