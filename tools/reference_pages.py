"""docs/commands.md from the parser, docs/configuration.md from the dataclasses.

    python tools/reference_pages.py    writes both anew

`tests/test_reference_pages.py` compares them with what the code says now.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ringfence.cli.main import has_default, parser
from ringfence.experts import optimal, trained, walking
from ringfence.runs.config import (
    FIXED,
    TABLES,
    kinds,
    make_world,
    maker,
    settings_of,
    tagged,
    world_table,
)

DOCS = Path(__file__).parent.parent / "docs"
MADE = "<!-- made by tools/reference_pages.py; change the code, then run it -->\n"


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(*head: str) -> list[str]:
    return [row(*head), "|" + "---|" * len(head)]


# Commands ----------------------------------------------------------------------------------------

COMMANDS = """\
# Commands

Each command has `--help` with an example; `ringfence learn --world ant --help` also shows the
defaults of that world. An option that ends in `[table.key]` is an entry of the
[configuration](configuration.md); `--set table.key=value` says any other. Commands show progress on
a terminal and plain lines elsewhere. They exit with 0 when done, 2 on wrong use (one line says what
to do), 1 when a run failed, 130 when interrupted.
"""


def commands_page() -> str:
    every = list(commands(parser()))
    lines = [MADE, COMMANDS, *table("command", "what it does")]
    lines += [row(f"[`{one.prog}`](#{anchor(one.prog)})", about(one)) for one in every]
    for one in every:
        lines += ["", f"## {one.prog}", "", f"{about(one)}.", "", "```sh", example(one), "```", ""]
        lines += table("option", "default", "meaning")
        lines += [option(action) for action in one._actions if action.dest != "help"]
    return "\n".join(lines) + "\n"


def commands(one: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The commands below a parser, in their order."""
    for action in one._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                if inner.get_default("function") is not None:
                    yield inner
                else:
                    yield from commands(inner)


def anchor(title: str) -> str:
    return title.replace(" ", "-")


def about(one: argparse.ArgumentParser) -> str:
    return (one.description or "").rstrip(".")


def example(one: argparse.ArgumentParser) -> str:
    return (one.epilog or "").removeprefix("example: ").partition("\n")[0]


def option(action: argparse.Action) -> str:
    name = action.metavar or action.dest.upper()
    choices = "|".join(map(str, action.choices or ()))
    if not action.option_strings:
        said = f"`{choices or action.dest}`" + (" .." if action.nargs == "+" else "")
    elif action.nargs == 0:
        said = f"`{action.option_strings[0]}`"
    else:
        said = f"`{action.option_strings[0]} {choices or name}`"
    default = f"`{action.default}`" if has_default(action) else ""
    return row(said, "required" if action.required and action.option_strings else default,
               action.help or "")  # fmt: skip


# Configuration -----------------------------------------------------------------------------------

CONFIGURATION = """\
# Configuration

All that determines a result is one tree of tables. The same entries are written in three ways:

- in a file, `ringfence learn my.toml`: `[game]` and under it `iterations = 5`;
- on the command line: `--set game.iterations=5` (the value as in TOML; a word needs no quotes);
- in Python: `ringfence.learn(.., settings={"game": {"iterations": 5}})`.

Above the tables a file may have `seed` (0 by default; `--seed` wins) and `schema = 2`. A run writes
its own file, `config.toml`, with every default written out.

**Defaults** come in three steps: those below, then the world's own, then what you say. `ringfence
learn --world ant --help` shows the outcome for a world. **Mistakes** are one line each: file,
table, key, what was given, what is allowed. `[world]`, `[player]` and `[solver]` have a `kind`,
which decides what else they may hold; a kind may also be `"module:function"` of your own.
"""
DIFFERENT = """\
## Where a world's defaults differ

A map and tables have the defaults above (tables whose features name no cells: `game.constraint =
"linear"`). The other worlds differ in these entries. With several tasks, `game.method` is
`"mt-icl"` everywhere.
"""
EXPERTS = """\
## experts

How `ringfence demos make` makes demonstrations, with options (`--paths 20`) or `--set
experts.paths=20`. It is no table of a run: a run has the demonstrations themselves.
"""
#: Where each kind of world stands on the page, and what a world of it may be, for its defaults.
WORLDS: Mapping[str, Mapping[str, Any]] = {
    "grid": world_table("maze"),
    "tables": {},
    "gym": {"env": "Pendulum-v1", "full_state": True},
    "ant": {},
    "ant-bullet": {},
    "ant-maze": world_table("ant-maze"),
}
#: What runs write for tasks that only Python objects describe; nobody writes it.
UNWRITTEN = ("python",)


def configuration_page() -> str:
    lines = [MADE, CONFIGURATION, *section("world", {k: kind("worlds", k) for k in world_kinds()})]
    for name in ("demos", "game"):
        lines += one_table(f"## {name}", FIXED[name])
    lines += section("player", {k: kind("players", k) for k in kinds("players")})
    lines += one_table("## opening", FIXED["opening"])
    lines += section("solver", {k: kind("solvers", k) for k in kinds("solvers")})
    lines += one_table("## analysis", FIXED["analysis"])
    lines += one_table("## engine", FIXED["engine"])
    lines += [DIFFERENT, *different(), "", EXPERTS]
    lines += one_table("### on maps and tables", optimal.ExpertConfig)
    lines += one_table("### on ant-maze", walking.Config)
    lines += one_table("### on gym, ant and ant-bullet", trained.Config)
    return "\n".join(lines).rstrip("\n") + "\n"


def world_kinds() -> list[str]:
    """In the page's order, those that it doesn't know yet last."""
    known = [name for name in kinds("worlds") if name not in UNWRITTEN]
    return sorted(known, key=lambda name: [*WORLDS, name].index(name))


def kind(package: str, name: str) -> type[Any]:
    return settings_of(maker(package, name))


def section(name: str, settings: Mapping[str, type[Any]]) -> list[str]:
    lines = [f"## {name}", ""]
    for one, cls in settings.items():
        lines += one_table(f'### kind = "{one}"', cls)
    return lines


def one_table(title: str, cls: type[Any]) -> list[str]:
    """A table of the configuration: what it is, its entries, and the tables inside it."""
    head, meaning = meanings(cls)
    hints = get_type_hints(cls)
    shown = [f for f in fields(cls) if f.name != "kind" or f.name in meaning]
    lines = [title, "", *([f"{head}", ""] if head else [])]
    if shown:
        lines += table("key", "default", "value", "meaning")
        lines += [
            row(f"`{f.name}`", default(f), words(hints[f.name]), meaning.get(f.name, ""))
            for f in shown
        ]
        lines.append("")
    for f in shown:
        for inner in dataclasses_in(hints[f.name]):
            lines += one_table(f"Each of `{f.name}`:" if many(hints[f.name]) else f"`{f.name}`:",
                               inner)  # fmt: skip
    return lines


def meanings(cls: type[Any]) -> tuple[str, dict[str, str]]:
    """What a dataclass says of itself, and of each field: "name: meaning" in its docstring, or the
    comment in the field's line."""
    text = " ".join((cls.__doc__ or "").split()).replace("None: ", "left out: ")
    names = "|".join(f.name for f in fields(cls))
    parts = re.split(rf"(?:^|(?<=\s))((?:{names})(?:, (?:{names}))*): ", text)
    found = {}
    for said, meaning in zip(parts[1::2], parts[2::2], strict=True):
        for name in said.split(", "):
            found[name] = meaning.rstrip(" .;")
    for line in inspect.getsource(cls).splitlines():
        if match := re.match(r"    (\w+): .*?  # (.*)", line):
            found.setdefault(match[1], match[2].replace("None: ", "left out: "))
    return parts[0].strip(), found


def default(field: Field[Any]) -> str:
    if field.default is not MISSING:
        value = field.default
    elif field.default_factory is not MISSING:
        value = field.default_factory()
    else:
        return "required"
    if value is None:
        return "left out"
    return "as below" if is_dataclass(value) else f"`{json.dumps(value)}`"


WORDS = {int: "whole number", float: "number", bool: "true or false", str: "text"}


def words(hint: Any) -> str:
    """A type as people say it."""
    if hint in WORDS:
        return WORDS[hint]
    inner = [h for h in get_args(hint) if h not in (NoneType, Ellipsis)]
    if get_origin(hint) is Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in inner)
    if get_origin(hint) is tuple:
        return "list"
    if is_dataclass(hint) or get_origin(hint) is dict:
        return "table"
    return " or ".join(words(h) for h in inner)


def many(hint: Any) -> bool:
    return get_origin(hint) is tuple


def dataclasses_in(hint: Any) -> list[type[Any]]:
    return [h for h in (hint, *get_args(hint)) if is_dataclass(h) and isinstance(h, type)]


def different() -> list[str]:
    """Entries of a world's own defaults, a column for each."""
    shown = [name for name in WORLDS if name not in ("grid", "tables")]
    made = [
        make_world(tagged("page", "world", {**WORLDS[name], "kind": name})).defaults({})
        for name in shown
    ]
    flat = [
        {f"{t}.{key}": value for t, entries in tables.items() for key, value in entries.items()}
        for tables in made
    ]
    keys = sorted(
        dict.fromkeys(key for one in flat for key in one),
        key=lambda key: TABLES.index(key.partition(".")[0]),
    )
    lines = table("entry", *shown)
    for key in keys:
        lines.append(row(f"`{key}`", *(brief(one[key]) if key in one else "" for one in flat)))
    return lines


def brief(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"`{k} = {json.dumps(v)}`" for k, v in value.items())
    return f"`{json.dumps(value)}`"


PAGES = {"commands.md": commands_page, "configuration.md": configuration_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page())
