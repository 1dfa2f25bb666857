"""A page as a test sees it, without a browser."""

from __future__ import annotations

from html.parser import HTMLParser

from ringfence.report.markup import VOID


class Page(HTMLParser):
    """A parsed page: its elements with their attributes, each within its ancestors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], tuple[int, ...]]] = []
        self.texts: dict[int, str] = {}
        self._open: list[int] = []
        self.feed(text)
        self.close()
        assert not self._open, "elements were left open"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), tuple(self._open)))
        if tag not in VOID:
            self._open.append(len(self.elements) - 1)

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self._open.pop()][0] == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        for n in self._open:
            self.texts[n] = self.texts.get(n, "") + data

    def find(self, tag: str = "", within: int | None = None, **attributes: str) -> list[int]:
        """Elements of a kind; attribute names are Python's, a class needs only be among them."""
        found = []
        for n, (name, attrs, above) in enumerate(self.elements):
            if tag not in ("", name) or (within is not None and within not in above):
                continue
            if all(
                value in (attrs.get(key.rstrip("_").replace("_", "-")) or "").split()
                if key == "class_"
                else attrs.get(key.rstrip("_").replace("_", "-")) == value
                for key, value in attributes.items()
            ):
                found.append(n)
        return found

    def text(self, tag: str, **attributes: str) -> str:
        """The words of the only such element."""
        (found,) = self.find(tag, **attributes)
        return self.texts.get(found, "")

    def values(self, row: int) -> dict[str, float | None]:
        """The exact figures of a table's row by column, None where a cell has a dash."""
        table = next(n for n in reversed(self.elements[row][2]) if self.elements[n][0] == "table")
        titles = [self.texts[n] for n in self.find("th", within=table)]
        found = [self.find("data", within=cell) for cell in self.find("td", within=row)]
        exact = [float(self.elements[n[0]][1]["value"] or "") if n else None for n in found]
        return dict(zip(titles, exact, strict=True))
