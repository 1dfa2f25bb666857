"""HTML and SVG as text that is escaped by construction.

`tag` escapes every child and attribute that is not already markup, so a task named
"<script>" can only ever be shown, never run.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import Any

#: Elements of HTML without an end tag.
VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Markup(str):
    """Text that is markup already: it came out of `tag`, not from a file."""

    __slots__ = ()


Child = str | int | float | None | Iterable["Child"]


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """An element. None and False attributes are left out, True ones have no value.

    Attribute names are Python's: `class_` is class, `data_i` is data-i.
    """
    head = name + "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{head}>")
    return Markup(f"<{head}>{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Markup:
    """Children one after the other, each escaped unless it is markup."""
    return Markup("".join(_child(child) for child in children))


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return str(child)
    if isinstance(child, str | int | float):
        return html.escape(str(child))
    return join(child)


def _attribute(key: str, value: object) -> str:
    key = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    if value is True:
        return f" {key}"
    return f' {key}="{html.escape(short(value) if isinstance(value, float) else str(value))}"'


def short(value: float) -> str:
    """A coordinate without needless digits."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def data_block(name: str, document: Any) -> Markup:
    """Data for the page's script; "<" is escaped, so that nothing in it can end the block."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return Markup(f'<script type="application/json" id="{name}">{text}</script>')


def figure_text(value: float | None, digits: int = 3) -> str:
    """A number for reading; what can't be had is a dash."""
    if value is None:
        return "\u2013"
    if abs(value) < 1e-9:
        return "0"
    if abs(value) >= 999.5:
        return f"{value:,.0f}".replace("-", "\u2212")
    text = f"{value:.{digits}g}"
    if "e" in text:
        mantissa, exponent = text.split("e")
        return f"{mantissa}e{int(exponent)}".replace("-", "\u2212")
    return text.replace("-", "\u2212")


def number(value: float | None, digits: int = 3) -> Markup:
    """A number for reading, with the exact one beside it for tools."""
    if value is None:
        return tag("span", figure_text(None), class_="none", title="not known")
    return tag("data", figure_text(value, digits), value=repr(value))
