"""Wrong inputs by the dozen, and with RINGFENCE_FUZZ=5000 by the thousand (docs/reliability.md)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import fuzzing

FEW = 12  # cases of each kind
PARTS = 10


def explore(kind: str, numbers: range, here: Path, tmp_path: Path) -> None:
    wrong, codes = [], dict[int, int]()
    for number in numbers:
        outcome = fuzzing.run(kind, number, here, tmp_path / "case")
        codes[outcome.code] = codes.get(outcome.code, 0) + 1
        if outcome.problem:
            wrong.append(f"{kind} {number}: {outcome.words}: {outcome.problem}")
    print(f"{kind}: {len(numbers)} cases, exit codes {dict(sorted(codes.items()))}")
    assert not wrong, f"{len(wrong)} of {len(numbers)}:\n" + "\n".join(wrong[:10])


@pytest.mark.parametrize("kind", fuzzing.KINDS)
def test_what_is_wrong_is_refused_in_words(kind: str, here: Path, tmp_path: Path) -> None:
    explore(kind, range(FEW), here, tmp_path)


@pytest.mark.fuzz
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", fuzzing.KINDS)
def test_thousands_of_wrong_inputs_are_refused_in_words(
    kind: str, part: int, here: Path, tmp_path: Path
) -> None:
    each = -(-int(os.environ["RINGFENCE_FUZZ"]) // (PARTS * len(fuzzing.KINDS)))
    first = 1000 + part * each
    explore(kind, range(first, first + each), here, tmp_path)
