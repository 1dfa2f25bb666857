"""Every kind of constraint as a name, arrays and words, and back: what its files are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ringfence.constraints.absolute import AbsoluteConstraint, Lift
from ringfence.constraints.activated import Activated
from ringfence.constraints.cell_grid import CellConstraint, Grid
from ringfence.constraints.conditional import ConditionalConstraint
from ringfence.constraints.conjunction import Conjunction
from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.mlp import MLPConstraint
from ringfence.constraints.regions import Box, Disc, RegionConstraint
from ringfence.constraints.table import TableConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Constraint, Feature

Arrays = dict[str, np.ndarray]
Words = dict[str, Any]

LOG = "cost = log(1 + max(0, raw))"
MOST_PARTS = 64  # of a conjunction
MOST_WORDS = 1000  # letters, of what a network is said to forbid


# Writing -----------------------------------------------------------------------------------------


def taken_apart(c: Constraint) -> tuple[str, Arrays, Words]:
    """The kind, the arrays to store, and what the document says of them."""
    if isinstance(c, TableConstraint):
        table = {"formula": "cost = values[cell]", "shape": list(c.values.shape)}
        return "table", {"values": np.ascontiguousarray(c.values)}, table
    if isinstance(c, CellConstraint):
        words: Words = {
            "formula": "cost = values[cell], cell = floor((features - low) / size), at most the "
            "outermost",
            "over": [f.name for f in c.over],
            "low": c.grid.low.tolist(),
            "size": c.grid.size.tolist(),
            "shape": list(c.grid.shape),
        }
        grid = {"values": c.values, "low": c.grid.low, "size": c.grid.size}
        return "cells", {k: np.ascontiguousarray(a) for k, a in grid.items()}, words
    if isinstance(c, LinearConstraint):
        return "linear", *_linear(c)
    if isinstance(c, AbsoluteConstraint):
        arrays, words = _linear(c.linear)
        inside = {"inner": c.lift.inner, "centre": c.lift.centre}
        return "absolute", arrays | {k: np.ascontiguousarray(a) for k, a in inside.items()}, words
    if isinstance(c, RegionConstraint):
        return "region", *_region(c)
    if isinstance(c, MLPConstraint):
        return "mlp", *_network(c)
    if isinstance(c, ConditionalConstraint):
        formula = f"raw = limit's where condition's <= 0, else at most 0; {LOG}"
        return "conditional", *_composed(formula, {"limit": c.limit, "condition": c.condition})
    if isinstance(c, Activated):
        count = "1 where raw > 0" if c.activation == "steps" else "max(0, raw)"
        arrays, words = _composed(f"raw = the part's; cost = {count}", {"of": c.c})
        return "activated", arrays, words | {"activation": c.activation}
    if isinstance(c, Conjunction):
        formula = "raw = the largest of the parts'; cost = the sum of the parts'"
        parts = {f"part{n}": part for n, part in enumerate(c.parts)}
        return "conjunction", *_composed(formula, parts)
    raise TypeError(f"a constraint of type {type(c).__name__} has no file format")


def _linear(c: LinearConstraint) -> tuple[Arrays, Words]:
    arrays = {"weights": np.ascontiguousarray(c.weights), "offset": np.array([c.offset])}
    raw = "weights . features - offset"
    raw = raw if c.scale == 1 else f"({raw}) / scale"
    words: Words = {
        "formula": f"raw = {raw}; {LOG if c.activation == 'log' else 'cost = raw'}",
        "activation": c.activation,
        "weights": {f.name: float(w) for f, w in zip(c.features, c.weights, strict=True)},
        "offset": float(c.offset),
    }
    # Only where they differ from what they always were, so that files stay what they are.
    words |= {} if c.scale == 1 else {"scale": float(c.scale)}
    return arrays, words | ({} if c.sense == "<=" else {"sense": c.sense})


def _region(c: RegionConstraint) -> tuple[Arrays, Words]:
    """Each shape's numbers: a disc's centre and radius, a box's lower and upper corner."""
    arrays = {f"shape{n}": np.ascontiguousarray(s.numbers) for n, s in enumerate(c.shapes)}
    depth = "depth inside the shapes, in units of scale"
    words: Words = {
        "formula": f"raw = {'' if c.side == 'outside' else '-'}{depth}; {LOG}",
        "side": c.side,
        "over": [c.features[k].name for k in c.columns],
        "shapes": ["disc" if isinstance(s, Disc) else "box" for s in c.shapes],
        "numbers": [s.numbers.tolist() for s in c.shapes],
    }
    return arrays | {"scale": np.ascontiguousarray(c.scale)}, words


def _network(c: MLPConstraint) -> tuple[Arrays, Words]:
    arrays = {"mean": np.ascontiguousarray(c.mean), "scale": np.ascontiguousarray(c.scale)}
    for i, (w, b) in enumerate(zip(c.weights, c.biases, strict=True)):
        arrays |= {f"w{i}": np.ascontiguousarray(w), f"b{i}": np.ascontiguousarray(b)}
    words: Words = {
        "formula": f"raw = network((features - mean) / scale) - offset; {LOG}",
        "layers": [len(c.features), *(w.shape[1] for w in c.weights)],
        "offset": float(c.offset),
    }
    return arrays, words | ({"forbids": c.forbids} if c.forbids else {})


def _composed(formula: str, parts: Mapping[str, Constraint]) -> tuple[Arrays, Words]:
    """Each part's arrays under its name, "part0.weights"."""
    arrays: Arrays = {}
    words: Words = {"formula": formula, "parts": {}}
    for name, part in parts.items():
        kind, own, said = taken_apart(part)
        arrays |= {f"{name}.{key}": array for key, array in own.items()}
        words["parts"][name] = {"kind": kind, "description": part.describe(), **said}
    return arrays, words


# Reading -----------------------------------------------------------------------------------------


def build(document: Mapping[str, Any], features: tuple[Feature, ...], arrays: Arrays) -> Constraint:
    """The constraint of a document and its arrays; anything doubtful is an error."""
    kind = document["kind"]
    if kind == "conjunction":
        return Conjunction(tuple(_parts(document, features, arrays).values()))
    if kind == "conditional":
        found: Any = _parts(document, features, arrays)
        if list(found) != ["limit", "condition"] or not all(
            isinstance(part, LinearConstraint | AbsoluteConstraint) for part in found.values()
        ):
            raise ValueError("a conditional has a limit and a condition, both inequalities")
        return ConditionalConstraint(**found)
    if kind == "activated":
        (part,) = _parts(document, features, arrays, fewest=1).values()
        return Activated(part, document["activation"])
    if kind == "table":
        _expect(arrays, {"values": np.float64})
        return TableConstraint(features, arrays["values"])
    if kind == "cells":
        _expect(arrays, dict.fromkeys(("values", "low", "size"), np.float64))
        names = [f.name for f in features]
        columns = tuple(names.index(name) for name in document["over"])
        values = arrays["values"]
        return CellConstraint(
            features, Grid(columns, arrays["low"], arrays["size"], values.shape), values
        )
    if kind == "region":
        return _build_region(document, features, arrays)
    if kind == "linear":
        _expect(arrays, {"weights": np.float64, "offset": np.float64})
        return _build_linear(document, features, arrays)
    if kind == "absolute":
        numbers = ("weights", "offset", "inner", "centre")
        _expect(arrays, dict.fromkeys(numbers, np.float64))
        if arrays["inner"].shape[1:] != (len(features),):
            raise ValueError(f"absolute values of {arrays['inner'].shape} weights")
        lift = Lift(arrays["inner"], arrays["centre"])
        wide = lift.features(features)
        return AbsoluteConstraint(features, lift, _build_linear(document, wide, arrays))
    if kind == "mlp":
        depth = len(document["layers"]) - 1
        layers = {f"{k}{i}": np.float32 for i in range(depth) for k in "wb"}
        _expect(arrays, {"mean": np.float64, "scale": np.float64, **layers})
        weights, biases = (tuple(arrays[f"{k}{i}"] for i in range(depth)) for k in "wb")
        return MLPConstraint(
            features,
            arrays["mean"],
            arrays["scale"],
            weights,
            biases,
            float(document["offset"]),
            str(document.get("forbids", ""))[:MOST_WORDS],
        )
    raise InvalidInput(
        f"unknown kind of constraint {kind!r:.60}; this version knows table, cells, linear, "
        "absolute, conditional, conjunction, activated, region and mlp"
    )


def _build_region(
    document: Mapping[str, Any], features: tuple[Feature, ...], arrays: Arrays
) -> RegionConstraint:
    kinds, side = list(document["shapes"]), document["side"]
    names = [f"shape{n}" for n in range(len(kinds))]
    _expect(arrays, dict.fromkeys((*names, "scale"), np.float64))
    columns = tuple([f.name for f in features].index(name) for name in document["over"])
    if set(kinds) - {"disc", "box"} or side not in ("outside", "inside"):
        raise ValueError(f"shapes {kinds!r:.60}, side {side!r:.60}")
    shapes: list[Disc | Box] = []
    for kind, name in zip(kinds, names, strict=True):
        numbers, k = arrays[name], len(columns)
        disc = kind == "disc"
        if numbers.shape != (k + 1 if disc else 2 * k,):
            raise ValueError(f"a {kind} of {numbers.shape} numbers over {k} features")
        shapes.append(
            Disc(numbers[:k], float(numbers[k])) if disc else Box(numbers[:k], numbers[k:])
        )
    return RegionConstraint(features, columns, side, tuple(shapes), arrays["scale"])


def _build_linear(
    document: Mapping[str, Any], features: tuple[Feature, ...], arrays: Arrays
) -> LinearConstraint:
    (offset,) = arrays["offset"]
    activation, sense = document["activation"], document.get("sense", "<=")
    if activation not in ("log", "none") or sense not in ("<=", ">="):
        raise ValueError(f"activation {activation!r:.60}, sense {sense!r:.60}")
    scale = float(document.get("scale", 1.0))
    return LinearConstraint(features, arrays["weights"], float(offset), activation, scale, sense)


def _parts(
    document: Mapping[str, Any], features: tuple[Feature, ...], arrays: Arrays, fewest: int = 2
) -> dict[str, Constraint]:
    """The parts by name, each from its own arrays; a part of a part is no conjunction."""
    said = dict(document["parts"])
    if not fewest <= len(said) <= MOST_PARTS:
        raise ValueError(f"{len(said)} parts, not {fewest} to {MOST_PARTS}")
    taken, parts = 0, {}
    for name, words in said.items():
        own = {k.removeprefix(f"{name}."): a for k, a in arrays.items() if k.startswith(f"{name}.")}
        if words["kind"] in ("conjunction", document["kind"]):
            raise ValueError(f"{words['kind']!r:.60} inside {document['kind']!r}")
        parts[name] = build(words, features, own)
        taken += len(own)
    if taken != len(arrays):
        raise ValueError("the weights hold arrays that belong to no part")
    return parts


def _expect(arrays: Arrays, kinds: Mapping[str, Any]) -> None:
    """Exactly these arrays, of these types."""
    found = {name: array.dtype.type for name, array in arrays.items()}
    if found != dict(kinds):
        raise ValueError(f"the weights hold {_kinds(found)}, expected {_kinds(kinds)}")


def _kinds(kinds: Mapping[str, Any]) -> str:
    words = [f"{name!r:.60} ({kind.__name__})" for name, kind in sorted(kinds.items())]
    return ", ".join(words[:8]) + (", ..." if len(words) > 8 else "")
