"""Line charts over iterations as inline SVG. Colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ringfence.report.markup import Markup, short, tag
from ringfence.report.text import figure_text

Values = Sequence[float | None]
WIDTH, HEIGHT = 360, 210
LEFT, RIGHT, TOP, BOTTOM = 46, 100, 14, 34
#: Labels at the right end are kept this far apart, so that none hides another.
LABEL_GAP = 14
MARKER = 3.6
#: Values that differ by less are the same but for rounding.
FLAT = 1e-9
MOST_NUMBERS = 10  # below the chart


@dataclass(frozen=True)
class Series:
    """One line: its mean, thin lines beside it (one per task) and an error band around it.

    `kind` is its class in the style sheet; markers and dashes tell lines apart without colour.
    """

    name: str
    kind: str
    values: Values
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
    at, xs = places[current - 1], " ".join(map(short, places))
    words = " ".join(f"{s.name}: {', '.join(map(figure_text, s.values))}." for s in series)
    svg = tag(
        "svg",
        [*_grid(axis), *_iterations(places)],
        tag("line", class_="guide", x1=at, x2=at, y1=TOP, y2=HEIGHT - BOTTOM, data_x=xs),
        [_drawn(s, axis, places) for s in series],
        _labels(series, axis),
        [_hit(n, count, series) for n in range(count)],
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"{name} per iteration. {words}",
    )
    return tag("figure", tag("h3", name), svg, tag("figcaption", caption), class_="card chart")


def _place(n: int, count: int) -> float:
    """Where iteration n + 1 stands; a lone one in the middle."""
    span = WIDTH - LEFT - RIGHT
    return LEFT + (span / 2 if count == 1 else 8 + n * (span - 16) / (count - 1))


# Axes --------------------------------------------------------------------------------------------


def _axis(series: Sequence[Series], floor: float | None, zero: bool) -> Axis:
    values = [v for s in series for line in (s.values, *s.thin) for v in line if v is not None]
    for s in series:
        for v, e in zip(s.values, s.error, strict=False):
            values += [] if v is None or e is None else [v - e, v + e]
    if floor is not None:
        top = max(1, *(math.ceil(math.log10(max(v, floor)) - 1e-9) for v in values))
        exponents = range(math.floor(math.log10(floor)), top + 1)
        ticks = tuple(10.0**e for e in exponents[:: math.ceil(len(exponents) / 5)])
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


def tick_text(text: object, x: float, y: float, anchor: str = "middle") -> Markup:
    return tag("text", str(text), class_="tick", x=x, y=y, text_anchor=anchor)


def _grid(axis: Axis) -> list[Markup]:
    drawn = []
    for value, text in zip(axis.ticks, tick_texts(axis.ticks), strict=True):
        y = axis(value)
        drawn += [
            tag("line", class_="gridline", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y),
            tick_text(text, LEFT - 7, y + 4, "end"),
        ]
    return drawn


def _iterations(places: Sequence[float]) -> list[Markup]:
    """Numbers below the chart, thinned out where there are many."""
    step, y = math.ceil(len(places) / MOST_NUMBERS), HEIGHT - BOTTOM + 16
    numbers = [tick_text(n + 1, x, y) for n, x in enumerate(places) if n % step == 0]
    return [*numbers, tick_text("iteration", (LEFT + WIDTH - RIGHT) / 2, y + 14)]


# Lines -------------------------------------------------------------------------------------------


def _drawn(s: Series, axis: Axis, places: Sequence[float]) -> Markup:
    thin = [tag("path", class_="thin", d=_line(v, axis, places)) for v in s.thin]
    dashes = "5 4" if s.dashed else None
    main = tag("path", class_="main", d=_line(s.values, axis, places), stroke_dasharray=dashes)
    markers = [
        _marker(s, places[n], axis(v), axis.floor is not None and v <= axis.floor)
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


def _marker(s: Series, x: float, y: float, hollow: bool) -> Markup:
    """Experts have squares, other dashed lines diamonds, the rest circles."""
    kind = "dot hollow" if hollow else "dot"
    if not s.dashed:
        return tag("circle", class_=kind, cx=x, cy=y, r=MARKER)
    side = 2 * MARKER - 0.8
    turned = None if s.kind == "expert" else f"rotate(45 {short(x)} {short(y)})"
    box = {"x": x - side / 2, "y": y - side / 2, "width": side, "height": side}
    return tag("rect", class_=kind, transform=turned, **box)


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
    down = max(0.0, heights[-1] - (HEIGHT - BOTTOM + 4)) if heights else 0.0
    return [
        tag("text", text, class_=f"label {kind}", x=WIDTH - RIGHT + 6, y=y - down)
        for y, (_, text, kind) in zip(heights, wanted, strict=True)
    ]


def _hit(n: int, count: int, series: Sequence[Series]) -> Markup:
    """An invisible column over iteration n + 1, which says its numbers and leads to it."""
    width = (WIDTH - LEFT - RIGHT) / count
    known = [s for s in series if n < len(s.values)]
    words = "; ".join(f"{s.name} {figure_text(s.values[n])}" for s in known)
    box = {"x": LEFT + n * width, "y": TOP, "width": width, "height": HEIGHT - TOP - BOTTOM}
    title = tag("title", f"iteration {n + 1}: {words}")
    return tag("rect", title, class_="hit", data_goto=n + 1, **box)
