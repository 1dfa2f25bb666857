"""All that determines a run, as one tree of frozen tables and as config.toml.

A user's file and a run's config.toml are one format: the user's leaves out what shall have its
default, the run's has everything written out. `world`, `player` and `solver` are tagged by `kind`:
a kind is a module of its package, or anyone's "module:function", and its settings are the
dataclass that annotates the parameter of its `make`. Defaults are the dataclasses', then the
world's own, then what is given.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

import tomli_w
from pydantic import TypeAdapter, ValidationError

from ringfence import consent
from ringfence.disk import parse_toml, read_json, read_toml
from ringfence.errors import InvalidInput
from ringfence.players.player import ConstraintPlayer, Ground, usual_kind
from ringfence.runs.setting_ranges import check_ranges
from ringfence.solvers.solver import Solver
from ringfence.worlds.named import find
from ringfence.worlds.world import World

SCHEMA = 2
#: What determines a run: of a game, and of a single problem.
CONFIGS = ("config.toml", "solve.toml")

T = TypeVar("T")


@dataclass(frozen=True)
class Demos:
    """Where the demonstrations are.

    path: a folder that `ringfence demos make` wrote, an .npz file (docs/your-environment.md), a
    Minari folder or id; paths: the same by task, in the place of path; heldout: the share of each
    task's episodes, its last ones, that only selection sees (a folder of `demos make` has its own
    split); content_hash: in a run, of its copy of the demonstrations; experts: learn from the
    trajectories ("sampled"), or from the exact occupancies of the world's own experts, where its
    truth is known; drop_failed: leave out demonstrations, and show the constraint player no
    learners' episodes, that failed at the task, told by their returns.
    """

    path: str = "demos"
    paths: dict[str, str] = field(default_factory=dict)
    heldout: float = 0.3
    content_hash: str = ""
    experts: Literal["sampled", "exact"] = "sampled"
    drop_failed: bool = False

    def __post_init__(self) -> None:
        require("demos", "heldout", 0 < self.heldout < 1, self.heldout, "a share between 0 and 1")


@dataclass(frozen=True)
class Game:
    """What is learned, and how long the game lasts.

    method: Algorithm 2 ("icl", on one task) or 3 ("mt-icl", on several); constraint: the class:
    "table", "linear", "mlp" or inequalities with ? for what is learned; on: the features that
    linear and mlp use (empty: all); tasks: names of those that are played (empty: all);
    iterations: so many, unless the game ends before (in mt-icl one more trains on learners who
    break the limit of what is handed back); extra: at most so many more, while every constraint
    leaves learners unexplained that earn more than the demonstrators, and until one repeats the one
    before; epsilon: the game ends when no constraint has a payoff per step above it
    (below 0: never); buffer: what a learner of icl may cost beyond its expert in the first
    iteration; anneal: by how much the buffer shrinks from one iteration to the next; stop_share: of
    the experts' reward at which a training within its limit may stop early (0: never); raw_in: what
    an inequality's or a region's raw value is measured in: the features' own units, or the
    demonstrated range of what is not learned in it ("range"), so that units don't matter; there
    cells whose size nobody gave are not of round sizes either; policies: one for each task, or
    "one" for all of them, where a task's goal stands in the observation.
    """

    method: Literal["mt-icl", "icl"] = "mt-icl"
    constraint: str = "table"
    on: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    iterations: int = 5
    extra: int = 5
    epsilon: float = 1e-6
    buffer: float = 0.0
    anneal: float = 0.0
    stop_share: float = 0.0
    raw_in: Literal["features", "range"] = "features"
    policies: Literal["each", "one"] = "each"

    def __post_init__(self) -> None:
        require("game", "iterations", self.iterations >= 1, self.iterations, "at least 1")
        for name in ("extra", "buffer", "anneal", "stop_share"):
            value = getattr(self, name)
            require("game", name, value >= 0, value, "at least 0")


@dataclass(frozen=True)
class Opening:
    """What happens before the game.

    kind: "clone" imitates the demonstrations, and solvers that learn begin there ("none": they
    begin from nothing); steps, batch, learning_rate: of the imitation; log_std: of the clone's
    actions (None: the demonstrator's own noise, within bounds); carry: what a solve takes over from
    the iteration before: nothing, the critics (the paper's), or the policy with all that belongs to
    it; initial: c_1 is the player's answer to the clone's episodes ("clone"), to an unconstrained
    learner's ("free"), or its own ("none"; None: as kind); probe: solve without a constraint first,
    and stop there if that earns no more than the demonstrators (None: where kind is "clone").
    """

    kind: Literal["none", "clone"] = "none"
    steps: int = 5_000
    batch: int = 128
    learning_rate: float = 1e-3
    log_std: float | None = None
    carry: Literal["nothing", "critics", "policy"] = "policy"
    initial: Literal["none", "clone", "free"] | None = None
    probe: bool | None = None

    def __post_init__(self) -> None:
        require("opening", "steps", self.steps >= 1, self.steps, 'at least 1, or kind = "none"')
        require("opening", "batch", self.batch >= 1, self.batch, "at least 1")
        rate = self.learning_rate
        require("opening", "learning_rate", rate > 0, rate, "above 0")
        if self.initial == "clone" and self.kind != "clone":
            raise InvalidInput('[opening] initial = "clone" needs kind = "clone"; else use "free"')

    @property
    def first(self) -> str:
        """What c_1 answers to."""
        return self.initial or self.kind

    @property
    def probes(self) -> bool:
        return self.kind == "clone" if self.probe is None else self.probe


@dataclass(frozen=True)
class Analysis:
    """What is found out afterwards.

    resamples: of the bootstrap behind intervals (0: none). Of evidence on continuous worlds: slack:
    the share of the best return that demonstrators may have missed; episodes: fresh ones of each
    policy that may be a witness; narrowing: trainings, at most, that look for policies which do
    with fewer cells; cells: what is labelled, as "table(x by 0.1, y by 0.1)" (empty: the class's
    own cells, or cells of its features).
    """

    resamples: int = 200
    slack: float = 0.05
    episodes: int = 50
    narrowing: int = 0
    cells: str = ""

    def __post_init__(self) -> None:
        require("analysis", "resamples", self.resamples >= 0, self.resamples, "at least 0")
        require("analysis", "slack", 0 <= self.slack < 1, self.slack, "at least 0 and below 1")
        require("analysis", "episodes", self.episodes >= 2, self.episodes, "at least 2")
        require("analysis", "narrowing", self.narrowing >= 0, self.narrowing, "at least 0")


@dataclass(frozen=True)
class Engine:
    """What a solve asks of the machines of a cluster (--on); no result depends on it.

    cores: of a node; a node solves as many at once as it has room for. Below 1: more at once.
    """

    cores: float = 1.0

    def __post_init__(self) -> None:
        require("engine", "cores", self.cores > 0, self.cores, "above 0")


@dataclass(frozen=True)
class Config:
    """All that determines a run's result. world, player, solver: the settings of their kinds."""

    command: str
    seed: int
    world: Any
    demos: Demos
    game: Game
    player: Any
    opening: Opening
    solver: Any
    analysis: Analysis
    engine: Engine = field(default_factory=Engine)


FIXED: dict[str, type] = {
    "demos": Demos,
    "game": Game,
    "opening": Opening,
    "analysis": Analysis,
    "engine": Engine,
}
#: Tables that are tagged by kind: their package, and the kind where nobody says one.
TAGGED = {
    "world": ("worlds", None),
    "player": ("players", "regression"),
    "solver": ("solvers", "soft"),
}
TABLES = tuple(f.name for f in fields(Config) if f.name not in ("command", "seed"))


def require(table: str, key: str, holds: bool, value: Any, allowed: str) -> None:
    if not holds:
        raise InvalidInput(f"[{table}] {key}: {value!r} is not {allowed}")


# Kinds ----------------------------------------------------------------------------------------


def maker(package: str, kind: Any) -> Callable[..., Any]:
    """The `make` of a kind: of our own module, or anyone's "module:function"."""
    if not isinstance(kind, str):
        raise InvalidInput(f"[{package[:-1]}] kind: {kind!r} is not the name of a kind")
    if ":" in kind:
        return find(kind)
    if kind not in kinds(package):
        raise InvalidInput(
            f"[{package[:-1]}] kind: {kind!r} is not one of {', '.join(kinds(package))}, or "
            '"module:function" of your own'
        )
    module = import_module(f"ringfence.{package}.{kind.replace('-', '_')}")
    return module.make  # type: ignore[no-any-return]


@cache
def kinds(package: str) -> tuple[str, ...]:
    """The kinds that the package has: its modules with a function `make`."""
    found = []
    for file in files(f"ringfence.{package}").iterdir():
        if file.name.endswith(".py") and re.search(r"^def make\(", file.read_text(), re.M):
            found.append(file.name.removesuffix(".py").replace("_", "-"))
    return tuple(sorted(found))


def settings_of(make: Callable[..., Any]) -> type[Any]:
    """The dataclass that annotates the first parameter of a kind's `make`."""
    hints = [hint for name, hint in get_type_hints(make).items() if name != "return"]
    if not hints or not is_dataclass(hints[0]):
        raise InvalidInput(
            f"{make.__module__}:{make.__name__}: annotate its first parameter with the dataclass "
            "of its settings"
        )
    return hints[0]  # type: ignore[return-value]


def make_world(settings: Any) -> World:
    return maker("worlds", settings.kind)(settings)  # type: ignore[no-any-return]


def make_solver(settings: Any) -> Solver:
    return maker("solvers", settings.kind)(settings)  # type: ignore[no-any-return]


def make_player(settings: Any, ground: Ground) -> ConstraintPlayer:
    return maker("players", settings.kind)(settings, ground)  # type: ignore[no-any-return]


# From documents to configurations --------------------------------------------------------------


def configure(
    document: Mapping[str, Any], where: str = "configuration", world: World | None = None
) -> Config:
    """The configuration that a document describes; what it leaves out has its default.

    world: where it is an object of Python's that no document can describe.
    """
    try:
        settings = tagged(where, "world", document.get("world", {}))
        given = {name: as_table(f"{where}: [{name}]", document.get(name, {})) for name in TABLES}
    except InvalidInput:
        # Without a world its defaults are not known: of the others, what can be judged as it is.
        sure = {n: table for n, table in document.items() if n not in TAGGED or n == "world"}
        complete(sure, where)
        raise
    defaults = (world or make_world(settings)).defaults(given)
    whole = {**document, "world": asdict(settings)}
    for name in TABLES:
        if name == "world":
            continue
        base = dict(defaults.get(name, {}))
        if name in TAGGED:
            own = base.get("kind", TAGGED[name][1])
            usual = usual_player(whole["game"]) if name == "player" else own
            kind = given[name].get("kind", base.get("kind", usual))
            # The world's defaults may be of another kind.
            base = {**(base if kind == own else {}), "kind": kind}
        whole[name] = merged(base, given[name])
    return complete(whole, where, settings)


def usual_player(game: Mapping[str, Any]) -> str:
    """The player of a game where nobody names one: one that its class has."""
    text, method = game.get("constraint", Game.constraint), game.get("method", Game.method)
    return usual_kind(str(text), multi_task=method == "mt-icl")


def complete(document: Mapping[str, Any], where: str, world: Any = None) -> Config:
    """A document in which the world's own defaults are written out already.

    Every mistake in it is told, a line each.
    """
    known = ("schema", "command", "seed", *TABLES)
    problems = [
        f"{where}: {key!r} is unknown; there are {', '.join(known)}"
        for key in document
        if key not in known
    ]

    def part(name: str) -> Any:
        try:
            if name == "world" and world is not None:
                return world
            if name in TAGGED:
                return tagged(where, name, document.get(name, {}))
            found: Any = build(f"{where}: [{name}]", document.get(name, {}), FIXED[name])
            check_ranges(f"{where}: [{name}]", name, found)
            return found
        except InvalidInput as problem:
            problems.append(str(problem))
            return None

    parts = {name: part(name) for name in TABLES}
    seed = document.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        problems.append(f"{where}: seed: {seed!r} is not a whole number of at least 0")
    if problems:
        raise InvalidInput("\n".join(problems))
    return Config(str(document.get("command", "")), seed, **parts)


def tagged(where: str, name: str, table: Any) -> Any:
    """The settings of a table that is tagged by its kind."""
    package, usual = TAGGED[name]
    table = as_table(f"{where}: [{name}]", table)
    if "kind" not in table and usual is None:
        raise InvalidInput(
            f"{where}: [{name}] kind is missing; there are {', '.join(kinds(package))}"
        )
    kind = table.get("kind", usual)
    try:
        settings = settings_of(maker(package, kind))
    except InvalidInput as problem:
        raise InvalidInput(f"{where}: {problem}") from None
    found = build(f"{where}: [{name}]", {**table, "kind": kind}, settings)
    check_ranges(f"{where}: [{name}]", name, found)
    return found


def build(where: str, table: Any, kind: type[T]) -> T:
    """A table as its dataclass; `where` begins the line of each mistake."""
    table = as_table(where, table)
    require_finite(where, table)
    try:
        adapter: TypeAdapter[T] = _adapter(kind)  # type: ignore[arg-type]
        found = adapter.validate_json(json.dumps(table), strict=True, extra="forbid")
        return found
    except ValidationError as problem:
        lines = [_mistake(where, error, kind) for error in problem.errors()]
        raise InvalidInput("\n".join(lines)) from None
    except InvalidInput as problem:  # a dataclass's own checks
        text = str(problem)
        table_name = where.rpartition(": ")[2]
        text = text.removeprefix(f"{table_name} ")
        raise InvalidInput(f"{where} {text}") from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _mistake(where: str, error: Any, kind: type) -> str:
    """File, table, key, what was given, what is allowed: in one line."""
    place = ".".join(str(part) for part in error["loc"] if part != kind.__name__)
    given = json.dumps(error["input"]) if error["type"] != "missing" else ""
    if error["type"] == "unexpected_keyword_argument":
        names = ", ".join(_names(kind, error["loc"]))
        return f"{where} {place}: unknown; there are {names}"
    if error["type"] in ("missing", "missing_argument"):
        return f"{where} {place}: missing"
    allowed = error["msg"].replace("Input should be ", "")
    allowed = (
        re.sub(r"\ba valid (?=[aeiou])", "an ", allowed)
        .replace("a valid integer", "a whole number")
        .replace("valid ", "")
    )
    return f"{where} {place}: {given[:80]} is not {allowed}"


def _names(kind: Any, loc: Sequence[Any]) -> list[str]:
    """The entries that the table has in which `loc` stands."""
    for part in loc[:-1]:
        if isinstance(part, int) or not is_dataclass(kind):
            continue
        hint = get_type_hints(kind).get(part)
        inner = [h for h in (hint, *getattr(hint, "__args__", ())) if is_dataclass(h)]
        kind = inner[0] if inner else kind
    return [f.name for f in fields(kind)] if is_dataclass(kind) else []


def as_table(where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(
            f"{where} must be a table with entries, as in {{ name = .. }}, not {value!r:.80}"
        )
    return dict(value)


def require_finite(where: str, value: Any) -> None:
    """Nothing can be computed from nan or inf, alone or in a list or table."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(f"{where}: {value} is not finite; give a number, or leave it out")
    if isinstance(value, tuple | list):
        for inner in value:
            require_finite(where, inner)
    if isinstance(value, Mapping):
        for key, inner in value.items():
            require_finite(f"{where} {key}", inner)


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` on top of `base`, table by table."""
    result = dict(base)
    for key, value in over.items():
        inner = result.get(key)
        both = isinstance(inner, Mapping) and isinstance(value, Mapping)
        result[key] = merged(inner, value) if both else value  # type: ignore[arg-type]
    return result


def setting(text: str) -> dict[str, Any]:
    """What "table.key=value" says, the value as in TOML; a word needs no quotes."""
    path, equals, value = text.partition("=")
    keys = [key.strip() for key in path.split(".")]
    if not equals or len(keys) < 2 or keys[0] not in (*TABLES, "experts"):
        raise InvalidInput(
            f"--set {text}: write table.key=value, such as solver.env_steps=100000; tables are "
            f"{', '.join(TABLES)}"
        )
    try:
        document: Any = parse_toml(f"value = {value}")["value"]
    except ValueError:
        document = value.strip()
    for key in reversed(keys):
        document = {key: document}
    return dict(document)


# Files ----------------------------------------------------------------------------------------


def read_user(path: Path) -> dict[str, Any]:
    """The document of a user's file."""
    if not path.is_file():
        raise InvalidInput(f"{path}: no such file; give a TOML file that describes a world")
    document = read_toml(path, follow=True)
    if document.setdefault("schema", SCHEMA) != SCHEMA:
        raise InvalidInput(
            f"{path}: schema {document['schema']!r}, this version reads {SCHEMA}; leave it out, or "
            "use the version that the file was written for"
        )
    return document


def read_document(path: Path) -> dict[str, Any]:
    """The TOML of a run directory, of this version's schema, if its code may run."""
    document = _read_run(path)
    consent.require(document, path.parent)
    return document


def agree(run: Path, trust: bool, question: Callable[[str], str] | None = None) -> None:
    """Let a run's code be called from now on, if the user agrees (`consent.ask`)."""
    for path in (run / name for name in CONFIGS):
        if path.is_file():
            consent.ask(_read_run(path), run, trust, question)


def _read_run(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InvalidInput(
            f"{path.parent}: not a run directory, it has no {path.name}; start one with "
            "'ringfence learn --out DIR'"
        )
    document = read_toml(path)
    if document.get("schema") != SCHEMA:
        raise InvalidInput(
            f"{path}: schema {document.get('schema')!r}, written by ringfence "
            f"{written_by(path.parent)}; this is {version('ringfence')}, which reads schema "
            f"{SCHEMA}: use the version that wrote it, or learn again; its constraint still loads"
        )
    return document


def written_by(run: Path) -> str:
    """The version that wrote a run, as far as it says so."""
    try:
        return str(read_json(run / "summary.json")["versions"]["ringfence"])
    except (InvalidInput, KeyError, TypeError):
        return "of before 0.2"


def read(path: Path) -> Config:
    """A run's configuration."""
    return complete(read_document(path), str(path))


def to_toml(config: Any) -> str:
    """A frozen tree with every default written out; None is written by leaving the entry out."""
    document = {"schema": SCHEMA, **_plain(asdict(config))}
    require_finite("configuration", document)
    return tomli_w.dumps(document)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value


def world_table(text: str, **settings: Any) -> dict[str, Any]:
    """The [world] that a word of the command line means: "maze", a map's path, "ant", "ant-bullet",
    "ant-maze" or "ant-maze:FILE", "gym:ID", "module:function"; settings: of the world, if given."""
    given = {name: value for name, value in settings.items() if value is not None}
    kind, colon, rest = text.partition(":")
    if kind == "ant-maze":
        from ringfence.worlds.ant_maze import ant_maze_config

        return ant_maze_config(text, **given)
    if kind == "gym" and colon:
        return {"kind": "gym", "env": rest, **given}
    if text in kinds("worlds"):
        return {"kind": text, **given}
    if colon and not Path(text).exists():
        return {"kind": text, **given}
    from ringfence.worlds.grid import map_config

    return map_config(text, **given)
