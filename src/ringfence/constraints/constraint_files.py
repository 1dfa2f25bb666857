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

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.mlp import MLPConstraint
from ringfence.constraints.table import TableConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Constraint, Feature

SCHEMA = 1
# A constraint is small; anything larger is not one.
MAX_JSON_BYTES = 1 << 20
MAX_WEIGHTS_BYTES = 1 << 26
MAX_WORD = 200  # characters of a feature's name or unit

#: Intervals [low, high] of parameters, by name ("limit", or a feature's name for its weight).
Interval = Mapping[str, tuple[float, float]]


# Writing -----------------------------------------------------------------------------------------


def to_bytes(
    c: Constraint, delta: float, provenance: Mapping[str, Any], interval: Interval | None = None
) -> dict[str, bytes]:
    """The files of a constraint, by name; the same constraint gives the same bytes."""
    kind, arrays, settings = _parts(c)
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
    document["document_sha256"] = digest(document)
    text = json.dumps(document, indent=2, allow_nan=False) + "\n"
    return {"constraint.json": text.encode(), "weights.safetensors": weights}


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of all that a document says except its own digest, however it is laid out."""
    said = {k: v for k, v in document.items() if k != "document_sha256"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _parts(c: Constraint) -> tuple[str, dict[str, np.ndarray], dict[str, Any]]:
    """The kind, the arrays to store, and what the document says of them."""
    if isinstance(c, TableConstraint):
        table = {"formula": "cost = values[cell]", "shape": list(c.values.shape)}
        return "table", {"values": np.ascontiguousarray(c.values)}, table
    if isinstance(c, LinearConstraint):
        arrays = {"weights": np.ascontiguousarray(c.weights), "offset": np.array([c.offset])}
        log = "cost = log(1 + max(0, raw))" if c.activation == "log" else "cost = raw"
        linear: dict[str, Any] = {
            "formula": f"raw = weights . features - offset; {log}",
            "activation": c.activation,
            "weights": {f.name: float(w) for f, w in zip(c.features, c.weights, strict=True)},
            "offset": float(c.offset),
        }
        return "linear", arrays, linear
    if isinstance(c, MLPConstraint):
        arrays = {"mean": np.ascontiguousarray(c.mean), "scale": np.ascontiguousarray(c.scale)}
        for i, (w, b) in enumerate(zip(c.weights, c.biases, strict=True)):
            arrays |= {f"w{i}": np.ascontiguousarray(w), f"b{i}": np.ascontiguousarray(b)}
        network: dict[str, Any] = {
            "formula": "raw = network((features - mean) / scale) - offset; "
            "cost = log(1 + max(0, raw))",
            "layers": [len(c.features), *(w.shape[1] for w in c.weights)],
            "offset": float(c.offset),
        }
        return "mlp", arrays, network
    raise TypeError(f"a constraint of type {type(c).__name__} has no file format")


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
        return _build(document, _features(document), safetensors.numpy.load(weights)), document
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
    return _build(document, _features(document), arrays)


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
    """Names and units are short printable words: they go to terminals and pages."""
    features = tuple(Feature(f["name"], f["unit"]) for f in document["features"])
    for word in (word for f in features for word in (f.name, f.unit)):
        if not isinstance(word, str) or not word.isprintable() or len(word) > MAX_WORD:
            raise ValueError(f"{word!r:.60} is not a feature's name or unit")
    if len({f.name for f in features}) < len(features):
        raise ValueError("two features have the same name")
    return features


def _build(
    document: dict[str, Any], features: tuple[Feature, ...], arrays: dict[str, np.ndarray]
) -> Constraint:
    kind = document["kind"]
    if kind == "table":
        _expect(arrays, {"values": np.float64})
        return TableConstraint(features, arrays["values"])
    if kind == "linear":
        _expect(arrays, {"weights": np.float64, "offset": np.float64})
        (offset,) = arrays["offset"]
        if document["activation"] not in ("log", "none"):
            raise ValueError(f"activation {document['activation']!r:.60}")
        return LinearConstraint(features, arrays["weights"], float(offset), document["activation"])
    if kind == "mlp":
        depth = len(document["layers"]) - 1
        names = {f"{k}{i}": np.float32 for i in range(depth) for k in "wb"}
        _expect(arrays, {"mean": np.float64, "scale": np.float64, **names})
        weights, biases = (tuple(arrays[f"{k}{i}"] for i in range(depth)) for k in "wb")
        offset = float(document["offset"])
        return MLPConstraint(features, arrays["mean"], arrays["scale"], weights, biases, offset)
    raise InvalidInput(
        f"unknown kind of constraint {kind!r:.60}; this version knows table, linear and mlp"
    )


def _expect(arrays: dict[str, np.ndarray], kinds: Mapping[str, Any]) -> None:
    """Exactly these arrays, of these types."""
    found = {name: array.dtype.type for name, array in arrays.items()}
    if found != dict(kinds):
        raise ValueError(f"the weights hold {_kinds(found)}, expected {_kinds(kinds)}")


def _kinds(kinds: Mapping[str, Any]) -> str:
    words = [f"{name!r:.60} ({kind.__name__})" for name, kind in sorted(kinds.items())]
    return ", ".join(words[:8]) + (", ..." if len(words) > 8 else "")
