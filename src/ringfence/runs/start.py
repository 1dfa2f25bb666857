"""The policy that a training begins from, kept in its folder and named by its hash."""

from __future__ import annotations

from pathlib import Path

import safetensors.numpy

from ringfence.deploy import policies
from ringfence.disk import reading
from ringfence.errors import InvalidInput
from ringfence.objects import Start
from ringfence.runs.ledger import arrays_hash

START = "start.safetensors"


def start_files(start: Start | None) -> dict[str, bytes]:
    return {} if start is None else {START: policies.policy_bytes(start)}


def start_hash(start: Start | None) -> str:
    """Empty where training begins afresh."""
    return "" if start is None else arrays_hash(start)


def read_start(folder: Path, wanted: str) -> Start | None:
    """The policy of that hash, or None where there is to be none."""
    if not wanted:
        return None
    with reading(folder / START):
        start: Start = safetensors.numpy.load_file(folder / START)
    if arrays_hash(start) != wanted:
        raise InvalidInput(f"{folder / START}: not the policy that it began with; begin anew")
    return start
