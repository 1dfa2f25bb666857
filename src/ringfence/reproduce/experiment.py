"""An experiment as data: what is played, in which variants, over which seeds, and how it is shown.

    about = "one line for the list of experiments"
    kind = "game"                 # what a variant is for each seed; left out: nothing is played
    seeds = 3
    default = ["plain"]           # the variants that are played where none is named (else all)

    [base]                        # tables of a run's config.toml, for all variants
    world.kind = "ant"

    [experts.slow]                # trainings that demonstrate, of the form of variants
    [variants.plain]
    [variants.other]
    like = "plain"                # or "experiment/variant", of the experiments that are built in
    reason = "what was measured"
    solver.margin = 0.8

    [[each]]                      # tables of each variant's page; [[table]]: of the experiment's
    rows = "iterates"             # the function that makes them (`analyses.py`)
    title = "..."
    columns = [["constraint_error", "error", ".4f"]]  # key, heading, form; or a name in [columns]

    [[figure]]
    draw = "curves"
    file = "curves.png"

`shown_like` takes tables and figures over from another experiment. Beside the tables of config.toml
a variant has `demonstrations` (how they are made), `training` (a solve on its own) and `transfer`
(what is done with a game's policies).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from ringfence.errors import InvalidInput
from ringfence.reproduce.rows import Column, flat

Settings = dict[str, Any]

CONFIG = ("world", "demos", "game", "player", "opening", "solver", "selection", "analysis")
TABLES = (*CONFIG, "demonstrations", "training", "transfer")
#: The tables that no config.toml has: their keys, with the types that these take.
MAKING: dict[str, dict[str, tuple[type, ...]]] = {
    "demonstrations": {
        "expert": (str,),
        "path": (str,),
        "noise": (float, int),
        "paths": (int,),
        "heldout": (int,),
        "keep_saturated": (float, int),
    },
    "training": {
        "constraint": (str,),
        "delta": (float, int),
        "after": (str,),
        "policy": (str,),
        "starts": (str,),
        "start_episodes": (int,),
        "judged_under": (list,),
    },
    "transfer": {"clearance": (float, int), "episodes": (int,)},
}
TOP: dict[str, type] = {
    "about": str, "title": str, "text": str, "kind": str, "seeds": int, "default": list,
    "base": dict, "experts": dict, "variants": dict, "each": list, "table": list, "figure": list,
    "columns": dict, "shown_like": str,
}  # fmt: skip
SHMAKING = {"rows", "title", "text", "columns", "where"}


@dataclass(frozen=True)
class Shown:
    """A table of a page: where its rows come from, which of them, and in which columns.

    options: what else its entry says, for the function that makes the rows.
    """

    rows: str
    title: str = ""
    text: str = ""
    columns: tuple[Column, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Variant:
    """What is played for each seed: tables of settings, with what the base and `like` say."""

    name: str
    settings: Settings
    seeds: int
    reason: str = ""
    part: str = ""

    def get(self, table: str) -> Settings:
        return dict(self.settings.get(table, {}))


@dataclass(frozen=True)
class Experiment:
    """A file of experiments/, or a user's."""

    name: str
    about: str
    title: str
    text: str
    kind: str
    seeds: int
    default: tuple[str, ...]
    variants: Mapping[str, Variant]
    experts: Mapping[str, Variant]
    each: tuple[Shown, ...]
    tables: tuple[Shown, ...]
    figures: tuple[Mapping[str, Any], ...]
    sha256: str
    folder: Path


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


def parse(file: str, name: str, content: bytes, folder: Path) -> Experiment:
    """An experiment from its bytes; every mistake in it is a line of one error."""
    try:
        document = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InvalidInput(f"{file}: not valid TOML: {problem}") from None
    wrong = list(_mistakes(document))
    if not wrong:
        resolver = _Resolver(name, document, wrong)
        variants = {v: resolver.variant("variants", v) for v in document.get("variants", {})}
        experts = {e: resolver.variant("experts", e) for e in document.get("experts", {})}
        default = tuple(document.get("default", variants))
        wrong += [f"default: there is no variant {v!r}" for v in default if v not in variants]
        like = document.get("shown_like", "")
        if like and like not in names():
            wrong.append(f"shown_like: there is no experiment {like!r}")
    if wrong:
        raise InvalidInput("\n".join(f"{file}: {line}" for line in wrong))
    other = read(like) if like else None
    sets = document.get("columns", {})
    return Experiment(
        name=name,
        about=document["about"],
        title=document.get("title", document["about"]),
        text=document.get("text", ""),
        kind=document.get("kind", ""),
        seeds=document.get("seeds", 1),
        default=default,
        variants=variants,
        experts=experts,
        each=(*(other.each if other else ()), *(_shown(e, sets) for e in document.get("each", []))),
        tables=(
            *(other.tables if other else ()),
            *(_shown(e, sets) for e in document.get("table", [])),
        ),
        figures=(*(other.figures if other else ()), *document.get("figure", [])),
        sha256=sha256(content).hexdigest(),
        folder=folder,
    )


def _shown(entry: Mapping[str, Any], sets: Mapping[str, Any]) -> Shown:
    known = {key: entry[key] for key in SHMAKING & set(entry)}
    columns = entry.get("columns", [])
    listed = sets[columns] if isinstance(columns, str) else columns
    known["columns"] = tuple(Column(*column) for column in listed)
    return Shown(**known, options={k: v for k, v in entry.items() if k not in SHMAKING})


class _Resolver:
    """Variants with what they are like; mistakes are added to `wrong`."""

    def __init__(self, name: str, document: Mapping[str, Any], wrong: list[str]) -> None:
        self.name, self.document, self.wrong = name, document, wrong

    def variant(self, group: str, name: str, after: tuple[str, ...] = ()) -> Variant:
        own = self.document[group][name]
        base = self.document.get("base", {})
        seeds, settings = self.document.get("seeds", 1), merged(tables_of(base))
        if "like" in base:
            settings = merged(self.like(f"[base]: {base['like']}", (), group).settings, settings)
        if "like" in own:
            like = self.like(own["like"], (*after, name), group)
            here = "/" not in own["like"]
            settings = like.settings if here else merged(like.settings, settings)
            seeds = like.seeds if here else seeds
        return Variant(
            name,
            merged(settings, tables_of(own)),
            own.get("seeds", seeds),
            own.get("reason", ""),
            own.get("part", name),
        )

    def like(self, text: str, after: tuple[str, ...], group: str) -> Variant:
        text = text.removeprefix("[base]: ")
        nothing = Variant(text, {}, 1)
        experiment, _, variant = text.rpartition("/")
        if experiment:
            found = read(experiment).variants if experiment in names() else {}
            if variant in found:
                return found[variant]
        elif variant in self.document[group]:
            if variant not in after:
                return self.variant(group, variant, after)
            self.wrong.append(f"[{group}.{variant}] is like itself")
            return nothing
        self.wrong.append(f"there is no variant {text!r} to be like")
        return nothing


def tables_of(entry: Mapping[str, Any]) -> Settings:
    return {name: entry[name] for name in TABLES if name in entry}


def merged(*tables: Mapping[str, Any]) -> Settings:
    """Tables of tables, in which what is said later goes before."""
    found: Settings = {}
    for table in tables:
        for key, value in table.items():
            inner = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
            found[key] = merged(found[key], value) if inner else value
    return found


def _mistakes(document: Mapping[str, Any]) -> list[str]:
    """What is wrong with the form of a file; settings of runs are checked where they are made."""
    wrong = [] if "about" in document else ["about is missing: say in a line what it is"]
    for key, value in document.items():
        if key not in TOP:
            wrong.append(f"no entry {key!r} is known here: {', '.join(TOP)}")
        elif not isinstance(value, TOP[key]):
            wrong.append(f"{key} must be of type {TOP[key].__name__}, got {value!r}")
    if wrong:
        return wrong
    if document.get("seeds", 1) < 1:
        wrong.append(f"seeds must be at least 1, got {document['seeds']}")
    entries = {"[base]": document.get("base", {})}
    for group in ("variants", "experts"):
        entries |= {f"[{group}.{name}]": e for name, e in document.get(group, {}).items()}
    for where, entry in entries.items():
        wrong += [f"{where} {line}" for line in _entry_mistakes(entry)]
    for key in ("each", "table"):
        for entry in document.get(key, []):
            if not isinstance(entry.get("rows"), str):
                wrong.append(f"[[{key}]] rows is missing: the name of what makes its rows")
            columns = entry.get("columns", [])
            if isinstance(columns, str) and columns not in document.get("columns", {}):
                wrong.append(f"[[{key}]] columns: there is no {columns!r} in [columns]")
    return wrong


def _entry_mistakes(entry: Any) -> list[str]:
    if not isinstance(entry, Mapping):
        return [f"must be a table, got {entry!r}"]
    wrong = []
    others = {"like": str, "reason": str, "seeds": int, "part": str}
    for key, value in entry.items():
        if key in TABLES:
            if not isinstance(value, Mapping):
                wrong.append(f"{key} must be a table, got {value!r}")
            elif key in MAKING:
                wrong += _making_mistakes(key, value)
        elif key not in others:
            wrong.append(f"no entry {key!r} is known here: {', '.join((*others, *TABLES))}")
        elif not isinstance(value, others[key]):
            wrong.append(f"{key} must be of type {others[key].__name__}, got {value!r}")
    return wrong


def _making_mistakes(table: str, entry: Mapping[str, Any]) -> list[str]:
    wrong = []
    for key, value in entry.items():
        types = MAKING[table].get(key)
        if types is None:
            wrong.append(f"{table}: no entry {key!r} is known here: {', '.join(MAKING[table])}")
        elif not isinstance(value, types) or isinstance(value, bool):
            wrong.append(f"{table}.{key} must be of type {types[0].__name__}, got {value!r}")
    return wrong


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
    for pattern in patterns or experiment.default:
        fitting = [v for name, v in experiment.variants.items() if fnmatchcase(name, pattern)]
        if not fitting:
            known = ", ".join(experiment.variants) or "none"
            raise InvalidInput(f"{experiment.name} has no variant {pattern!r}; it has: {known}")
        found += [v for v in fitting if v not in found]
    for name in only:
        if all(v.part != name for v in found):
            parts = ", ".join(dict.fromkeys(v.part for v in found))
            raise InvalidInput(f"{experiment.name} has no part {name!r}; its parts are: {parts}")
    found = [v for v in found if not only or v.part in only]
    if settings and not found:
        raise InvalidInput(f"{experiment.name} plays nothing, so --set has no effect")
    if settings:
        found = [changed(variant, settings) for variant in found]
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
    wrong = _entry_mistakes(tables)
    if wrong:
        raise InvalidInput("\n".join(f"--set: {line}" for line in wrong))
    plain = "".join(c if c.isalnum() or c in ".-" else "-" for c in name)
    return replace(variant, name=plain, settings=tables, reason="given on the command line")


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
