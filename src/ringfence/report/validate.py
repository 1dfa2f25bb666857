"""What a page reads of summary.json (schema 2) is there, and of the right kind.

Null is allowed wherever something may be unknown; a list by task has an entry for each task.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, FiniteFloat, ValidationError, create_model

CELL_VIEWS = ("map", "floor")
#: How many features each kind of view may show.
WIDTHS = {"map": (1, 2), "floor": (2,), "plane": (2,), "line": (1,)}
MOST_CELLS = 1 << 20

Number = FiniteFloat | None
Whole = Annotated[int, Field(ge=0)]


def form(newer: Mapping[str, Any] | None = None, /, **kinds: Any) -> Any:
    """A table with at least these entries, of these kinds; newer: some that older runs lack."""
    entries: dict[str, Any] = {key: (kind, ...) for key, kind in kinds.items()}
    entries |= {key: (kind | None, None) for key, kind in (newer or {}).items()}
    return create_model("form", __config__=ConfigDict(strict=True), **entries)


def many(kind: Any, count: int | None = None) -> Any:
    """A list of one kind, of so many."""
    return Annotated[list[kind], Field(min_length=count, max_length=count)]


def named(kind: Any) -> Any:
    """A table whose every entry is of one kind."""
    return dict[str, kind]


@cache
def _row(tasks: int) -> Any:
    """An iteration of a game of so many tasks."""
    columns: dict[str, Any] = dict.fromkeys(
        ("constraint_error", "bound", "best_payoff", "env_steps"), Number
    )
    both = ("reward", "cost", "true_raw", "true_cost")
    names = [f"{who}_{name}" for who in ("learner", "expert") for name in both]
    for name in ("delta", "lam", "learner_length", "learner_failed", *names):
        columns |= {name: many(Number, tasks) | None, f"{name}_mean": Number}
    learned = form(description=str, parameters=dict[str, FiniteFloat], iou=Number)
    episodes = dict[str, Number] | None
    ledger = many(Any, tasks) | None
    return form(i=int, constraint=learned, ledger=ledger, episodes=episodes, **columns)


Cell = many(Whole, 2)
VIEW = form(kind=Literal[tuple(WIDTHS)], columns=list[Whole])
CELL_VIEW = form(shape=Cell, starts=many(Cell), goals=many(Cell), walls=list[list[Whole]] | None)
FREE = form(learner_reward_mean=Number, expert_reward_mean=Number, env_steps=FiniteFloat)
POINT = form(**dict.fromkeys(("budget", "parameter", "low", "high"), FiniteFloat))
INTERVAL = form(
    {"words": str, "curve": many(POINT)},
    level=FiniteFloat,
    resamples=FiniteFloat,
    parameters=named(many(FiniteFloat, 2)),
)
CHOICE = form(
    **dict.fromkeys(("i", "constraint_error", "learner_reward_mean"), Number),
    **dict.fromkeys(("learner_true_raw_mean", "learner_true_cost_mean"), Number),
)
SUMMARY = form(
    **dict.fromkeys(("command", "world", "method", "player", "class"), str),
    outcome=Literal["constraint", "no constraint needed"],
    used=list[str],
    truth=str | None,
    true_parameters=dict[str, FiniteFloat] | None,
    seed=int,
    env_steps=int,
    versions=dict[str, str],
    demonstrations_sha256=str,
    tasks=Annotated[list[str], Field(min_length=1)],
    features=many(form(name=str, unit=str)),
    views=many(VIEW),
    unconstrained=FREE | None,
    iterations=list[dict[str, Any]],
    selected=int | None,
    constraint=form(interval=INTERVAL | None) | None,
    selection=form(rewarding=bool | None) | None,
    choices=named(CHOICE | None) | None,
    budget_curve=many(form(parameter=FiniteFloat, budget=FiniteFloat)) | None,
    doubts=list[str],
    not_here=dict[str, str],
    failed_demonstrations=list[Number] | None,
)


def check_summary(document: Mapping[str, Any]) -> None:
    """Raise ValueError for the first thing that is not as it should be."""
    _check(SUMMARY, document, "")
    for view in document["views"]:
        _check_view(view, len(document["features"]))
    rows, chosen = document["iterations"], document["selected"]
    for n, row in enumerate(rows, start=1):
        _check(_row(len(document["tasks"])), row, f"iteration {n}: ")
        if row["i"] != n:
            raise ValueError(f"iteration {n} is called {row['i']!r}")
    if document["outcome"] == "constraint":
        if chosen is None or not 1 <= chosen <= len(rows):
            raise ValueError(f"selected is {chosen!r}, there are {len(rows)} iterations")
        if document["constraint"] is None:
            raise ValueError("constraint is null, though one was selected")
    elif rows or document["unconstrained"] is None:
        raise ValueError("it says that no constraint is needed, but not what was tried")


def _check(kind: Any, value: Any, where: str) -> None:
    try:
        kind.model_validate(value)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        place = " ".join(map(str, first["loc"]))
        given = "" if first["type"] == "missing" else f", not {first['input']!r:.60}"
        raise ValueError(f"{where}{place}: {first['msg']}{given}") from None


def _check_view(view: Mapping[str, Any], features: int) -> None:
    kind, columns = view["kind"], view["columns"]
    if len(columns) not in WIDTHS[kind] or max(columns) >= features:
        raise ValueError(f"views: a {kind} of columns {columns}, there are {features} features")
    if kind not in CELL_VIEWS:
        return
    _check(CELL_VIEW, view, "views: ")
    rows, cols = view["shape"]
    walls = view["walls"]
    if not 0 < rows * cols <= MOST_CELLS:
        raise ValueError(f"views: shape {view['shape']} is not that of a map")
    if any(r >= rows or c >= cols for r, c in (*view["starts"], *view["goals"])):
        raise ValueError("views: a start or goal is outside the map")
    if walls is not None and (len(walls) != rows or any(len(line) != cols for line in walls)):
        raise ValueError(f"views: walls are not {rows} x {cols}")
