"""Line charts over iterations as inline SVG. Colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ringfence.report.markup import Markup, figure_text, short, tag

Values = Sequence[float | None]
WIDTH, HEIGHT = 360, 210
LEFT, RIGHT, TOP, BOTTOM = 46, 100, 14, 34
#: Labels at the right end are kept this far apart, so that none hides another.
LABEL_GAP = 14
MARKER = 3.6
#: Values that differ by less are the same but for rounding.
FLAT = 1e-9


@dataclass(frozen=True)
class Series:
    """One line: its mean, thin lines beside it (one per task) and an error band around it.

    `kind` is its class in the style sheet; markers and dashes tell lines apart without colour.
    """

    name: str
    kind: str
    values: Values
    marker: Literal["circle", "square", "diamond"] = "circle"
    dashed: bool = False
    thin: Sequence[Values] = ()
    error: Values = ()


@dataclass(frozen=True)
class Axis:
    """From a value to its height in the chart; with `floor` logarithmic, from the floor upwards."""

    low: float
    high: float
    ticks: tuple[float, ...]
    floor: float | None = None

    def __call__(self, value: float) -> float:
        place = self._scale(value)
        low, high = self._scale(self.low), self._scale(self.high)
        return HEIGHT - BOTTOM - (place - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def _scale(self, value: float) -> float:
        return value if self.floor is None else math.log10(max(value, self.floor))


def line_chart(
    name: str,
    caption: str,
    series: Sequence[Series],
    current: int,
    floor: float | None = None,
    whole: bool = False,
    zero: bool = True,
) -> Markup:
    """A figure: title, chart, caption. `current` is the iteration under the guide line.

    `floor` makes the axis logarithmic; `whole` makes it span [0, 1], for shares; `zero` makes it
    hold 0.
    """
    count = max(len(s.values) for s in series)
    places = [_place(n, count) for n in range(count)]
    axis = Axis(0, 1, (0, 0.25, 0.5, 0.75, 1)) if whole else _axis(series, floor, zero)
    guide = places[current - 1]
    svg = tag(
        "svg",
        [_grid(axis), _iterations(places)],
        tag(
            "line",
            class_="guide",
            x1=guide,
            x2=guide,
            y1=TOP,
            y2=HEIGHT - BOTTOM,
            data_x=" ".join(map(short, places)),
        ),
        [_drawn(s, axis, places) for s in series],
        _labels(series, axis),
        [_hit(n, count, series) for n in range(count)],
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"{name} per iteration. " + _in_words(series),
    )
    return tag("figure", tag("h3", name), svg, tag("figcaption", caption), class_="card chart")


def _place(n: int, count: int) -> float:
    """Where iteration n + 1 stands; a lone one in the middle."""
    span = WIDTH - LEFT - RIGHT
    return LEFT + (span / 2 if count == 1 else 8 + n * (span - 16) / (count - 1))


def _axis(series: Sequence[Series], floor: float | None, zero: bool = True) -> Axis:
    values = [v for s in series for line in (s.values, *s.thin) for v in line if v is not None]
    for s in series:
        for v, e in zip(s.values, s.error, strict=False):
            if v is not None and e is not None:
                values += [v - e, v + e]
    if floor is not None:
        top = max(1.0, *(math.ceil(math.log10(max(v, floor)) - 1e-9) for v in values), 0)
        exponents = range(math.floor(math.log10(floor)), int(top) + 1)
        step = math.ceil(len(exponents) / 5)
        ticks = tuple(10.0**e for e in exponents[::step])
        return Axis(ticks[0], max(10.0**top, ticks[-1]), ticks, floor)
    values += [0.0] if zero or not values else []
    low, high = min(values), max(values)
    ticks = nice_ticks(low, high if high - low > FLAT else low + 1)
    return Axis(ticks[0], ticks[-1], ticks)


def nice_ticks(low: float, high: float) -> tuple[float, ...]:
    """Three to six round numbers that span [low, high]."""
    step = 10 ** math.floor(math.log10((high - low) / 2))
    for factor in (1, 2, 2.5, 5, 10):
        first, last = math.floor(low / (step * factor)), math.ceil(high / (step * factor) - 1e-9)
        if last - first <= 5:
            break
    return tuple(n * step * factor for n in range(first, max(last, first + 1) + 1))


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """Numbers beside the ticks, with as many digits as tell them apart."""
    for digits in range(3, 12):
        texts = [figure_text(v, digits) for v in ticks]
        if len(set(texts)) == len(texts):
            break
    return texts


def _grid(axis: Axis) -> list[Markup]:
    right = WIDTH - RIGHT
    lines = [
        tag("line", class_="gridline", x1=LEFT, x2=right, y1=axis(v), y2=axis(v))
        for v in axis.ticks
    ]
    texts = [
        tag("text", words, class_="tick", x=LEFT - 7, y=axis(v) + 4, text_anchor="end")
        for v, words in zip(axis.ticks, tick_texts(axis.ticks), strict=True)
    ]
    return lines + texts


def _iterations(places: Sequence[float]) -> list[Markup]:
    """Numbers below the chart, thinned out where there are many."""
    step = math.ceil(len(places) / 10)
    shown = [n for n in range(len(places)) if n % step == 0]
    bottom = HEIGHT - BOTTOM + 16
    ticks = [
        tag("text", n + 1, class_="tick", x=places[n], y=bottom, text_anchor="middle")
        for n in shown
    ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [
        *ticks,
        tag("text", "iteration", class_="tick", x=middle, y=bottom + 14, text_anchor="middle"),
    ]


def _drawn(s: Series, axis: Axis, places: Sequence[float]) -> Markup:
    thin = [tag("path", class_="thin", d=_line(v, axis, places)) for v in s.thin]
    main = tag(
        "path",
        class_="main",
        d=_line(s.values, axis, places),
        stroke_dasharray="5 4" if s.dashed else None,
    )
    draw = MARKERS[s.marker]
    markers = [
        draw(places[n], axis(v), axis.floor is not None and v <= axis.floor)
        for n, v in enumerate(s.values)
        if v is not None
    ]
    return tag("g", _band(s, axis, places), thin, main, markers, class_=f"series {s.kind}")


def _line(values: Values, axis: Axis, places: Sequence[float]) -> str:
    """A path through the known values; unknown ones break it."""
    parts, pen_down = [], False
    for x, v in zip(places, values, strict=False):
        if v is not None:
            parts.append(f"{'L' if pen_down else 'M'}{short(x)} {short(axis(v))}")
        pen_down = v is not None
    return "".join(parts)


def _band(s: Series, axis: Axis, places: Sequence[float]) -> Markup | None:
    """Value +- error, as a closed shape."""
    points = [
        (x, v, e)
        for x, v, e in zip(places, s.values, s.error, strict=False)
        if v is not None and e is not None
    ]
    if not points:
        return None
    above = [f"{short(x)} {short(axis(v + e))}" for x, v, e in points]
    below = [f"{short(x)} {short(axis(v - e))}" for x, v, e in reversed(points)]
    return tag("path", class_="band", d="M" + "L".join(above + below) + "Z")


def _circle(x: float, y: float, hollow: bool) -> Markup:
    return tag("circle", class_=_dot(hollow), cx=x, cy=y, r=MARKER)


def _square(x: float, y: float, hollow: bool) -> Markup:
    side = 2 * MARKER - 0.8
    return tag("rect", class_=_dot(hollow), x=x - side / 2, y=y - side / 2, width=side, height=side)


def _diamond(x: float, y: float, hollow: bool) -> Markup:
    r = MARKER + 1
    points = ((x, y - r), (x + r, y), (x, y + r), (x - r, y))
    text = " ".join(f"{short(a)},{short(b)}" for a, b in points)
    return tag("polygon", class_=_dot(hollow), points=text)


def _dot(hollow: bool) -> str:
    return "dot hollow" if hollow else "dot"


MARKERS: dict[str, Callable[[float, float, bool], Markup]] = {
    "circle": _circle,
    "square": _square,
    "diamond": _diamond,
}


def _labels(series: Sequence[Series], axis: Axis) -> list[Markup]:
    """Each line's name and last value at its right end, pushed apart where they would meet."""
    wanted = []
    for s in series:
        known = [v for v in s.values if v is not None]
        if known:
            wanted.append((axis(known[-1]) + 4, f"{s.name} {figure_text(known[-1])}", s.kind))
    wanted.sort()
    heights = [y for y, _, _ in wanted]
    for n in range(1, len(heights)):
        heights[n] = max(heights[n], heights[n - 1] + LABEL_GAP)
    if heights:
        down = max(0.0, heights[-1] - (HEIGHT - BOTTOM + 4))
        heights = [y - down for y in heights]
    return [
        tag("text", text, class_=f"label {kind}", x=WIDTH - RIGHT + 6, y=y)
        for y, (_, text, kind) in zip(heights, wanted, strict=True)
    ]


def _hit(n: int, count: int, series: Sequence[Series]) -> Markup:
    """An invisible column over iteration n + 1, which says its numbers and leads to it."""
    width = (WIDTH - LEFT - RIGHT) / count
    known = [s for s in series if n < len(s.values)]
    words = "; ".join(f"{s.name} {figure_text(s.values[n])}" for s in known)
    return tag(
        "rect",
        tag("title", f"iteration {n + 1}: {words}"),
        class_="hit",
        x=LEFT + n * width,
        y=TOP,
        width=width,
        height=HEIGHT - TOP - BOTTOM,
        data_goto=n + 1,
    )


def _in_words(series: Sequence[Series]) -> str:
    return " ".join(f"{s.name}: {', '.join(map(figure_text, s.values))}." for s in series)
