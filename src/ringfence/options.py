"""What the words of a command line may be: options that would have no effect are refused."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from ringfence.errors import InvalidInput

#: What `learn` takes on continuous worlds alone.
CONTINUOUS = (
    *("truth", "on", "full_state", "steps", "expert_budget", "tolerance", "initial", "no_probe"),
    *("start_share", "stop_share", "drop_failed", "ppo", "clone_steps", "carry"),
)
#: How it makes demonstrations where none are given.
DEMONSTRATORS = ("paths", "heldout", "expert_delta", "noise", "contaminated", "deterministic")
#: What it takes on any world, and a user's file has entries for.
EVERYWHERE = (
    *("constraint_class", "method", "player", "iterations", "epsilon", "buffer", "anneal"),
    *("world", "horizon", "task"),
)
#: What it takes where it plans on a map.
MAPS = ("slip", "reward", "experts", "unrestricted", "solver", "temperature")


def refuse_continuous(options: Namespace) -> None:
    why = f"is for continuous worlds; {options.world} is planned, not trained"
    refuse(options, CONTINUOUS, why)


def refuse(options: Namespace, names: tuple[str, ...], why: str) -> None:
    """An option that would have no effect is an error."""
    for name in names:
        if getattr(options, name) != options.parser.get_default(name):
            shown = "class" if name == "constraint_class" else name.replace("_", "-")
            raise InvalidInput(f"--{shown} {why}: leave it out")


def one_of(option: str, value: str | None, allowed: tuple[str, ...]) -> Any:
    """What was given, if it is possible on a finite world; by default the first."""
    if value is not None and value not in allowed:
        raise InvalidInput(f"{option} {value!r}: on a finite world it is {' or '.join(allowed)}")
    return value or allowed[0]


def chosen(options: Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    """The options that were given."""
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


def require_workers(workers: int) -> None:
    if workers < 1:
        raise InvalidInput(f"--workers must be at least 1, got {workers}")


def free_name(base: Path) -> Path:
    """The first of base, base-2, base-3, ... that is not there."""
    path, number = base, 1
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path
