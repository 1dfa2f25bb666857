"""A constraint on disk: exact, the same bytes each time, and safe to load."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ringfence.constraints.files import load, load_document, to_bytes
from ringfence.constraints.linear import parse_inequality
from ringfence.constraints.table import TableConstraint
from ringfence.errors import InvalidInput
from ringfence.objects import Constraint, Feature

CELLS = (Feature("row", "cell"), Feature("col", "cell"))
TABLE = TableConstraint(CELLS, np.random.default_rng(0).random((3, 4)))
LINE = parse_inequality("0.5 row - col <= 0.1", CELLS)


def saved(folder: Path, c: Constraint = TABLE) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in to_bytes(c, 0.25, {"seed": 3}).items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("c", [TABLE, LINE])
def test_round_trip_is_exact(tmp_path: Path, c: Constraint) -> None:
    again, document = load_document(saved(tmp_path, c))
    phi = np.array([[0.0, 1.0], [2.0, 3.0]])
    assert np.array_equal(again.cost(phi), c.cost(phi))
    assert again.describe() == c.describe() == document["description"]
    assert document["delta"] == 0.25
    assert document["provenance"] == {"seed": 3}
    assert to_bytes(again, 0.25, {"seed": 3}) == to_bytes(c, 0.25, {"seed": 3})


def edit(folder: Path, **changes: object) -> None:
    path = folder / "constraint.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def flip(folder: Path) -> None:
    path = folder / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def swap_weights(folder: Path, values: np.ndarray) -> None:
    """Both files consistent, but with numbers that no constraint can have."""
    import hashlib

    from safetensors.numpy import save

    weights = save({"values": values})
    (folder / "weights.safetensors").write_bytes(weights)
    edit(folder, weights_sha256=hashlib.sha256(weights).hexdigest())


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (lambda f: (f / "constraint.json").unlink(), "no such file"),
        (lambda f: (f / "weights.safetensors").unlink(), "no such file"),
        (lambda f: (f / "constraint.json").write_text("{"), "not valid JSON"),
        (lambda f: (f / "constraint.json").write_text("[]"), "not a constraint"),
        (lambda f: (f / "constraint.json").write_bytes(b"\xff\xfe"), "not valid JSON"),
        (lambda f: edit(f, schema=2), "schema 2, this version reads 1"),
        (lambda f: edit(f, kind="spell"), "unknown kind"),
        (lambda f: edit(f, features=7), "not a readable constraint"),
        (lambda f: edit(f, features=[{"name": "row", "unit": "cell"}]), "axes"),
        (flip, "SHA-256 differs"),
        (lambda f: (f / "weights.safetensors").write_bytes(b"12345"), "SHA-256 differs"),
        (lambda f: swap_weights(f, np.full((3, 4), np.nan)), "finite"),
        (lambda f: swap_weights(f, np.full((3, 4), 7.0)), r"in \[0, 1\]"),
    ],
)
def test_a_damaged_constraint_is_refused(tmp_path: Path, damage, word: str) -> None:
    damage(saved(tmp_path / "c"))
    with pytest.raises(InvalidInput, match=word):
        load(tmp_path / "c")


def test_loading_imports_only_numpy_and_safetensors(tmp_path: Path) -> None:
    code = (
        "import sys, ringfence; c = ringfence.load(sys.argv[1]); "
        "heavy = {'scipy', 'jax', 'mujoco', 'gymnasium', 'matplotlib', 'minari', 'highspy'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    folder = str(saved(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
