"""A constraint on disk: exact, the same bytes each time, readable, and safe to load."""

from __future__ import annotations

import hashlib
import json
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from ringfence.constraints import constraint_files
from ringfence.constraints.constraint_files import digest, load, load_document, to_bytes
from ringfence.errors import InvalidInput
from ringfence.objects import Constraint
from saved_constraints import CELLS, LINE, NETWORK, TABLE, random_network, saved


@pytest.mark.parametrize("c", [TABLE, LINE, NETWORK])
def test_round_trip_is_exact(tmp_path: Path, c: Constraint) -> None:
    again, document = load_document(saved(tmp_path, c))
    phi = np.array([[0.0, 1.0], [2.0, 3.0]])
    assert np.array_equal(again.cost(phi), c.cost(phi))
    assert again.describe() == c.describe() == document["description"]
    assert document["delta"] == 0.25
    assert document["interval"] == {"offset": [0.05, 0.2]}
    assert document["provenance"] == {"seed": 3}
    assert to_bytes(again, 0.25, {"seed": 3}) == to_bytes(c, 0.25, {"seed": 3})


def test_the_document_says_a_linear_constraint_in_full(tmp_path: Path) -> None:
    document = json.loads((saved(tmp_path, LINE) / "constraint.json").read_text())
    assert document["description"] == "0.5 row - col <= 0.1"
    assert document["formula"].startswith("raw = weights . features - offset")
    assert document["weights"] == {"row": 0.5, "col": -1.0}
    assert document["offset"] == 0.1
    assert document["features"] == [{"name": n, "unit": "cell"} for n in ("row", "col")]


# Damage ------------------------------------------------------------------------------------------


def edit(folder: Path, **changes: object) -> None:
    """Change the document and nothing else."""
    path = folder / "constraint.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def forge(folder: Path, **changes: object) -> None:
    """Change the document and make its digest fit, as someone hostile would."""
    edit(folder, **changes)
    document = json.loads((folder / "constraint.json").read_text())
    edit(folder, document_sha256=digest(document))


def cut(name: str, share: float):
    def damage(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(share * len(content))])

    return damage


def flip(folder: Path) -> None:
    path = folder / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def forge_weights(folder: Path, weights: bytes) -> None:
    """Both files consistent, but with weights that no constraint can have."""
    (folder / "weights.safetensors").write_bytes(weights)
    forge(folder, weights_sha256=hashlib.sha256(weights).hexdigest())


def arrays(**named: np.ndarray):
    return lambda folder: forge_weights(folder, safetensors.numpy.save(named))


def header(text: str, length: int | None = None, data: bytes = b""):
    """Weights with a hand-written safetensors header."""
    encoded = text.encode()
    size = struct.pack("<Q", len(encoded) if length is None else length)
    return lambda folder: forge_weights(folder, size + encoded + data)


def tensor(shape: list[int], end: int, dtype: str = "F64") -> str:
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, end]}
    return json.dumps({"values": entry})


def link(name: str, target: str):
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return damage


def write(name: str, content: bytes):
    return lambda folder: (folder / name).write_bytes(content)


WORD = {"name": "row", "unit": "cell"}
DAMAGE = {
    "no document": (lambda f: (f / "constraint.json").unlink(), "no such file"),
    "no weights": (lambda f: (f / "weights.safetensors").unlink(), "no such file"),
    "truncated document": (cut("constraint.json", 0.7), "not valid JSON"),
    "truncated weights": (cut("weights.safetensors", 0.7), "SHA-256 differs"),
    "empty document": (write("constraint.json", b""), "not valid JSON"),
    "empty weights": (write("weights.safetensors", b""), "SHA-256 differs"),
    "not a constraint": (write("constraint.json", b"[]"), "not a constraint"),
    "not text": (write("constraint.json", b"\xff\xfe"), "not valid JSON"),
    "altered weights": (flip, "SHA-256 differs"),
    "altered features": (lambda f: edit(f, features=[WORD, WORD]), "changed after it was saved"),
    "altered activation": (lambda f: edit(f, activation="none"), "changed after it was saved"),
    "altered delta": (lambda f: edit(f, delta=9.0), "changed after it was saved"),
    "no digest": (lambda f: edit(f, document_sha256=None), "changed after it was saved"),
    "future schema": (lambda f: edit(f, schema=2), "schema 2, this version reads 1"),
    "schema in words": (lambda f: forge(f, schema="one"), "schema 'one', this version reads 1"),
    "NaN in the document": (
        lambda f: (f / "constraint.json").write_text('{"schema": NaN}'),
        "NaN is not a number",
    ),
}
HOSTILE = {
    "unknown kind": (lambda f: forge(f, kind="spell"), "unknown kind"),
    "kind is a list": (lambda f: forge(f, kind=["table"]), "unknown kind"),
    "features is a number": (lambda f: forge(f, features=7), "not a readable constraint"),
    "features are words": (lambda f: forge(f, features=["row"]), "not a readable constraint"),
    "too few features": (lambda f: forge(f, features=[WORD]), "axes"),
    "equal features": (lambda f: forge(f, features=[WORD, WORD]), "same name"),
    "an escape in a name": (
        lambda f: forge(f, features=[WORD, {"name": "\x1b[2J", "unit": "m"}]),
        "not a feature's name",
    ),
    "an endless name": (
        lambda f: forge(f, features=[WORD, {"name": "x" * 10_000, "unit": "m"}]),
        "not a feature's name",
    ),
    "infinite delta": (
        lambda f: (f / "constraint.json").write_text(
            (f / "constraint.json").read_text().replace("0.25", "1e999")
        ),
        "changed after|finite",
    ),
    "delta in words": (lambda f: forge(f, delta="much"), "delta is 'much'"),
    "delta is true": (lambda f: forge(f, delta=True), "delta is True"),
    "interval upside down": (lambda f: forge(f, interval={"offset": [2, 1]}), "low, high"),
    "interval is a number": (lambda f: forge(f, interval=3), "not a readable constraint"),
    "provenance is a list": (lambda f: forge(f, provenance=[]), "provenance"),
    "deep document": (write("constraint.json", b"[" * 500_000), "not valid JSON"),
    "huge document": (write("constraint.json", b" " * (1 << 21)), "larger than 1048576 bytes"),
    "huge number": (write("constraint.json", b"1" * 10_000), "not valid JSON"),
    "document elsewhere": (link("constraint.json", "/etc/hostname"), "a link"),
    "weights elsewhere": (link("weights.safetensors", "../../c/weights"), "a link"),
    "endless weights": (link("weights.safetensors", "/dev/zero"), "a link"),
    "NaN": (arrays(values=np.full((3, 4), np.nan)), "finite"),
    "out of range": (arrays(values=np.full((3, 4), 7.0)), r"in \[0, 1\]"),
    "wrong type": (arrays(values=np.zeros((3, 4), np.int64)), "expected 'values' .float64"),
    "wrong name": (arrays(**{"../values": np.zeros((3, 4))}), "expected 'values'"),
    "one too many": (arrays(values=np.zeros((3, 4)), more=np.zeros(1)), "expected 'values'"),
    "no arrays": (arrays(), "expected 'values'"),
    "huge shape": (header(tensor([1 << 40, 1 << 20], 96), data=bytes(96)), "not a readable"),
    "overflowing shape": (header(tensor([1 << 63, 2], 0)), "not a readable"),
    "empty but huge": (header(tensor([0, 1 << 62], 0)), "not a readable|constraint"),
    "data that isn't there": (header(tensor([3, 4], 96)), "not a readable"),
    "strange type": (header(tensor([2, 2], 8, "BF16"), data=bytes(8)), "not a readable"),
    "unknown type": (header(tensor([2, 2], 8, "CODE"), data=bytes(8)), "not a readable"),
    "huge header": (header("{}", length=1 << 62), "not a readable"),
    "deep header": (header("[" * 100_000), "not a readable"),
    "no header": (lambda f: forge_weights(f, b""), "not a readable"),
}


@pytest.mark.parametrize("name", [*DAMAGE, *HOSTILE])
def test_a_damaged_or_hostile_constraint_is_refused(tmp_path: Path, name: str) -> None:
    damage, word = (DAMAGE | HOSTILE)[name]
    damage(saved(tmp_path / "c"))
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match=word) as refused:
            load(tmp_path / "c")
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert str(tmp_path / "c") in str(refused.value)
    assert len(str(refused.value)) < 600


def test_a_hostile_linear_or_network_is_refused(tmp_path: Path) -> None:
    line, network = saved(tmp_path / "line", LINE), saved(tmp_path / "network", NETWORK)
    forge(line, activation="exec")
    with pytest.raises(InvalidInput, match="activation 'exec'"):
        load(line)
    for layers, word in [([2], "expected"), ([2] * 1_000, "expected"), (3, "not a readable")]:
        forge(network, layers=layers)
        with pytest.raises(InvalidInput, match=word):
            load(network)


def test_weights_beyond_the_limit_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constraint_files, "MAX_WEIGHTS_BYTES", 50)
    with pytest.raises(InvalidInput, match="larger than 50 bytes"):
        load(saved(tmp_path))


def test_a_wide_network_is_evaluated_in_little_memory(tmp_path: Path) -> None:
    c = load(saved(tmp_path, random_network((400_000,), CELLS)))
    phi = np.zeros((2_000, 2))
    tracemalloc.start()
    c.cost(phi)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20  # at once it would be 3.2 GB
