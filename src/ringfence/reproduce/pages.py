"""table.md and table.json of a variant or an experiment, from what its file says is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ringfence.disk import write_file, write_json
from ringfence.reproduce import analyses
from ringfence.reproduce.experiment import Shown
from ringfence.reproduce.rows import Found, Row, Rows, markdown
from ringfence.reproduce.study import Study


def write_page(
    study: Study,
    shown: Sequence[Shown],
    folder: Path,
    heading: Sequence[str],
    rows_of: Callable[[str], Callable[[Study], Found]] = analyses.rows_of,
) -> None:
    """heading: the title, and paragraphs under it that may name facts of the tables."""
    found: dict[tuple[str, ...], Found] = {}
    for entry in shown:
        if _key(entry) not in found:
            about = [v for v in study.variants if entry.kind in ("", v.kind)]
            of_these = replace(study, variants=tuple(about), options=entry.options)
            found[_key(entry)] = rows_of(entry.rows)(of_these)
    facts: dict[str, Any] = {}
    for each in found.values():
        facts = {**each.facts, **facts}
    title, *paragraphs = heading
    parts = [f"# {title}", *(text.strip().format(**facts) for text in paragraphs if text)]
    for entry in shown:
        parts += section(entry, found[_key(entry)])
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / "table.md", ("\n\n".join(parts) + "\n").encode())
    rows: Rows = []
    for (name, *_), each in found.items():
        rows += [{"table": name, **row} for row in each.rows]
        rows += [{"table": name, "facts": True, **each.facts}] if each.facts else []
    write_json(folder / "table.json", rows)


def _key(entry: Shown) -> tuple[str, ...]:
    """Tables of the same rows are made once."""
    return entry.rows, entry.kind, json.dumps(entry.options, sort_keys=True)


def section(entry: Shown, found: Found) -> list[str]:
    """A table's title, text and rows; nothing of one without rows."""
    if not found.rows:
        return []
    texts = [f"## {entry.title}"] if entry.title else []
    texts += [entry.text.strip().format(**found.facts)] if entry.text else []
    return [*texts, markdown(entry.cells, fitting(found.rows, entry.where))]


def fitting(rows: Rows, where: Mapping[str, Any]) -> Rows:
    """The rows with these values; a list allows each of its own. A row's status fits all."""

    def fits(row: Row) -> bool:
        return all(
            row.get(key) in (value if isinstance(value, list) else [value])
            for key, value in where.items()
        )

    return [row for row in rows if fits(row)]
