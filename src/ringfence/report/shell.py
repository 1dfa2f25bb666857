"""The document around a page: everything in it, nothing loaded from anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from ringfence.report.markup import Child, Markup, tag

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
