"""Are several runs the seeds of one experiment? Means over anything else would mean nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ringfence.errors import InvalidInput
from ringfence.report.read import read_json, require_finished
from ringfence.runs.config import read_document

#: What may differ: the seed, the words of the command, and demonstrations that a seed made.
APART = ("seed", "command", "[demos] content_hash")


def require_alike(runs: Sequence[Path]) -> None:
    """Refuse runs that differ in more than their seeds, and a seed that is there twice."""
    if not runs:
        raise InvalidInput("a report over several runs needs at least one run")
    for run in runs:
        require_finished(run)
    first, experiment, outcome = runs[0], _experiment(runs[0]), _outcome(runs[0])
    for run in runs[1:]:
        other = _experiment(run)
        for name in {**experiment, **other}:
            if experiment.get(name) != other.get(name):
                raise InvalidInput(
                    f"{first} and {run} are not of one experiment: {name} differs; "
                    "report them apart"
                )
        if _outcome(run) != outcome:
            raise InvalidInput(
                f"{first} ended with {outcome!r}, {run} with {_outcome(run)!r}; report them apart"
            )
    seen: dict[int, Path] = {}
    for run in runs:
        seed = read_document(run / "config.toml").get("seed", 0)
        if seed in seen:
            raise InvalidInput(
                f"{seen[seed]} and {run} have the same seed, {seed}; give each seed once"
            )
        seen[seed] = run


def _experiment(run: Path) -> dict[str, Any]:
    """All that determines the result but the seed, entry by entry, and the tasks."""
    found: dict[str, Any] = {}
    for name, value in read_document(run / "config.toml").items():
        if isinstance(value, dict):
            found |= {f"[{name}] {key}": entry for key, entry in value.items()}
        else:
            found[name] = value
    found["tasks"] = read_json(run / "summary.json").get("tasks")
    return {name: value for name, value in found.items() if name not in APART}


def _outcome(run: Path) -> str:
    """On continuous worlds a run may end without a constraint."""
    return str(read_json(run / "summary.json").get("outcome", "constraint"))
