"""HTML and SVG as text that is escaped by construction, the few elements that pages repeat, and the
document around them: everything in it, nothing loaded from anywhere.

`tag` escapes every child and attribute that is not already markup, so a task named
"<script>" can only ever be shown, never run.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

from ringfence.report.text import figure_text

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


def polyline(points: Iterable[Sequence[float]], closed: bool = False) -> str:
    """The `d` of a path through points (x, y)."""
    return "M" + "L".join(f"{short(x)} {short(y)}" for x, y in points) + ("Z" if closed else "")


def data_block(name: str, document: Any) -> Markup:
    """Data for the page's script; "<" is escaped, so that nothing in it can end the block."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return Markup(f'<script type="application/json" id="{name}">{text}</script>')


def number(value: float | None, digits: int = 3) -> Markup:
    """A number for reading, with the exact one beside it for tools."""
    if value is None:
        return tag("span", figure_text(None), class_="none", title="not known")
    return tag("data", figure_text(value, digits), value=repr(value))


# What pages repeat ------------------------------------------------------------------------------


def titled(title: str, *children: Child, name: str) -> Markup:
    """A section of the page."""
    return tag("section", tag("h2", title), *children, id=name)


def muted(text: str) -> Markup:
    return tag("p", text, class_="muted")


def tiles(items: Sequence[tuple[str, str]]) -> Markup:
    """Large figures, each with what it means."""
    cards = [tag("li", tag("b", big), tag("span", small), class_="card") for big, small in items]
    return tag("ul", cards, class_="tiles")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Child]],
    attributes: Sequence[Mapping[str, object]] = (),
    text: Sequence[int] = (),
) -> Markup:
    """A table that scrolls where it is too wide; `text` are the columns that hold words."""

    def kind(n: int) -> str | None:
        return "text" if n in text else None

    head = tag("tr", [tag("th", c, scope="col", class_=kind(n)) for n, c in enumerate(columns)])
    body = [
        tag(
            "tr",
            [tag("td", cell, class_=kind(n)) for n, cell in enumerate(row)],
            **(attributes[at] if attributes else {}),
        )
        for at, row in enumerate(rows)
    ]
    return tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="scroll")


def folded(title: str, *children: Child) -> Markup:
    return tag("details", tag("summary", title), *children)


# The document ------------------------------------------------------------------------------------

#: Nothing may be loaded from anywhere, whatever the page holds.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def document(title: str, body: Sequence[Child], explored: bool = False) -> str:
    """The whole page; with an explorer on it, its script comes along."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("title", title),
        tag("style", static("page.css")),
    )
    script = tag("script", static("explorer.js")) if explored else None
    content = tag("body", static("drawings.svg"), tag("main", body), script)
    return "<!doctype html>\n" + tag("html", head, content, lang="en")


def static(name: str) -> Markup:
    """A file of the package, as it stands."""
    folder = resources.files("ringfence.report").joinpath("static")
    return Markup(folder.joinpath(name).read_text(encoding="utf-8"))
