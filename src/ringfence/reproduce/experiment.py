"""An experiment as data: what is played, in which variants, over which seeds, and how it is shown.

    about = "one line for the list of experiments"
    kind = "game"                 # what a variant is for each seed; left out: nothing is played
    seeds = 3
    first_seed = 100              # 0 if left out
    default = ["plain"]           # the variants that are played where none is named (else all)

    [base]                        # tables of a run's config.toml, for all variants
    world.kind = "ant"

    [experts.slow]                # trainings that demonstrate, of the form of variants
    [variants.plain]
    [variants.many]               # many-0.1 and many-0.2
    over = { "solver.margin" = [0.1, 0.2] }
    [variants.own]
    kind = "training"             # another than the file's; it takes nothing from [base]
    [variants.other]
    like = "plain"                # or "experiment/variant", of the experiments that are built in
    reason = "what was measured"
    solver.margin = 0.8

    [[each]]                      # tables of each variant's page; [[table]]: of the experiment's
    rows = "iterates"             # the function that makes them (`analyses.py`)
    title = "..."
    kind = "game"                 # of the variants that it is about, where they differ in kind
    columns = [["constraint_error", "error", ".4f"]]  # key, heading, form; or a name in [columns]

    [[figure]]
    draw = "curves"
    file = "curves.png"

`shown_like` takes tables and figures over from another experiment. Beside the tables of config.toml
a variant has `demonstrations` (how they are made), `training` (a solve on its own), `transfer`
(what is done with a game's policies) and `flights` (choices of reproduce/flight_study.py).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from ringfence.errors import InvalidInput
from ringfence.reproduce import analyses
from ringfence.reproduce.rows import Column, flat
from ringfence.runs.config import build, merged

Settings = dict[str, Any]

CONFIG = ("world", "demos", "game", "player", "opening", "solver", "analysis", "engine")
TABLES = (*CONFIG, "demonstrations", "training", "transfer", "flights")


def one_of(names: Mapping[str, Any]) -> Callable[[str], str]:
    def check(value: str) -> str:
        if value not in names:
            listed = ", ".join(names)
            raise PydanticCustomError("known", "one of {listed}", {"listed": listed})
        return value

    return check


@dataclass(frozen=True)
class Making:
    """Of demonstrations: by a training ("experiment/variant"), or those at a path of the file;
    env_steps, margin: of the training of each task's demonstrator, where a variant has its own (the
    less margin, the more of the budget is used); below: the share of the best return from their
    start that demonstrators who plan may lose."""

    expert: str = ""
    path: str = ""
    noise: float = 0.0
    paths: int = 0
    heldout: int = 0
    env_steps: int = 0
    margin: float = 0.0
    below: float = 0.0
    keep_saturated: float = 0.0


@dataclass(frozen=True)
class Training:
    """constraint: an inequality or "none"; after: the training that it goes on from; starts: that
    at whose states episodes begin; policy: "standing still", which is not trained; judged_under:
    constraints that it does not know; activation: what is counted of the constraint, where it is
    not its own cost; share_of: the training of whose cost delta is this share."""

    constraint: str = ""
    activation: Literal["", "steps", "amount"] = ""
    delta: float = 0.0
    share_of: str = ""
    share: float = 0.0
    after: str = ""
    policy: str = ""
    starts: str = ""
    start_episodes: int = 0
    judged_under: tuple[str, ...] = ()


@dataclass(frozen=True)
class Transfer:
    """goals: new ones, of which nobody demonstrated any."""

    clearance: float = 0.0
    episodes: int = 100
    goals: int = 0


@dataclass(frozen=True)
class Entry:
    """A variant as its file has it."""

    kind: Annotated[str, AfterValidator(one_of({"": "", **analyses.PLAYS}))] = ""
    like: str = ""
    reason: str = ""
    seeds: int | None = None
    part: str = ""
    over: dict[str, tuple[float, ...]] = field(default_factory=dict)
    reference: dict[str, float | str] = field(default_factory=dict)
    world: Settings = field(default_factory=dict)
    demos: Settings = field(default_factory=dict)
    game: Settings = field(default_factory=dict)
    player: Settings = field(default_factory=dict)
    opening: Settings = field(default_factory=dict)
    solver: Settings = field(default_factory=dict)
    analysis: Settings = field(default_factory=dict)
    engine: Settings = field(default_factory=dict)
    demonstrations: Making = field(default_factory=Making)
    training: Training = field(default_factory=Training)
    transfer: Transfer = field(default_factory=Transfer)
    flights: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Shown:
    """A table of a page: where its rows come from, which of them, and in which columns."""

    rows: Annotated[str, AfterValidator(one_of(analyses.ROWS))]
    title: str = ""
    text: str = ""
    columns: str | tuple[tuple[str, ...], ...] = ()
    where: Settings = field(default_factory=dict)
    options: Settings = field(default_factory=dict)
    kind: Annotated[str, AfterValidator(one_of({"": "", **analyses.PLAYS}))] = ""

    @property
    def cells(self) -> tuple[Column, ...]:
        return tuple(Column(*column) for column in self.columns)


@dataclass(frozen=True)
class Figure:
    draw: Annotated[str, AfterValidator(one_of(analyses.FIGURES))]
    file: str
    each: bool = False
    options: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class File:
    """All that a file may say."""

    about: str
    title: str = ""
    text: str = ""
    kind: Annotated[str, AfterValidator(one_of({"": "", **analyses.PLAYS}))] = ""
    seeds: int = 1
    first_seed: int = 0
    default: tuple[str, ...] = ()
    shown_like: str = ""
    columns: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    base: Entry = field(default_factory=Entry)
    experts: dict[str, Entry] = field(default_factory=dict)
    variants: dict[str, Entry] = field(default_factory=dict)
    each: tuple[Shown, ...] = ()
    table: tuple[Shown, ...] = ()
    figure: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class Variant:
    """What is played for each seed: tables of settings, with what the base and `like` say.

    reference: what others reached, for its table; kind: what plays it (analyses.PLAYS).
    """

    name: str
    settings: Settings
    seeds: int
    reason: str = ""
    part: str = ""
    first_seed: int = 0
    reference: Mapping[str, float | str] = field(default_factory=dict)
    kind: str = ""

    @property
    def numbers(self) -> range:
        """Its seeds."""
        return range(self.first_seed, self.first_seed + self.seeds)

    def get(self, table: str) -> Settings:
        return dict(self.settings.get(table, {}))


@dataclass(frozen=True)
class Experiment:
    """A file's content, resolved. folder: from where its paths are seen."""

    name: str
    file: File
    variants: Mapping[str, Variant]
    experts: Mapping[str, Variant]
    each: tuple[Shown, ...]
    tables: tuple[Shown, ...]
    figures: tuple[Figure, ...]
    sha256: str
    folder: Path

    @property
    def title(self) -> str:
        return self.file.title or self.file.about


def names() -> list[str]:
    """The experiments that are built in."""
    return sorted(p.name.removesuffix(".toml") for p in _folder().iterdir())


def read(name: str) -> Experiment:
    """The experiment of this name, or in this TOML file."""
    if name in names():
        return parse(f"{name}.toml", name, (_folder() / f"{name}.toml").read_bytes(), Path())
    path = Path(name)
    if path.suffix != ".toml":
        raise InvalidInput(f"there is no experiment {name!r}; there are: {', '.join(names())}")
    if not path.is_file():
        raise InvalidInput(f"{path}: no such file")
    return parse(str(path), path.stem, path.read_bytes(), path.parent)


def _folder() -> Any:
    return resources.files("ringfence") / "experiments"


def parse(where: str, name: str, content: bytes, folder: Path) -> Experiment:
    """An experiment from its bytes; every mistake in it is a line of one error."""
    try:
        document = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InvalidInput(f"{where}: not valid TOML: {problem}") from None
    file = build(where, document, File)
    resolver = Resolver(document, file)
    found = {
        group: {v.name: v for name in document.get(group, {}) for v in resolver.each(group, name)}
        for group in ("variants", "experts")
    }
    wrong = [*resolver.wrong]
    wrong += [f"default: no variant {v!r}" for v in file.default if v not in file.variants]
    wrong += [] if file.seeds > 0 else [f"seeds must be at least 1, got {file.seeds}"]
    for shown in (*file.each, *file.table):
        if isinstance(shown.columns, str) and shown.columns not in file.columns:
            wrong.append(f"columns: there is no {shown.columns!r} in [columns]")
    if file.shown_like and file.shown_like not in names():
        wrong.append(f"shown_like: there is no experiment {file.shown_like!r}")
    if wrong:
        raise InvalidInput("\n".join(f"{where}: {line}" for line in wrong))

    def with_columns(shown: Shown) -> Shown:
        named = isinstance(shown.columns, str)
        return replace(shown, columns=file.columns[str(shown.columns)]) if named else shown

    other = read(file.shown_like) if file.shown_like else None
    return Experiment(
        name,
        file,
        found["variants"],
        found["experts"],
        (*(other.each if other else ()), *map(with_columns, file.each)),
        (*(other.tables if other else ()), *map(with_columns, file.table)),
        (*(other.figures if other else ()), *file.figure),
        sha256(content).hexdigest(),
        folder,
    )


class Resolver:
    """Variants with what they are like; mistakes are added to `wrong`."""

    def __init__(self, document: Mapping[str, Any], file: File) -> None:
        self.document, self.file, self.wrong = document, file, list[str]()

    def each(self, group: str, name: str) -> list[Variant]:
        """The variant, or one for each value that it goes over."""
        variant, over = self.variant(group, name), self.document[group][name].get("over", {})
        return [
            replace(changed(variant, [f"{path}={value}"]), name=f"{name}-{value}", reason="")
            for path, values in over.items()
            for value in values
        ] or [variant]

    def variant(self, group: str, name: str, after: tuple[str, ...] = ()) -> Variant:
        own = self.document[group][name]
        base, kind = self.document.get("base", {}), own.get("kind", "")
        base = {} if kind else base
        seeds, settings = self.file.seeds, tables_of(base)
        if "like" in base:
            settings = merged(self.like(base["like"], group, ()).settings, settings)
        if "like" in own:
            like = self.like(own["like"], group, (*after, name))
            here = "/" not in own["like"]
            settings = like.settings if here else merged(like.settings, settings)
            seeds = like.seeds if here else seeds
            kind = kind or (like.kind if here else "")
        settings, reason = merged(settings, tables_of(own)), own.get("reason", "")
        part, first = own.get("part", name), self.file.first_seed
        seeds, reference = own.get("seeds", seeds), own.get("reference", {})
        kind = kind or self.file.kind
        return Variant(name, settings, seeds, reason, part, first, reference, kind)

    def like(self, text: str, group: str, after: tuple[str, ...]) -> Variant:
        experiment, _, variant = text.rpartition("/")
        if experiment:
            found = read(experiment).variants if experiment in names() else {}
            if variant in found:
                return found[variant]
        elif variant in self.document[group] and variant not in after:
            return self.variant(group, variant, after)
        why = "it is like itself" if variant in after else f"there is no variant {text!r}"
        self.wrong.append(f"like: {why}")
        return Variant(text, {}, 1)


def tables_of(entry: Mapping[str, Any]) -> Settings:
    return {name: entry[name] for name in TABLES if name in entry}


# Which variants, with which settings -----------------------------------------------------------


def chosen(
    experiment: Experiment,
    patterns: Sequence[str] = (),
    only: Sequence[str] = (),
    settings: Sequence[str] = (),
    seeds: int | None = None,
) -> list[Variant]:
    """The variants to play. patterns: their names, with * for any; only: these parts of them."""
    if seeds is not None and seeds < 1:
        raise InvalidInput(f"--seeds must be at least 1, got {seeds}")
    found: list[Variant] = []
    for pattern in patterns or experiment.file.default or experiment.variants:
        fitting = [v for name, v in experiment.variants.items() if fnmatchcase(name, pattern)]
        if not fitting:
            known = ", ".join(experiment.variants) or "none"
            raise InvalidInput(f"{experiment.name} has no variant {pattern!r}; it has: {known}")
        found += [v for v in fitting if v not in found]
    for name in only:
        if all(v.part != name for v in found):
            parts = ", ".join(dict.fromkeys(v.part for v in found)) or "none"
            raise InvalidInput(f"{experiment.name} has no part {name!r}; its parts are: {parts}")
    found = [v for v in found if not only or v.part in only]
    if settings and not found:
        raise InvalidInput(f"{experiment.name} plays nothing, so --set has no effect")
    found = [changed(variant, settings) if settings else variant for variant in found]
    return [v if seeds is None else replace(v, seeds=seeds) for v in found]


def changed(variant: Variant, settings: Sequence[str]) -> Variant:
    """The variant with other settings, which its name then says."""
    tables, name = variant.settings, variant.name
    for text in settings:
        path, equals, value = text.partition("=")
        table, dot, key = path.strip().partition(".")
        if not (equals and dot and key and table in TABLES):
            raise InvalidInput(
                f"--set {text}: give TABLE.KEY=VALUE with a table of {', '.join(TABLES)}"
            )
        tables = merged(tables, {table: {key: parsed(value.strip())}})
        name += f"-{key}-{value.strip()}"
    build("--set", tables, Entry)
    plain = "".join(c if c.isalnum() or c in ".-" else "-" for c in name)
    return replace(variant, name=plain, settings=tables, reason=f"with {', '.join(settings)}")


def parsed(text: str) -> Any:
    """A value as in TOML; what is none is a text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Where two settings differ, in words; "" if nowhere."""
    a, b = flat(was, mark="."), flat(now, mark=".")
    keys = dict.fromkeys((*a, *b))
    return ", ".join(f"{k}: {a.get(k)}, now {b.get(k)}" for k in keys if a.get(k) != b.get(k))
