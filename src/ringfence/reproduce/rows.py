"""Tables of results: rows are flat objects, which table.json holds and table.md shows.

A row may have a `status` ("not run") in the place of its figures. Where it has a figure's standard
error, that is under the figure's name and "_se". The row of a mean has the seed "mean".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Row = dict[str, Any]
Rows = list[Row]

NOT_RUN = "not run"
MEAN = "mean"


@dataclass(frozen=True)
class Column:
    """key: of a row, or a template such as "{low:.2f} to {high:.2f}"; form: as in format()."""

    key: str
    name: str
    form: str = ""


@dataclass(frozen=True)
class Found:
    """What a table's function found: its rows, and facts that the text above them can name."""

    rows: Rows
    facts: Mapping[str, Any] = field(default_factory=dict)


def markdown(columns: Sequence[Column], rows: Iterable[Row]) -> str:
    """A table in Markdown; where it has seeds, the first cell of a mean is bold."""
    lines = [[column.name for column in columns], ["---"] * len(columns)]
    seeds = any(column.key == "seed" for column in columns)
    for row in rows:
        cells = [cell(row, column).replace("|", "\\|") for column in columns]
        if seeds and row.get("seed") == MEAN:
            cells[0] = f"**{cells[0]}**"
        lines.append(cells)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(row: Row, column: Column) -> str:
    """A figure with its error. Without one: the row's status, "-" if unknown, else nothing."""
    missing = str(row.get("status", ""))
    if "{" in column.key:
        try:
            return column.key.format(**row)
        except KeyError:
            return missing
        except TypeError:  # of what is unknown
            return "-"
    value = row.get(column.key, missing)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    error = row.get(f"{column.key}_se")
    text = format(value, column.form)
    return text if error is None else f"{text} ± {error:{column.form}}"


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean over seeds; None where there is one seed."""
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def mean_of(rows: Sequence[Row]) -> Row:
    """Means of all figures with their errors, of booleans how many are true.

    None where a row does not know its figure; texts, and what only some rows have, are left out.
    """
    mean: Row = {}
    for key in rows[0]:
        values = [row.get(key) for row in rows]
        if all(isinstance(value, bool) for value in values):
            mean[key] = f"{sum(map(bool, values))} of {len(values)}"
        elif all(isinstance(value, float | int | None) for value in values):
            known = [float(value) for value in values if value is not None]
            whole = len(known) == len(values)
            mean[key] = float(np.mean(known)) if whole else None
            error = standard_error(known) if whole else None
            mean |= {} if error is None else {f"{key}_se": error}
    return mean


def with_means(rows: Sequence[Row], by: Sequence[str]) -> Rows:
    """The rows, and after each group of equal `by` the means over those that were run."""
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    found: Rows = []
    for names, group in groups.items():
        played = [row for row in group if "status" not in row]
        mean = mean_of(played) if played else {"status": NOT_RUN}
        mean = {k: v for k, v in mean.items() if k.removesuffix("_se") not in (*by, "seed")}
        same = {
            **dict(zip(by, names, strict=True)),
            "seed": MEAN,
            "not_run": len(group) - len(played),
        }
        found += [*group, {**same, **mean}]
    return found


def flat(document: Mapping[str, Any], prefix: str = "", mark: str = "_") -> Row:
    """Nested objects with their keys put together by `mark`."""
    found: Row = {}
    for key, value in document.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}{mark}", mark)
        else:
            found[f"{prefix}{key}"] = value
    return found
