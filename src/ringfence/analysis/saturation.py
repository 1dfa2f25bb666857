"""Do the demonstrators press against a limit? Only then can the limit be found.

For a class with one unknown, each episode has an *edge*: the tightest parameter under which the
episode costs no more than the experts' budget. Demonstrators whom one shared limit holds back,
and who use their budget up, all have their edge there, and spend their time there. In units of
the spread, the 95% - 5% quantile of the values of all steps:

    disagreement = root mean square distance of the edges from their median / spread, without the
                   edge that is farthest from it
    pressing     = share of an episode's steps that are at most BAND * spread short of the median
                   edge, or beyond it; the median over episodes

An episode that begins near the edge has its first steps left out, up to the first one that is not:
a start is no edge. One demonstrator who is slower than the others is forgiven. A large budget moves
the edge to where more steps are beyond it: it is no slack.

Disagreement is large where every demonstrator keeps a pace of their own below the limit. Pressing
is small where a demonstrator sways freely, so that the edge is only the tail of it, and where the
edge is where they began. Features alone can't tell one steady slow demonstrator from a lower limit,
nor who left a part of the budget unused from who used it up under a tighter limit: that is told
where the demonstrations say what they cost by the truth.

`ringfence reproduce verdicts` measures how often the verdict is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ringfence.analysis.edges import critical, edges, loosens
from ringfence.attempts import MAD_TO_SIGMA, SMALLEST_GROUP
from ringfence.constraints.template import Template
from ringfence.demos.checks import FAR_ABOVE
from ringfence.objects import Array, Feature, Finding, Trajectory

#: An episode's budget per step where none is stated: the paper's 20 in 1000 steps.
CONVENTION = 0.02
#: Experts are saturated up to this disagreement, and from this share of pressing steps on, which
#: are at most BAND short of the edge. With a budget of 0 the edge is the single farthest step, near
#: which are few even if demonstrators press, and hardly any if they sway freely.
AGREE, PRESSING, PRESSING_FARTHEST, BAND = 0.1, 0.32, 0.14, 0.2
#: They use a budget up from this share of it on.
USED_UP = 0.75
#: Cells per feature in which coverage is counted.
CELLS = 10


@dataclass(frozen=True)
class Press:
    """How demonstrators stand to their edges [25%, 50%, 75% quantiles]."""

    edges: tuple[float, float, float]
    disagreement: float
    pressing: float

    def saturated(self, budget: float) -> bool:
        return self.disagreement <= AGREE and self.pressing >= enough(budget)


def enough(budget: float) -> float:
    """The share of pressing steps that saturated experts have."""
    return PRESSING if budget > 0 else PRESSING_FARTHEST


def press(template: Template, trajectories: Sequence[Trajectory], budget: float) -> Press:
    each = edges(template, trajectories, budget)
    low, edge, high = np.quantile(each, [0.25, 0.5, 0.75])
    apart = np.sort(np.abs(each - edge))[:-1]
    values = [critical(template, t.features) for t in trajectories]
    bottom, top = np.nanquantile(np.concatenate(values), [0.05, 0.95])
    spread = max(float(top - bottom), 1e-9 * abs(float(edge)), 1e-300)
    side = loosens(template, trajectories)
    at_edge = [near_share(side * (v - edge) >= -BAND * spread) for v in values]
    return Press(
        (float(low), float(edge), float(high)),
        float(np.sqrt((apart**2).mean())) / spread,
        float(np.median(at_edge)),
    )


def near_share(near: NDArray[np.bool_]) -> float:
    """The share of near steps [T] after those with which the episode begins; 1 where all are."""
    away = np.flatnonzero(~near)
    return float(near[away[0] :].mean()) if len(away) else 1.0


def saturation(
    template: Template,
    task: str,
    trajectories: Sequence[Trajectory],
    budget: float,
    used: float | None = None,
) -> Finding:
    """The verdict on one task's demonstrators. used: what an episode of theirs costs, where those
    who made them recorded it."""
    where = f"saturation of {task!r}"
    if used is not None and used < USED_UP * budget:
        return Finding(
            "warning",
            where,
            f"the experts are not saturated: they use {used:.3g} of a budget of {budget:.3g} "
            f"per episode ({used / budget:.0%}), so what is learned with this budget is "
            f"tighter than their limit. State what they use: --expert-budget {used:.3g}",
        )
    if len(trajectories) < SMALLEST_GROUP:
        word = f"not checked: {len(trajectories)} episodes, {SMALLEST_GROUP} are needed"
        return Finding("note", where, word)
    found = press(template, trajectories, budget)
    said = (
        f"with a budget of {budget:g} per episode, half of the episodes stop between "
        f"{found.edges[0]:.4g} and {found.edges[2]:.4g} ({template.text}); disagreement "
        f"{found.disagreement:.2f}, pressing {found.pressing:.0%}"
    )
    if found.saturated(budget):
        return Finding("ok", where, f"the experts look saturated: {said}")
    return Finding(
        "warning",
        where,
        f"the experts don't look saturated: {said} (at most {AGREE:g}, at least "
        f"{enough(budget):.0%}). Who does not press against a limit does not show where it is: "
        "what is learned says only what they did. Get demonstrations of a task that pays for going "
        "to the limit",
    )


def standing_apart(
    template: Template, labelled: Sequence[tuple[str, Trajectory]], budget: float
) -> list[Finding]:
    """Episodes that go far beyond where the others stop."""
    if len(labelled) < SMALLEST_GROUP:
        return []
    trajectories = [t for _, t in labelled]
    beyond = loosens(template, trajectories) * edges(template, trajectories, budget)
    beyond = beyond - np.median(beyond)
    values = np.concatenate([critical(template, t.features) for t in trajectories])
    slack = 0.05 * float(np.subtract(*np.nanquantile(values, [0.95, 0.05])))
    far = beyond > FAR_ABOVE * MAD_TO_SIGMA * np.median(np.abs(beyond)) + slack
    return [
        Finding(
            "warning",
            label,
            f"it goes {gap:.3g} beyond where the median episode stops ({template.text}): its "
            "maker may have ignored the constraint; drop it unless you trust it",
        )
        for (label, _), gap, apart in zip(labelled, beyond, far, strict=True)
        if apart
    ]


def coverage(points: Array, features: Sequence[Feature]) -> list[Finding]:
    """points [n, d]: how the steps fill the range that they span."""
    low, high = points.min(axis=0), points.max(axis=0)
    scaled = (points - low) / np.maximum(high - low, 1e-300)
    cells = np.minimum((CELLS * scaled).astype(int), CELLS - 1)
    ranges = [
        f"{f.name} {a:.4g} to {b:.4g} {f.unit}, {len(np.unique(cells[:, k]))} of {CELLS} cells"
        for k, (f, a, b) in enumerate(zip(features, low, high, strict=True))
    ]
    if len(features) in (2, 3):
        together = len(np.unique(cells, axis=0))
        ranges.append(f"together {together / CELLS ** len(features):.0%} of the cells")
    return [Finding("ok", "coverage", "; ".join(ranges))]
