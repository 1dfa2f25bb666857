"""What both pages are made of: the document around them, tiles, tables, folded parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ringfence.report.markup import Child, Markup, figure_text, join, tag
from ringfence.report.script import JS
from ringfence.report.style import CSS

#: Nothing may be loaded from anywhere, whatever the page holds.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def document(title: str, body: Sequence[Child], data: Markup | None = None, code: str = JS) -> str:
    """The whole page; with `data` a script comes along, by default the map's."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("title", title),
        tag("style", Markup(CSS)),
    )
    script = None if data is None else join([data, tag("script", Markup(code))])
    return "<!doctype html>\n" + tag(
        "html", head, tag("body", tag("main", body), script), lang="en"
    )


def section(title: str, *children: Child, name: str) -> Markup:
    return tag("section", tag("h2", title), *children, id=name)


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


def versions_line(versions: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def plus_minus(mean: float | None, se: float | None) -> str:
    if mean is None:
        return figure_text(None)
    return figure_text(mean) + ("" if se is None else f" \u00b1 {figure_text(se, 2)}")
