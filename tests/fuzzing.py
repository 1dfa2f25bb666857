"""Wrong inputs by the thousand, each determined by its kind and number.

A case is a folder with good specimens of which one is spoilt, and a command about it. Whatever is
wrong is refused in words, within a time and without memory; what is right is done; nothing is
written but where the command says.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import resource
import shutil
import struct
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import own_cart
from ringfence.cli.main import main
from ringfence.disk import MOST_ARRAYS, SEAL, sha256, write_document
from small_worlds import result

#: Values that are wrong in most places.
NASTY: tuple[Any, ...] = (
    *(-1, 0, 1, 2**31, 2**63, 10**30, -0.0, 1e308, 1e-320, float("nan"), float("inf")),
    *("", "x", "False", "os:system", "../x", "/etc/passwd", "\n", "\x1b[2J", "\u202e", "a" * 5000),
    *(True, None, [], {}, [[]], ["a"], {"a": {"b": []}}, [1, "a"], [float("nan")]),
)
WORDS = (
    "-1",
    "0",
    "1e9",
    "nan",
    "",
    "x",
    "--",
    "-",
    "\x00"[:0] + "é",
    "9" * 400,
    "a=b",
    "1,2",
    "[",
)
#: Of the processor: a busy machine is no fault of the command.
SECONDS, MEGABYTES = 20.0, 2048.0


@dataclass(frozen=True)
class Outcome:
    """code: of the command; problem: what it should not have done, or ""."""

    words: list[str]
    code: int
    problem: str


# Spoiling ----------------------------------------------------------------------------------------


def flipped(content: bytes, rng: random.Random) -> bytes:
    if not content:
        return b"\x00"
    changed = bytearray(content)
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def torn(content: bytes, rng: random.Random) -> bytes:
    """Flipped, cut, doubled, emptied, or noise put in."""
    at = rng.randrange(len(content) + 1)
    return rng.choice(
        [
            lambda: flipped(content, rng),
            lambda: content[:at],
            lambda: content[:at] + rng.randbytes(rng.randrange(1, 40)) + content[at:],
            lambda: content[:at] + content[at // 2 :],
            lambda: b"",
            lambda: rng.randbytes(200),
        ]
    )()


def spoilt_tree(document: Any, rng: random.Random) -> Any:
    """A JSON document with one entry replaced, dropped or added."""
    places: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                visit(node[key])

    visit(document)
    node, key = rng.choice(places)
    if rng.random() < 0.2:
        del node[key]
    elif rng.random() < 0.2 and isinstance(node, dict):
        node["extra"] = rng.choice(NASTY)
    else:
        node[key] = rng.choice(NASTY)
    return document


def toml_value(value: Any) -> str:
    if value is None:
        return "''"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{k} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def spoilt_toml(text: str, rng: random.Random) -> bytes:
    lines = [line for line in text.splitlines() if line]
    at = rng.randrange(len(lines))
    name = lines[at].partition("=")[0].strip()
    way = rng.randrange(9)
    if way < 4 and "=" in lines[at]:
        lines[at] = f"{name} = {toml_value(rng.choice(NASTY))}"
    elif way == 4:
        del lines[at]
    elif way == 5:
        lines.insert(at, rng.choice(lines))
    elif way == 6:
        depth = rng.choice([40, 1000, 100_000])
        lines.append(rng.choice([".".join("a" * depth) + " = 1", f"x = {'[' * depth}"]))
    elif way == 7:
        return torn("\n".join(lines).encode(), rng)
    else:
        lines[at] = lines[at].replace("=", rng.choice(["==", ":", "= ="]))
    return "\n".join(lines).encode()


def header(shape: str, dtype: str = "<f8") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (118 - len(text)) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def spoilt_npz(folder: Path, rng: random.Random) -> None:
    path, arrays = folder / "logs.npz", own_cart.arrays()
    name, way = rng.choice(sorted(arrays)), rng.randrange(8)
    if way == 0:
        path.write_bytes(torn(path.read_bytes(), rng))
    elif way == 1:  # a member that declares more than there is
        with zipfile.ZipFile(path, "a") as archive:
            shape = rng.choice(["(10000000000,)", "(-1,)", "(2, 2)", "()", "'x'", "(1, 1, 1)"])
            archive.writestr("info/big.npy", header(shape, rng.choice(["<f8", "|O", "<U9", "V"])))
    elif way == 2:  # a bomb
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("actions.npy", header("(30000000,)") + bytes(240_000_000))
    else:
        array: Any = arrays[name].copy()
        value = rng.choice([v for v in NASTY if isinstance(v, int | float | str)])
        if way == 3:
            array = array.astype(rng.choice(["<U9", "f4", "i8", "c16", "O", "M8[s]", "?"]))
        elif way == 4:
            array = array[: rng.randrange(len(array))]
        elif way == 5:
            array = array[:, None]
        elif way == 6:
            array = np.full(array.shape, value)
        else:
            array = array.astype(object if isinstance(value, str) else float)
            array.flat[rng.randrange(array.size)] = value
        np.savez(path, allow_pickle=True, **{**arrays, name: array})


def spoilt_minari(folder: Path, rng: random.Random) -> None:
    """folder: of demonstrations; half of them are sealed again, as who does it on purpose would."""
    data, about = (folder / "task-00-v0/data" / n for n in ("main_data.hdf5", "metadata.json"))
    way = rng.randrange(8)
    if way == 0:
        data.write_bytes(torn(data.read_bytes(), rng))
    elif way == 1:
        about.write_bytes(torn(about.read_bytes(), rng))
    elif way == 2:
        about.write_text(json.dumps(spoilt_tree(json.loads(about.read_text()), rng)))
    elif way == 3:  # code where the spaces should be
        spec = {"id": "X-v0", "entry_point": "os:system", "kwargs": {"command": "touch pwned"}}
        left = {k: v for k, v in json.loads(about.read_text()).items() if not k.endswith("space")}
        about.write_text(json.dumps({**left, "env_spec": json.dumps(spec)}))
    elif way == 4:
        index = folder / "demonstrations.json"
        index.write_text(json.dumps(spoilt_tree(json.loads(index.read_text()), rng)))
    else:
        with h5py.File(data, "a") as file:
            group = file["episode_0"]
            name = rng.choice(["rewards", "actions", "observations", "terminations"])
            del group[name]
            if way == 5:
                group[name] = rng.choice(
                    [h5py.ExternalLink("/etc/passwd", "/x"), h5py.SoftLink("/episode_1/rewards")]
                )
            elif way == 6:
                shape = (2**40,) if rng.random() < 0.5 else (MOST_ARRAYS // 2,)
                group.create_dataset(name, shape, "f8", chunks=(1024,))
            else:
                group[name] = rng.choice([[float("nan")] * 3, ["a"], [[[1.0]]], 3])
    if rng.random() < 0.5:
        reseal(folder)


def reseal(folder: Path) -> None:
    """The sums of demonstrations as if they had been written so."""
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        index = json.loads((folder / "demonstrations.json").read_text())
        index.pop(SEAL, None)
        files = [p for p in folder.rglob("data/*") if p.is_file()]
        index["files"] = {str(p.relative_to(folder)): sha256(p.read_bytes()) for p in files}
        write_document(folder / "demonstrations.json", index)


def spoilt_json(path: Path, rng: random.Random) -> None:
    """A document of a run, changed on purpose: its seal is right."""
    document = json.loads(path.read_text())
    document.pop(SEAL, None)
    changed = spoilt_tree(document, rng)
    text = json.dumps(changed)
    if rng.random() < 0.1:
        text = '{"a":' * 100_000 + "1" + "}" * 100_000
    with contextlib.suppress(ValueError):
        write_document(path, changed)  # refuses what isn't finite
        return
    path.write_text(text)


def random_map(rng: random.Random) -> bytes:
    letters = rng.choice([".#S0", ".#S01G", "S.0", ".#", "S.0\t x", "é\x00."])
    size = rng.choice([1, 2, 3, 5, 8, 40])
    lines = [
        "".join(rng.choices(letters, k=rng.choice([size, size, size + 1]))) for _ in range(size)
    ]
    if rng.random() < 0.7:
        lines = [line[:size].ljust(size, ".") for line in lines]
    if size > 1 and rng.random() < 0.6:
        lines[0], lines[-1] = "S" + lines[0][1:], lines[-1][:-1] + "0"
    return "\n".join(lines).encode()


# Cases -------------------------------------------------------------------------------------------

LEARN = ["learn", "--paths", "2", "--heldout", "1", "--out", "out", "--world"]


def toml_case(place: Path, rng: random.Random) -> list[str]:
    own_cart.write(place)
    (place / "my.toml").write_bytes(spoilt_toml(own_cart.TOML, rng))
    return ["demos", "check", "my.toml"]


def npz_case(place: Path, rng: random.Random) -> list[str]:
    own_cart.write(place)
    spoilt_npz(place, rng)
    return ["demos", "check", "my.toml"] if rng.random() < 0.8 else ["demos", "show", "logs.npz"]


def minari_case(place: Path, rng: random.Random) -> list[str]:
    spoilt_minari(place / "demos", rng)
    show = ["demos", rng.choice(["check", "show"]), "demos"]
    return rng.choice([show, [*LEARN[:1], "--world", "small.txt", "--demos", "demos"], show])


def json_case(place: Path, rng: random.Random) -> list[str]:
    names = ("summary.json", "evidence.json", "constraint/constraint.json", "timing.json")
    spoilt_json(place / "run" / rng.choice(names), rng)
    return rng.choice(
        [
            ["report", "run"],
            ["evaluate", "run", "--world", "small.txt"],
            ["transfer", "run", "--goal", "0,3", "--start", "3,0", "--out", "out"],
            ["resume", "run"],
        ]
    )


def map_case(place: Path, rng: random.Random) -> list[str]:
    (place / "map.txt").write_bytes(random_map(rng))
    return [*LEARN, "map.txt"]


OPTIONS = (
    *("--seed", "--paths", "--heldout", "--workers", "--set", "--class", "--player", "--solver"),
    *("--delta", "--goal", "--start", "--task", "--horizon", "--slip", "--iterations", "--set"),
    *("--constraint", "--truth", "--noise", "--world", "--out"),
)


def line_case(place: Path, rng: random.Random) -> list[str]:
    words = rng.choice(
        [
            [*LEARN, "small.txt"],
            ["solve", "--world", "small.txt", "--out", "out"],
            ["demos", "make", "--world", "small.txt", "--paths", "2", "--out", "out"],
            ["transfer", "run", "--goal", "0,3", "--start", "3,0", "--out", "out"],
            ["evaluate", "run", "--world", "small.txt", "--out", "out"],
            ["report", "run", "--out", "out"],
            ["resume", "run"],
        ]
    ).copy()
    for _ in range(rng.randrange(1, 3)):
        table = rng.choice(["solver", "game", "world", "player", "analysis", "experts", "x"])
        key = rng.choice(["kind", "iterations", "temperature", "map", "paths", "resamples", "y"])
        setting = f"{table}.{key}={toml_value(rng.choice(NASTY))}"
        option = rng.choice(OPTIONS)
        value = setting if option == "--set" else rng.choice((*WORDS, "/dev/null", "demos", "run"))
        words += [option, value]
    return words


def run_case(place: Path, rng: random.Random) -> list[str]:
    """A run with damage in one of its files, finished or not."""
    if rng.random() < 0.5:
        (place / "run/summary.json").unlink()
        shutil.rmtree(rng.choice(sorted((place / "run/ledger").iterdir())))
    files = [p for p in sorted((place / "run").rglob("*")) if p.is_file() and p.name != ".lock"]
    path = rng.choice(files)
    if rng.random() < 0.2:
        path.unlink()
    else:
        path.write_bytes(torn(path.read_bytes(), rng))
    return ["resume", "run"]


KINDS: dict[str, Callable[[Path, random.Random], list[str]]] = {
    "toml": toml_case,
    "npz": npz_case,
    "minari": minari_case,
    "json": json_case,
    "map": map_case,
    "line": line_case,
    "run": run_case,
}
#: What a command may write, beside its --out.
WRITTEN = ("out", "out-expert", "runs")


def run(kind: str, number: int, specimens: Path, place: Path) -> Outcome:
    """One case, in a folder of its own."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(specimens, place)
    rng = random.Random(f"{kind} {number}")
    words = KINDS[kind](place, rng)
    before, said, began = stamps(place), io.StringIO(), time.process_time()
    code = asked(words, place, said)
    seconds, text = time.process_time() - began, said.getvalue()
    problem = problem_of(kind, words, code, text, seconds, place, before, specimens)
    return Outcome(words, code, problem)


def asked(words: list[str], place: Path, said: io.StringIO) -> int:
    home = Path.cwd()
    os.chdir(place)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return main(words)
    except SystemExit as stop:
        return int(stop.code or 0)
    except Exception as problem:  # what the command should have caught
        said.write(f"Traceback of {problem!r}")
        return 1
    finally:
        os.chdir(home)


def problem_of(
    kind: str,
    words: list[str],
    code: int,
    text: str,
    seconds: float,
    place: Path,
    before: Any,
    specimens: Path,
) -> str:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    stray = [p for p, stamp in stamps(place).items() if before.get(p) != stamp]
    allowed = (*WRITTEN, *words, "run") if kind in ("run", "json", "line") else WRITTEN
    stray = [p for p in stray if p.partition("/")[0] not in allowed]
    if "Traceback" in text or "unforeseen" in text:
        return f"a traceback: {text[-400:]}"
    if code not in (0, 1, 2) or (code and "ringfence: " not in text):
        return f"exit code {code} without a word: {text[-200:]}"
    if seconds > SECONDS:
        return f"{seconds:.0f} s"
    if memory > MEGABYTES:
        return f"{memory:.0f} MB"
    if stray or (place / "pwned").exists():
        return f"wrote {stray}"
    if kind == "run" and code == 0 and result(place / "run") != result(specimens / "run"):
        return "a silent difference"
    return ""


def stamps(place: Path) -> dict[str, tuple[int, int]]:
    """What is there, with size and time of change."""
    files = (p for p in place.rglob("*") if p.is_file() or p.is_symlink())
    return {
        str(p.relative_to(place)): (p.lstat().st_size, p.lstat().st_mtime_ns)
        for p in files
        if "__pycache__" not in p.parts
    }
