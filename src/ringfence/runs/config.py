"""What determines a run's result, as frozen dataclasses and as config.toml."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_type_hints

from ringfence.errors import InvalidInput

SCHEMA = 1


@dataclass(frozen=True)
class WorldConfig:
    """A grid world: its map, line by line, and its dynamics; or the same map for the Ant."""

    name: str
    map: tuple[str, ...]
    horizon: int
    slip: float = 0.0
    reward: Literal["goal", "exp-distance"] = "goal"
    simulator: Literal["grid", "ant"] = "grid"


@dataclass(frozen=True)
class DemosConfig:
    """Where the demonstrations came from; `content_hash` is that of the copy in the run.

    experts "sampled" learns from the trajectories, "exact" from the exact occupancies of the
    world's own experts (only where the truth is known).
    """

    content_hash: str
    experts: Literal["sampled", "exact"] = "sampled"


@dataclass(frozen=True)
class GameConfig:
    """Algorithm 2 (icl, on one task) or 3 (mt-icl), its players and how long it lasts."""

    method: Literal["mt-icl", "icl"] = "mt-icl"
    tasks: tuple[str, ...] = ()
    player: Literal["regression", "ftrl"] = "regression"
    constraint_class: Literal["table", "linear", "mlp"] = "table"
    restricted: bool = True
    iterations: int = 5
    epsilon: float = 1e-6
    buffer: float = 0.0
    anneal: float = 0.0


@dataclass(frozen=True)
class SolverConfig:
    """The policy player. Finite worlds: entropy-regularised, or the plain LP; the Ant's maze: the
    planner, with `episodes` from each start."""

    kind: Literal["soft", "lp", "planner"] = "soft"
    temperature: float = 0.05
    episodes: int = 10


@dataclass(frozen=True)
class NetworkConfig:
    """The fit of a network constraint (constraints/mlp_player.py); the paper's unless said."""

    hidden: tuple[int, ...] = (128, 128)
    learning_rate: float = 3e-4
    final_rate: float = 1.0
    steps: int = 5_000
    batch: int = 512
    penalty: float = 3.0
    tolerance: float = 0.0
    spread: float | None = None


@dataclass(frozen=True)
class RunConfig:
    """All that determines a run's result."""

    command: str
    seed: int
    world: WorldConfig
    demos: DemosConfig
    game: GameConfig
    solver: SolverConfig
    network: NetworkConfig | None = None  # for the class "mlp" only


def to_toml(config: RunConfig) -> str:
    """config.toml with every default written out."""
    lines = [
        f"schema = {SCHEMA}",
        f"command = {toml_value(config.command)}",
        f"seed = {config.seed}",
    ]
    for name in ("world", "demos", "game", "solver"):
        lines += section_lines(name, getattr(config, name))
    if config.network is not None:
        lines += section_lines("network", config.network)
    return "\n".join(lines) + "\n"


def section_lines(name: str, config: Any) -> list[str]:
    """One section with all of a dataclass's entries; None is written by leaving the entry out."""
    entries = {k: v for k, v in asdict(config).items() if v is not None}
    for key, value in entries.items():
        require_finite(f"[{name}] {key}", value)
    return ["", f"[{name}]", *(f"{k} = {toml_value(v)}" for k, v in entries.items())]


def require_finite(where: str, value: object) -> None:
    """Nothing can be computed from nan or inf, alone or in a list or table."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(f"{where}: {value} is not finite; give a number, or leave it out")
    if isinstance(value, tuple | list):
        for part in value:
            require_finite(where, part)
    if isinstance(value, dict):
        for key, part in value.items():
            require_finite(f"{where} {key}", part)


def toml_value(value: object) -> str:
    """A TOML value. JSON's strings, numbers and booleans are TOML's, too."""
    if isinstance(value, tuple | list):
        return "[\n" + "".join(f"  {toml_value(v)},\n" for v in value) + "]" if value else "[]"
    if isinstance(value, dict):
        entries = (f"{json.dumps(k)} = {inline(v)}" for k, v in value.items() if v is not None)
        return "{ " + ", ".join(entries) + " }" if value else "{}"
    return json.dumps(value, ensure_ascii=False)


def inline(value: object) -> str:
    """A value inside an inline table, which must stay on its line."""
    if isinstance(value, tuple | list):
        return "[" + ", ".join(inline(v) for v in value) + "]"
    return toml_value(value)


def read(path: Path) -> RunConfig:
    """A run's configuration; unknown, missing or ill-typed entries are named."""
    document = read_document(path)
    return RunConfig(
        command=scalar(path, document, "command", str),
        seed=seed_of(path, document),
        world=section(path, document, "world", WorldConfig),
        demos=section(path, document, "demos", DemosConfig),
        game=section(path, document, "game", GameConfig),
        solver=section(path, document, "solver", SolverConfig),
        network=section(path, document, "network", NetworkConfig)
        if "network" in document
        else None,
    )


def is_control(path: Path) -> bool:
    """Does this file describe a run on a continuous world (see control_config)?"""
    world = read_document(path).get("world", {})
    return isinstance(world, dict) and "kind" in world


def read_document(path: Path) -> dict[str, Any]:
    """The TOML of a run directory, of this version's schema."""
    if not path.is_file():
        raise InvalidInput(
            f"{path.parent}: not a run directory, it has no {path.name}; start one with "
            "'ringfence learn --out DIR'"
        )
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InvalidInput(f"{path}: not valid TOML: {problem}") from None
    if document.get("schema") != SCHEMA:
        raise InvalidInput(
            f"{path}: schema {document.get('schema')!r}, this version reads {SCHEMA}; "
            "use the version of ringfence that wrote it"
        )
    return document


T = TypeVar("T")


def section(path: Path, document: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """One section as its dataclass."""
    return build(f"{path}: [{name}]", document.get(name, {}), kind)


def build(where: str, table: Any, kind: type[T]) -> T:
    """A TOML table as a dataclass; `where` begins the message if it can't be one."""
    table = as_table(where, table)
    known = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    for key in table:
        if key not in known:
            raise InvalidInput(f"{where} has no entry {key!r}; it has {sorted(known)}")
    for f in fields(kind):  # type: ignore[arg-type]
        if f.name not in table and f.default is MISSING and f.default_factory is MISSING:
            raise InvalidInput(f"{where} needs an entry {f.name!r}")
    hints = get_type_hints(kind)
    return kind(**{key: _typed(f"{where} {key}", v, hints[key]) for key, v in table.items()})


def as_table(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidInput(
            f"{where} must be a section with entries, as in {{ name = .. }}, not {value!r}"
        )
    return value


def read_entries(where: str, entries: Sequence[str]) -> dict[str, Any]:
    """What NAME=VALUE says, each value as in TOML."""
    try:
        return tomllib.loads("\n".join(entries))
    except tomllib.TOMLDecodeError as problem:
        raise InvalidInput(
            f"{where}: {', '.join(entries)!r} is not NAME=VALUE, such as margin=0.3: {problem}"
        ) from None


def scalar(path: Path, document: Mapping[str, Any], key: str, kind: type[T]) -> T:
    if not isinstance(document.get(key), kind):
        raise InvalidInput(f"{path}: {key!r} is missing or not of type {kind.__name__}")
    return document[key]  # type: ignore[no-any-return]


def seed_of(path: Path, document: Mapping[str, Any]) -> int:
    seed = scalar(path, document, "seed", int)
    if isinstance(seed, bool) or seed < 0:
        raise InvalidInput(f"{path}: 'seed' is {seed!r}, not a whole number of at least 0")
    return seed


def _typed(where: str, value: Any, hint: Any) -> Any:
    choices = get_args(hint)
    require_finite(where, value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint in (int, float, str, bool):
        if type(value) is not hint:
            raise InvalidInput(f"{where}: {value!r} is not of type {hint.__name__}")
    elif hint in (tuple[str, ...], tuple[int, ...]):
        kind = choices[0]
        if not isinstance(value, list) or not all(type(v) is kind for v in value):
            what = "strings" if kind is str else "whole numbers"
            raise InvalidInput(f"{where}: must be a list of {what}")
        return tuple(value)
    elif hint == dict[str, Any]:
        if not isinstance(value, dict):
            raise InvalidInput(f"{where}: must be a table, such as {{ key = 1 }}")
    elif len(choices) == 2 and is_dataclass(choices[0]):
        if not isinstance(value, list):
            raise InvalidInput(f"{where}: must be a list of tables")
        kind = cast(type[Any], choices[0])
        return tuple(build(f"{where} {n}:", v, kind) for n, v in enumerate(value))
    elif len(choices) == 2 and choices[1] is type(None):
        return _typed(where, value, choices[0])
    elif value not in choices:
        raise InvalidInput(f"{where}: {value!r} is not one of {', '.join(map(repr, choices))}")
    return value
