"""From Python what `ringfence demos check my.toml` and `ringfence learn my.toml` do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ringfence.constraints.saved import SavedConstraint, load
from ringfence.demos.checks import Finding
from ringfence.errors import InvalidInput
from ringfence.runs import control
from ringfence.runs.control_config import read_user
from ringfence.runs.own_check import examine


def check_file(file: str | Path) -> tuple[Finding, ...]:
    """What every check says of a file's environment and demonstrations."""
    path = Path(file)
    return examine(read_user(path, "check_file"), path.parent).findings


def learn_file(
    file: str | Path,
    out: str | Path,
    seed: int | None = None,
    on_event: Callable[[dict[str, Any]], None] = lambda event: None,
) -> SavedConstraint | None:
    """Check, then play the game of a file in the run directory `out`.

    seed: instead of the file's. None where the demonstrators need no constraint: an unconstrained
    learner earns no more.
    """
    path, run = Path(file), Path(out)
    config = read_user(path, "learn_file", seed)
    examined = examine(config, path.parent)
    if examined.demos is None:
        raise InvalidInput(f"{path}: {examined.errors[0].message}")
    control.create(run, config, examined.demos)
    summary = control.drive(run, on_event)
    return load(run / "constraint") if summary["outcome"] == "constraint" else None
