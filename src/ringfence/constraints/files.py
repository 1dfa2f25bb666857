"""A constraint on disk: constraint.json (readable) and weights.safetensors (numbers).

The JSON names the class, the features with units, the limit delta that the demonstrations have
under it, where it came from, and the SHA-256 of the weights. Nothing in either file can run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.table import TableConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Constraint, Feature

SCHEMA = 1
MAX_BYTES = 1 << 30  # a constraint is small; anything larger is not one


def to_bytes(
    c: Constraint,
    delta: float,
    provenance: Mapping[str, Any],
    interval: Mapping[str, Any] | None = None,
) -> dict[str, bytes]:
    """The files of a constraint, by name; the same constraint gives the same bytes.

    interval: of its parameters, how sure the demonstrations make them.
    """
    kind, arrays, settings = _parts(c)
    weights = safetensors.numpy.save(arrays)
    document = {
        "schema": SCHEMA,
        "kind": kind,
        "description": c.describe(),
        "features": [{"name": f.name, "unit": f.unit} for f in c.features],
        **settings,
        "delta": delta,
        **({} if interval is None else {"interval": dict(interval)}),
        "provenance": dict(provenance),
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
    }
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    return {"constraint.json": text.encode(), "weights.safetensors": weights}


def _parts(c: Constraint) -> tuple[str, dict[str, np.ndarray], dict[str, Any]]:
    if isinstance(c, TableConstraint):
        return "table", {"values": np.ascontiguousarray(c.values)}, {}
    if isinstance(c, LinearConstraint):
        arrays = {"weights": np.ascontiguousarray(c.weights), "offset": np.array([c.offset])}
        return "linear", arrays, {"activation": c.activation}
    raise TypeError(f"a constraint of type {type(c).__name__} has no file format")


def load(folder: str | Path) -> Constraint:
    """Read a saved constraint; every doubt about the files is an InvalidInput."""
    return load_document(folder)[0]


def load_document(folder: str | Path) -> tuple[Constraint, dict[str, Any]]:
    """The constraint and its JSON document (delta, provenance, description)."""
    folder = Path(folder)
    document = _read_json(folder / "constraint.json")
    weights = _read_bytes(folder / "weights.safetensors")
    if hashlib.sha256(weights).hexdigest() != document.get("weights_sha256"):
        raise InvalidInput(
            f"{folder}/weights.safetensors: it is not the file that constraint.json was written "
            "with (SHA-256 differs); restore both files from one source"
        )
    try:
        arrays = safetensors.numpy.load(weights)
        features = tuple(Feature(f["name"], f["unit"]) for f in document["features"])
        return _build(document, features, arrays), document
    except (SafetensorError, KeyError, TypeError, ValueError) as problem:
        raise InvalidInput(
            f"{folder}: not a readable constraint ({type(problem).__name__}: {problem}); "
            "save it again with this version"
        ) from None


def _build(
    document: dict[str, Any], features: tuple[Feature, ...], arrays: dict[str, np.ndarray]
) -> Constraint:
    kind = document["kind"]
    if kind == "table":
        return TableConstraint(features, arrays["values"])
    if kind == "linear":
        offset = float(arrays["offset"][0])
        return LinearConstraint(features, arrays["weights"], offset, document["activation"])
    raise InvalidInput(f"unknown kind of constraint {kind!r}; this version knows table and linear")


def _read_bytes(path: Path) -> bytes:
    if not path.is_file():
        raise InvalidInput(f"{path}: no such file; a constraint is a folder with constraint.json")
    if path.stat().st_size > MAX_BYTES:
        raise InvalidInput(f"{path}: larger than {MAX_BYTES} bytes; this is not a constraint")
    return path.read_bytes()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(_read_bytes(path))
    except ValueError as problem:
        raise InvalidInput(
            f"{path}: not valid JSON ({problem}); save the constraint again"
        ) from None
    if not isinstance(document, dict) or "schema" not in document:
        raise InvalidInput(f'{path}: this is not a constraint file (no "schema" in it)')
    if document["schema"] != SCHEMA:
        raise InvalidInput(
            f"{path}: schema {document['schema']!r}, this version reads {SCHEMA}; update ringfence"
        )
    return document
