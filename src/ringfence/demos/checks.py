"""What can be said of demonstrations without knowing their world: remarks, figures, a text map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ringfence.attempts import MAD_TO_SIGMA, SMALLEST_GROUP, failed, same_start
from ringfence.errors import InvalidInput
from ringfence.objects import (
    ARRAYS,
    Array,
    Demonstrations,
    Finding,
    TaskDemos,
    Trajectory,
    behaviour_of,
)

#: A return stands apart above the median of its group by this many robust standard deviations
#: (up to half of a group may be contaminated), below by this many times the others' usual
#: shortfall (a few may fail; if many do, the experts are noisy and none stands apart), and in
#: both cases by at least this share of the median (experts often all have the same return).
FAR_ABOVE, FAR_BELOW, SLACK = 5.0, 3.0, 0.05
#: No text map beyond this many rows or columns.
LARGEST_MAP = 200


def check(demos: Demonstrations) -> list[Finding]:
    """What can be said of valid demonstrations without knowing their world."""
    findings = [*_above_their_limit(demos), *_constant_features(demos)]
    for task in demos.tasks:
        apart = list(_standing_apart(task))
        # Many failures hide one another: each is then as far from the median as the others.
        findings += [*_repeats(task), *(apart or _failed(task))]
    return findings


def _above_their_limit(demos: Demonstrations) -> Iterator[Finding]:
    """Made by experts that were trained within a limit, and don't keep it."""
    costs, limit = demos.provenance.get("true_cost"), demos.provenance.get("delta")
    if not isinstance(costs, dict) or not isinstance(limit, int | float):
        return
    for task, cost in costs.items():
        if isinstance(cost, int | float) and cost > limit:
            yield Finding(
                "warning",
                f"task {task!r}",
                f"its experts cost {cost:.4g} an episode by the truth, {limit:.4g} were allowed: "
                "what is learned from them is looser. Train them longer (demos make --steps)",
            )


def _constant_features(demos: Demonstrations) -> Iterator[Finding]:
    points = np.concatenate([t.features for task in demos.tasks for _, t in task.labelled])
    for feature, low, high in zip(demos.features, points.min(0), points.max(0), strict=True):
        if low == high:
            yield Finding(
                "warning",
                f"feature {feature.name!r}",
                f"it is {low:g} in every step of every trajectory; no constraint on it can be "
                "learned: check how it is computed, or leave it out",
            )


def _repeats(task: TaskDemos) -> Iterator[Finding]:
    """Trajectories that equal an earlier one in every number."""
    seen: dict[bytes, str] = {}
    repeats: list[tuple[str, str]] = []
    for label, t in task.labelled:
        key = b"".join(getattr(t, name).tobytes() for name in ARRAYS)
        if key in seen:
            repeats.append((label, seen[key]))
        else:
            seen[key] = label
    if not repeats:
        return
    label, earlier = repeats[0]
    total = len(task.labelled)
    message = f"{len(repeats)} of {total} trajectories repeat an earlier one (here: {earlier})"
    if all(_whole(t.observations) for _, t in task.labelled):
        yield Finding("note", label, f"{message}; they add weight, not evidence")
    else:  # continuous states never come out the same twice
        yield Finding("warning", label, f"{message}: copied by mistake? Drop the copies")


def _standing_apart(task: TaskDemos) -> Iterator[Finding]:
    """Returns far from the median of the trajectories from the same start."""
    labelled = task.labelled
    returns = np.array([t.rewards.sum() for _, t in labelled])
    groups = [g for g in same_start([t for _, t in labelled]) if len(g) >= SMALLEST_GROUP]
    severity, of = _compared(task)
    middle = returns.copy()
    for group in groups:
        middle[group] = np.median(returns[group])
    shortfall, slack = np.maximum(middle - returns, 0), SLACK * np.abs(middle) + 1e-9
    for group in groups:
        gain = returns[group] - middle[group]
        high = gain > FAR_ABOVE * MAD_TO_SIGMA * np.median(np.abs(gain)) + slack[group]
        rest = [labelled[n][1] for n in group[~high]]
        for n, beats in zip(group, high, strict=True):
            label, t = labelled[n]
            compared = f"its return is {returns[n]:.6g}, the median {of} {middle[n]:.6g}"
            usual = np.sqrt(np.mean(np.delete(shortfall, n) ** 2))
            if shortfall[n] > FAR_BELOW * usual + slack[n]:
                yield Finding(severity, label, f"{compared}: a failed or careless attempt?")
            elif beats and (alone := _alone(t, rest)):
                yield Finding(
                    "warning",
                    label,
                    f"{compared}, and {alone}: its maker may have ignored the constraint; "
                    "drop it unless you trust it",
                )


def _compared(task: TaskDemos) -> tuple[Literal["warning", "note"], str]:
    """How sure it is that a low return is the demonstrator's doing, and whose median it is below:
    where all begin elsewhere, their starts may be why."""
    first = np.stack([t.observations[0] for _, t in task.labelled])
    groups = same_start([t for _, t in task.labelled])
    if len(groups) == 1 and np.ptp(first, axis=0).any():
        return "note", "of all, who begin elsewhere,"
    return "warning", "from its start"


def _failed(task: TaskDemos) -> Iterator[Finding]:
    """Less than half of the returns from one start, far below the others."""
    labelled = task.labelled
    trajectories = [t for _, t in labelled]
    returns, low = np.array([t.rewards.sum() for t in trajectories]), failed(trajectories)
    severity, _ = _compared(task)
    for group in same_start(trajectories):
        below, above = group[low[group]], returns[group[~low[group]]]
        if len(below):
            more = f" and {len(below) - 1} more" * (len(below) > 1)
            yield Finding(
                severity,
                labelled[below[0]][0],
                f"its return{more} of {len(group)} "
                f"({returns[below].min():.6g} to {returns[below].max():.6g}) lie far "
                f"below the others ({above.min():.6g} to {above.max():.6g}): failed attempts? A "
                "player that goes by means takes them for the experts' way; drop them if they "
                "failed (--set demos.drop_failed=true)",
            )


def _alone(t: Trajectory, rest: Sequence[Trajectory]) -> str:
    """Where t was and no one of the rest; "" if nowhere. Only cells can be compared so."""
    if not all(_whole(other.features) for other in (t, *rest)):
        return "it beats all the others"
    others = {tuple(row) for other in rest for row in other.features}
    cells = [row for row in dict.fromkeys(map(tuple, t.features)) if row not in others]
    if not cells:
        return ""
    shown = ", ".join("(" + ",".join(f"{x:g}" for x in cell) + ")" for cell in cells[:5])
    return f"it visits {len(cells)} cells that those don't ({shown}{', ..' * (len(cells) > 5)})"


def _whole(values: Array) -> bool:
    return bool((values == np.floor(values)).all())


@dataclass(frozen=True)
class TaskSummary:
    """One task in figures; return, its standard error and length are of training trajectories."""

    task: str
    train: int
    heldout: int
    reward: float
    reward_se: float
    length: float
    cells: int


def summarise(demos: Demonstrations) -> list[TaskSummary]:
    """One row per task; `cells` counts distinct features of the training trajectories."""
    rows = []
    for task in demos.tasks:
        pi = behaviour_of(task.train)
        sizes = (len(task.train), len(task.heldout))
        rows.append(
            TaskSummary(task.task, *sizes, pi.reward, pi.reward_se, pi.length, len(pi.features))
        )
    return rows


def describe(demos: Demonstrations, shape: tuple[int, int] | None = None) -> str:
    """The demonstrations in words and figures.

    Where the features are cells their number and a map, elsewhere each feature's range.
    """
    names = ", ".join(f"{f.name} ({f.unit})" for f in demos.features)
    points = np.concatenate([t.features for task in demos.tasks for t in task.train])
    whole = _whole(points)
    table = [["task", "train", "held-out", "return", "+- se", "steps", *["cells"] * whole]]
    for row in summarise(demos):
        figures = [f"{row.reward:.2f}", f"{row.reward_se:.2f}", f"{row.length:.1f}"]
        cells = [str(row.cells)] * whole
        table.append([row.task, str(row.train), str(row.heldout), *figures, *cells])
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in table
    ]
    below = _map_with_key(demos, shape) if whole else _ranges(demos, points)
    return "\n".join([f"features: {names}", *lines, *below])


def _ranges(demos: Demonstrations, points: Array) -> list[str]:
    spread = zip(demos.features, points.min(0), points.mean(0), points.max(0), strict=True)
    return [
        "",
        *(
            f"{f.name}: {low:.4g} to {high:.4g} {f.unit}, mean {mean:.4g}"
            for f, low, mean, high in spread
        ),
    ]


def _map_with_key(demos: Demonstrations, shape: tuple[int, int] | None) -> list[str]:
    drawn = visit_map(demos, shape)
    key = "tenths of the training trajectories that visit a cell (9: 90% or more; '.': none)"
    return ["", key, drawn] if drawn else []


def visit_map(
    demos: Demonstrations, shape: tuple[int, int] | None = None, task: str | None = None
) -> str:
    """A text map of visits by (row, col), of all tasks or one; "" where features aren't cells.

    `shape` is the grid's; without it the map ends at the last row and column visited.
    """
    paths = [t.features for d in demos.tasks if task in (None, d.task) for t in d.train]
    if not paths:
        known = ", ".join(d.task for d in demos.tasks)
        raise InvalidInput(f"no task {task!r} in these demonstrations; there are: {known}")
    points = np.concatenate(paths)
    if [f.name for f in demos.features] != ["row", "col"] or not _whole(points):
        return ""
    last = points.max(axis=0).astype(int) + 1
    rows, cols = shape or (int(last[0]), int(last[1]))
    if points.min() < 0 or last[0] > rows or last[1] > cols or max(rows, cols) > LARGEST_MAP:
        return ""
    visitors = np.zeros((rows, cols), dtype=int)
    for path in paths:
        cells = np.unique(path.astype(int), axis=0)
        visitors[cells[:, 0], cells[:, 1]] += 1
    tenths = np.minimum(9, 10 * visitors // len(paths))
    letters = np.where(visitors > 0, tenths.astype(str), ".")
    return "\n".join("".join(line) for line in letters)
