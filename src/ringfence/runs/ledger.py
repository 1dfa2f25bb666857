"""Finished solves on disk, by the hash of all that determines them.

A solve is a pure function and its result is a file, so resuming a run, worker processes and
clusters are one mechanism: look in the ledger, solve what is not there.

    ledger/<hash>/solve.json            what determines it, counts
                  arrays.safetensors    the policy, what it does
                  episodes.safetensors  some of its episodes' features, for pictures
                  sha256.json           of each of these, checked when it is read
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from ringfence.constraints import constraint_files
from ringfence.disk import json_bytes, read_sealed, reading, write_sealed
from ringfence.objects import Behaviour, Problem, Solution

SCHEMA = 3
#: Characters of settings that stand in every key.
LONGEST = 20_000
FILES = ("solve.json", "arrays.safetensors", "episodes.safetensors")


def described(settings: Any) -> dict[str, Any]:
    """Settings, a dataclass of plain values, as a key has them: themselves, or their SHA-256 where
    they are long. (A world of 1,000 tasks in each of their keys took most of a driver's time.)"""
    plain = asdict(settings)
    text = json.dumps(plain, sort_keys=True)
    if len(text) <= LONGEST:
        return plain
    return {"kind": settings.kind, "sha256": hashlib.sha256(text.encode()).hexdigest()}


def usual_key(
    world: Mapping[str, Any], solver: Mapping[str, Any], problem: Problem
) -> dict[str, Any]:
    """What determines a solve in general; a solver's own `key` has the last word.

    world, solver: their settings, `described`.
    """
    constraint = constraint_files.to_bytes(problem.constraint, problem.delta, {})
    key = {
        "schema": SCHEMA,
        "world": world,
        "solver": solver,
        "task": problem.task.name,
        "constraint": hashlib.sha256(b"".join(constraint.values())).hexdigest(),
        "delta": problem.delta.hex(),
        "deltas": [delta.hex() for delta in problem.deltas] if len(problem.deltas) > 1 else None,
        "seed": list(problem.seed),
        "start": None if problem.start is None else arrays_hash(problem.start),
        "stop_reward": problem.stop_reward,
        "states": None if problem.states is None else arrays_hash({"states": problem.states}),
        "drop_failed": problem.drop_failed,
    }
    return {name: value for name, value in key.items() if value not in (None, False)}


def arrays_hash(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of named arrays."""
    return hashlib.sha256(arrays_bytes(arrays)).hexdigest()


def arrays_bytes(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Named arrays in their names' order. (`ascontiguousarray` would turn a number into [1].)"""
    return safetensors.numpy.save(
        {name: np.asarray(a, order="C") for name, a in sorted(arrays.items())}
    )


def key_hash(key: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]


class Ledger:
    """A folder of finished solves."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def get(self, name: str) -> Solution | None:
        """The solve of that name, or None if it is not finished; one that was damaged is refused.

        A name is a hash: any other, such as "../x", is nobody's.
        """
        folder = self.root / name
        if not name.isalnum() or not folder.is_dir():
            return None
        files = read_sealed(folder)
        with reading(folder):
            return from_files(files)

    def drop(self, name: str) -> None:
        shutil.rmtree(self.root / name)

    def put(self, name: str, files: Mapping[str, bytes]) -> None:
        write_sealed(self.root / name, files)


def to_files(key: Mapping[str, Any], solution: Solution) -> dict[str, bytes]:
    """A solution as the files of its ledger entry."""
    document = {
        "key": key,
        "episodes": solution.behaviour.episodes,
        "env_steps": solution.env_steps,
    }
    if solution.succeeded is not None:
        document["succeeded"] = solution.succeeded.episodes
    files = {
        "solve.json": json_bytes(document),
        "arrays.safetensors": safetensors.numpy.save(_arrays(solution)),
    }
    if solution.pictured:
        shown = {str(n): p.astype(np.float32) for n, p in enumerate(solution.pictured)}
        files["episodes.safetensors"] = arrays_bytes(shown)
    return files


def from_files(files: Mapping[str, bytes]) -> Solution:
    document = json.loads(files["solve.json"])
    arrays = safetensors.numpy.load(files["arrays.safetensors"])
    shown = safetensors.numpy.load(files[FILES[2]]) if FILES[2] in files else {}
    prefix = "policy."
    return Solution(
        policy={n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)},
        lam=float(arrays["scalars"][0]),
        behaviour=_behaviour(arrays, "", document["episodes"]),
        env_steps=document["env_steps"],
        succeeded=_behaviour(arrays, "succeeded.", document["succeeded"])
        if "succeeded" in document
        else None,
        pictured=tuple(shown[str(n)] for n in range(len(shown))),
    )


def _arrays(solution: Solution) -> dict[str, np.ndarray]:
    arrays = {f"policy.{name}": np.asarray(a, order="C") for name, a in solution.policy.items()}
    arrays |= _behaviour_arrays(solution.behaviour, solution.lam)
    if solution.succeeded is not None:
        succeeded = _behaviour_arrays(solution.succeeded, solution.lam)
        arrays |= {f"succeeded.{name}": array for name, array in succeeded.items()}
    return arrays


def _behaviour_arrays(pi: Behaviour, lam: float) -> dict[str, np.ndarray]:
    return {
        "features": np.ascontiguousarray(pi.features),
        "visits": np.ascontiguousarray(pi.visits),
        "scalars": np.array([lam, pi.reward, pi.reward_se, pi.length]),
    }


def _behaviour(arrays: dict[str, np.ndarray], prefix: str, episodes: int | None) -> Behaviour:
    features, visits, scalars = (arrays[prefix + n] for n in ("features", "visits", "scalars"))
    _, reward, reward_se, length = map(float, scalars)
    return Behaviour(features, visits, reward, reward_se, length, episodes)
