"""Numbers and lists for reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

LISTED = 10  # more names than this are counted, not listed
DASH = "\u2013"


def figure_text(value: float | None, digits: int = 3) -> str:
    """A number; what can't be had is a dash."""
    if value is None:
        return DASH
    if abs(value) < 1e-9:
        return "0"
    if abs(value) >= 999.5:
        return f"{value:,.0f}".replace("-", "\u2212")
    text = f"{value:.{digits}g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        return f"{mantissa}e{int(exponent)}".replace("-", "\u2212")
    return text.replace("-", "\u2212")


def plus_minus(mean: float | None, se: float | None) -> str:
    if mean is None:
        return figure_text(None)
    return figure_text(mean) + ("" if se is None else f" \u00b1 {figure_text(se, 2)}")


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def some(names: Sequence[str], most: int = LISTED) -> str:
    """Names in a row; the rest of many is counted."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def cell_name(cell: Sequence[int]) -> str:
    return f"({','.join(str(int(n)) for n in cell)})"


def cell_names(region: NDArray[np.bool_]) -> str:
    return some([cell_name(cell) for cell in np.argwhere(region).tolist()])


def subscript(i: int) -> str:
    return "".join(chr(0x2080 + int(digit)) for digit in str(i))


def parameter_words(name: str) -> str:
    """A parameter's name for reading: "limit", or the coefficient of a feature."""
    return name if "limit" in name.split() else f"coefficient of {name}"


def versions_line(versions: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
