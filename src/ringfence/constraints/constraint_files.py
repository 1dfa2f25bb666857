"""A constraint on disk: constraint.json (readable) and weights.safetensors (numbers).

The JSON names the class, its formula, the features with units, the limit delta that the
demonstrations have under it, the intervals of its parameters, where it came from, and two
SHA-256: of the weights and of the document itself. They find damage and edits, not forgery.
Nothing in either file can run, name another file, or make the reader allocate more than the
files' own size, which is bounded.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import safetensors.numpy
from safetensors import SafetensorError

from ringfence.constraints.kinds import build, taken_apart
from ringfence.errors import InvalidInput
from ringfence.objects import Constraint, Feature

SCHEMA = 1
# A constraint is small; anything larger is not one.
MAX_JSON_BYTES = 1 << 20
MAX_WEIGHTS_BYTES = 1 << 26

#: Intervals [low, high] of parameters, by name ("limit", or a feature's name for its weight).
Interval = Mapping[str, tuple[float, float]]


# Writing -----------------------------------------------------------------------------------------


def to_bytes(
    c: Constraint, delta: float, provenance: Mapping[str, Any], interval: Interval | None = None
) -> dict[str, bytes]:
    """The files of a constraint, by name; the same constraint gives the same bytes."""
    kind, arrays, settings = taken_apart(c)
    weights = safetensors.numpy.save(arrays)
    document = {
        "schema": SCHEMA,
        "kind": kind,
        "description": c.describe(),
        "features": [{"name": f.name, "unit": f.unit} for f in c.features],
        **settings,
        "delta": delta,
        "interval": None if interval is None else {k: list(v) for k, v in interval.items()},
        "provenance": dict(provenance),
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
    }
    _check_limits(document)  # as the reader does
    document["document_sha256"] = digest(document)
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    return {"constraint.json": text.encode(), "weights.safetensors": weights}


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of all that a document says except its own digest, however it is laid out."""
    said = {k: v for k, v in document.items() if k != "document_sha256"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


# Reading -----------------------------------------------------------------------------------------


def load(folder: str | Path) -> Constraint:
    """Read a saved constraint; every doubt about the files is an InvalidInput."""
    return load_document(folder)[0]


def load_document(folder: str | Path) -> tuple[Constraint, dict[str, Any]]:
    """The constraint and its JSON document (delta, interval, provenance, description)."""
    folder = Path(folder)
    document = _read_json(folder / "constraint.json")
    weights = _read_bytes(folder / "weights.safetensors", MAX_WEIGHTS_BYTES)
    if hashlib.sha256(weights).hexdigest() != document.get("weights_sha256"):
        raise InvalidInput(
            f"{folder}/weights.safetensors: it is not the file that constraint.json was written "
            "with (SHA-256 differs); restore both files from one source"
        )
    try:
        _check_limits(document)
        return build(document, _features(document), safetensors.numpy.load(weights)), document
    except (SafetensorError, LookupError, TypeError, ValueError, ArithmeticError) as problem:
        raise InvalidInput(
            f"{folder}: not a readable constraint ({type(problem).__name__}: {problem}); "
            "save it again with this version"
        ) from None
    except InvalidInput as problem:
        raise InvalidInput(f"{folder}: {problem}") from None


def from_bytes(files: Mapping[str, bytes]) -> Constraint:
    """The constraint of `to_bytes`, which came straight from there."""
    document = json.loads(files["constraint.json"])
    arrays = safetensors.numpy.load(files["weights.safetensors"])
    return build(document, _features(document), arrays)


def _read_bytes(path: Path, most: int) -> bytes:
    if path.is_symlink():
        raise InvalidInput(f"{path}: a link; copy the file itself into the constraint's folder")
    if not path.is_file():
        raise InvalidInput(f"{path}: no such file; a constraint is a folder with constraint.json")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise InvalidInput(f"{path}: larger than {most} bytes; this is not a constraint")
        return file.read(size)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(_read_bytes(path, MAX_JSON_BYTES), parse_constant=_not_a_number)
        said = digest(document) if isinstance(document, dict) else ""
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(
            f"{path}: not valid JSON ({problem}); save the constraint again"
        ) from None
    if not isinstance(document, dict) or "schema" not in document:
        raise InvalidInput(f'{path}: this is not a constraint file (no "schema" in it)')
    if document["schema"] != SCHEMA:
        raise InvalidInput(
            f"{path}: schema {document['schema']!r}, this version reads {SCHEMA}; update ringfence"
        )
    if said != document.get("document_sha256"):
        raise InvalidInput(
            f"{path}: it was changed after it was saved (SHA-256 differs); restore it, or save the "
            "constraint again"
        )
    return document


def _not_a_number(constant: str) -> float:
    raise ValueError(f"{constant} is not a number")


def _check_limits(document: dict[str, Any]) -> None:
    """delta and the interval's bounds are finite numbers, provenance is a table."""
    if not _finite([document["delta"]]):
        raise ValueError(f"delta is {document['delta']!r}, not a finite number")
    interval = {} if document["interval"] is None else dict(document["interval"])
    for name, pair in interval.items():
        if len(pair) != 2 or not _finite(pair) or pair[0] > pair[1]:
            raise ValueError(f"the interval of {name} is {pair!r}, not [low, high]")
    if not isinstance(document["provenance"], dict):
        raise ValueError("provenance is not a table")


def _finite(values: Iterable[Any]) -> bool:
    return all(type(v) in (int, float) and math.isfinite(v) for v in values)


def _features(document: dict[str, Any]) -> tuple[Feature, ...]:
    features = tuple(Feature(f["name"], f["unit"]) for f in document["features"])
    if len({f.name for f in features}) < len(features):
        raise ValueError("two features have the same name")
    return features
