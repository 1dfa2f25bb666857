"""A flipped bit in any file of a run is noticed or without effect, and mended where it can be.

With RINGFENCE_FUZZ it is a hundred flips in each kind of file, on every world; else a few on two.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzzing import flipped
from fuzzing import random as randoms
from ringfence.constraints import constraint_files
from ringfence.demos import dataset
from ringfence.deploy.policies import load_policy
from ringfence.disk import read_json, read_sealed, read_toml
from ringfence.errors import InvalidInput
from ringfence.runs import driver
from ringfence.runs.ledger import Ledger, to_files
from ringfence.solvers import checkpoints
from small_worlds import KINDS, of_kinds, once, result, small

FEW, MANY = 6, 100
Finished = Callable[[str], Path]
#: Not read back: events and the lock, and what is drawn from the rest.
NOT_READ = ("metrics.jsonl", ".lock", "report.html")


class Stopped(Exception):
    """As if the process had ended here."""


def stop_in_the_second_iteration(event: dict[str, Any]) -> None:
    if event["event"] in ("update", "solved") and event["i"] == 2:
        raise Stopped


@pytest.fixture(scope="session")
def unfinished(shared: Path) -> Finished:
    """A small game that was stopped: with a checkpoint, where it trains."""

    def make(kind: str, run: Path) -> None:
        driver.create(run, *small(kind))
        with pytest.raises(Stopped):
            driver.drive(run, on_event=stop_in_the_second_iteration)

    return lambda kind: once(shared, f"{kind}-unfinished", lambda run: make(kind, run))


def files_of(run: Path) -> dict[str, list[Path]]:
    """The files that are read back, by their kind: their name with hashes and numbers left out."""
    found: dict[str, list[Path]] = {}
    for path in sorted(p for p in run.rglob("*") if p.is_file() and p.name not in NOT_READ):
        name = str(path.relative_to(run))
        kind = re.sub(r"[0-9a-f]{32}|\d+", "*", name)
        found.setdefault(kind, []).append(path.relative_to(run))
    return found


def told(run: Path, path: Path) -> Any:
    """What a file's reader gets out of it, to be compared."""
    first = path.parts[0]
    if path.name == "config.toml":
        return read_toml(run / path)
    if first in ("summary.json", "timing.json", "evidence.json"):
        return read_json(run / path)
    if first == "demos":
        demos = dataset.load(run / "demos")
        return dataset.content_hash(demos), demos.provenance
    if first in ("constraints", "constraint"):
        c, document = constraint_files.load_document((run / path).parent)
        return c.describe(), document
    if first == "ledger":
        solution = Ledger(run / "ledger").get(path.parts[1])
        assert solution is not None
        return to_files({}, solution)
    if first == "start":
        return read_sealed(run / "start")
    if first == "policy":
        policy = load_policy((run / path).parent)
        return {n: a.tobytes() for n, a in policy.arrays.items()}, policy.about
    if first == "checkpoints":
        found = checkpoints.read(run / first / path.parts[1])
        if found is None:
            raise InvalidInput("not believed")
        return {n: a.tobytes() for n, a in found[0].items()}, found[1]
    raise AssertionError(f"{path}: say how it is read back")


def flips(run: Path, count: int, tmp_path: Path) -> None:
    copy, rng = Path(shutil.copytree(run, tmp_path / "copy")), randoms.Random(0)
    for kind, paths in files_of(copy).items():
        believed = 0
        for _ in range(count):
            path = rng.choice(paths)
            content, whole = (copy / path).read_bytes(), told(run, path)
            (copy / path).write_bytes(flipped(content, rng))
            try:
                assert told(copy, path) == whole, kind
                believed += 1
            except InvalidInput:
                pass
            (copy / path).write_bytes(content)
        if not kind.endswith((".json", ".toml")):  # a document has white space, and its seal's name
            assert believed == 0, kind


@of_kinds("grid", "gym")
@pytest.mark.parametrize("done", [True, False], ids=["finished", "unfinished"])
def test_a_flipped_bit_is_noticed_or_without_effect(
    kind: str, done: bool, finished: Finished, unfinished: Finished, tmp_path: Path
) -> None:
    flips((finished if done else unfinished)(kind), FEW, tmp_path)


@pytest.mark.fuzz
@of_kinds(*KINDS)
@pytest.mark.parametrize("done", [True, False], ids=["finished", "unfinished"])
def test_a_hundred_flipped_bits_are_noticed_or_without_effect(
    kind: str, done: bool, finished: Finished, unfinished: Finished, tmp_path: Path
) -> None:
    flips((finished if done else unfinished)(kind), MANY, tmp_path)


def resumed(run: Path, expected: dict[str, bytes], tmp_path: Path) -> None:
    """One flip in each kind of file, one after the other: the run ends as it would have."""
    rng = randoms.Random(1)
    for number, (kind, paths) in enumerate(files_of(run).items()):
        copy = Path(shutil.copytree(run, tmp_path / str(number)))
        path = rng.choice(paths)
        (copy / path).write_bytes(flipped((copy / path).read_bytes(), rng))
        try:
            driver.drive(copy)
        except InvalidInput:
            assert kind.startswith(("demos", "config")), kind
            continue
        assert result(copy) == expected, kind


@of_kinds("grid")
@pytest.mark.parametrize("done", [True, False], ids=["finished", "unfinished"])
def test_a_run_with_a_flipped_bit_resumes_to_the_right_bytes(
    kind: str, done: bool, finished: Finished, unfinished: Finished, tmp_path: Path
) -> None:
    resumed((finished if done else unfinished)(kind), result(finished(kind)), tmp_path)


@pytest.mark.fuzz
@of_kinds(*KINDS)
@pytest.mark.parametrize("done", [True, False], ids=["finished", "unfinished"])
def test_every_worlds_run_with_a_flipped_bit_resumes_to_the_right_bytes(
    kind: str, done: bool, finished: Finished, unfinished: Finished, tmp_path: Path
) -> None:
    resumed((finished if done else unfinished)(kind), result(finished(kind)), tmp_path)


def test_what_is_not_read_back_has_no_effect(finished: Finished, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished("grid"), tmp_path / "run"))
    for name in NOT_READ:
        (run / name).write_bytes(np.random.default_rng(0).bytes(100))
    driver.drive(run)
    assert result(run) == result(finished("grid"))
