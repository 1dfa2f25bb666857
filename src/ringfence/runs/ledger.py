"""Finished solves on disk, by the hash of all that determines them.

A solve is a pure function and its result is a file, so resuming a run, worker processes and
clusters are one mechanism: look in the ledger, solve what is not there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from ringfence.constraints import files as constraint_files
from ringfence.disk import reading
from ringfence.objects import Behaviour, Problem, Solution
from ringfence.runs.files import json_bytes, write_folder

SCHEMA = 2


def solve_key(world: Any, solver: Any, problem: Problem) -> dict[str, Any]:
    """The document that determines a solve: its hash is the solve's name.

    world, solver: configuration dataclasses of plain values.
    """
    constraint = constraint_files.to_bytes(problem.constraint, problem.delta, {})
    start = {} if problem.start is None else {"start": arrays_hash(problem.start)}
    return {
        **start,
        "schema": SCHEMA,
        "world": asdict(world),
        "solver": asdict(solver),
        "task": problem.task.name,
        "constraint": hashlib.sha256(b"".join(constraint.values())).hexdigest(),
        "delta": problem.delta.hex(),
        "seed": list(problem.seed),
    }


def arrays_hash(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of named arrays."""
    plain = {name: np.asarray(a, order="C") for name, a in sorted(arrays.items())}
    return hashlib.sha256(safetensors.numpy.save(plain)).hexdigest()


def key_hash(key: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32]


class Ledger:
    """A folder of finished solves."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def get(self, name: str) -> Solution | None:
        """The solve of that name, or None if it is not finished."""
        folder = self.root / name
        if not folder.is_dir():
            return None
        with reading(folder):
            document = json.loads((folder / "solve.json").read_bytes())
            return _solution(document, safetensors.numpy.load_file(folder / "arrays.safetensors"))

    def put(self, name: str, key: dict[str, Any], solution: Solution) -> None:
        document = {
            "key": key,
            "episodes": solution.behaviour.episodes,
            "env_steps": solution.env_steps,
        }
        if solution.succeeded is not None:
            document["succeeded"] = solution.succeeded.episodes
        arrays = safetensors.numpy.save(_arrays(solution))
        files = {"solve.json": json_bytes(document), "arrays.safetensors": arrays}
        write_folder(self.root / name, files)


def _arrays(solution: Solution) -> dict[str, np.ndarray]:
    # not ascontiguousarray, which turns a number into an array of one
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


def _solution(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Solution:
    policy = {
        name.removeprefix("policy."): array
        for name, array in arrays.items()
        if name.startswith("policy.")
    }
    return Solution(
        policy=policy,
        lam=float(arrays["scalars"][0]),
        behaviour=_behaviour(arrays, "", document["episodes"]),
        env_steps=document["env_steps"],
        succeeded=_behaviour(arrays, "succeeded.", document["succeeded"])
        if "succeeded" in document
        else None,
    )


def _behaviour(arrays: dict[str, np.ndarray], prefix: str, episodes: int | None) -> Behaviour:
    features, visits, scalars = (arrays[prefix + n] for n in ("features", "visits", "scalars"))
    _, reward, reward_se, length = map(float, scalars)
    return Behaviour(features, visits, reward, reward_se, length, episodes)
