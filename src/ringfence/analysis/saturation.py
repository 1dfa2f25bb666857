"""Do the demonstrators press against a limit? Only then can the limit be found.

For a class with one unknown, each episode has an *edge*: the tightest parameter under which the
episode costs no more than the experts' budget. Demonstrators whom one shared limit holds back,
and who use their budget up, all have their edge there, and spend their time there. In units of
the spread, the 95% - 5% quantile of the values of all steps:

    disagreement = (90% - 10% quantile of the edges) / spread
    distance     = |median edge - median value| / spread

Disagreement is near 1 where every demonstrator keeps a pace of their own below the limit.
Distance is about 0.5 where a demonstrator sways freely, so that the edge is only the tail of it.
Neither can tell one steady slow demonstrator from a lower limit: nothing in the data can.

Measured, with a budget of 20 per 1000 steps (disagreement, distance): the Ant's experts at 0.75
m/s 0.04, 0.01; HalfCheetah's at 1.37 m/s 0.03, 0.08; HalfCheetahs whose training stopped far
above their limit 0.07 to 0.08, 0.49 to 0.50.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ringfence.attempts import MAD_TO_SIGMA, SMALLEST_GROUP
from ringfence.constraints.template import Template
from ringfence.demos.checks import FAR_ABOVE
from ringfence.objects import Array, Feature, Finding, Trajectory, behaviour_of
from ringfence.players.search import Group, best_within

#: An episode's budget per step where none is stated: the paper's 20 in 1000 steps.
CONVENTION = 0.02
#: Experts are saturated up to this disagreement and this distance. With a budget of 0 the edge is
#: the single farthest step, which lies apart even if demonstrators press.
AGREE, NEAR, NEAR_FARTHEST = 0.5, 0.25, 1.0
#: Cells per feature in which coverage is counted.
CELLS = 10


def edges(template: Template, trajectories: Sequence[Trajectory], budget: float) -> Array:
    """Each episode's edge [n]."""
    found = [best_within(template, [behaviour_of([t])], [], budget) for t in trajectories]
    return np.array(found)[:, 0]


def critical(template: Template, trajectories: Sequence[Trajectory]) -> Array:
    """The parameter at which each step [n] is just at the limit."""
    group = Group.of(template, behaviour_of(trajectories))
    moved = group.psi[:, 0] != 0
    values = -group.fixed[moved] / group.psi[moved, 0]
    return np.repeat(values, np.rint(group.visits[moved] * len(trajectories)).astype(int))


def loosens(template: Template, trajectories: Sequence[Trajectory]) -> float:
    """+1 where a larger parameter allows more, -1 where it allows less."""
    pi = behaviour_of(trajectories)
    return -float(np.sign(pi.visits @ template.psi(pi.features)[:, 0])) or 1.0


@dataclass(frozen=True)
class Press:
    """How demonstrators stand to their edges [10%, 50%, 90% quantiles]."""

    edges: tuple[float, float, float]
    disagreement: float
    distance: float

    def saturated(self, budget: float) -> bool:
        near = NEAR if budget > 0 else NEAR_FARTHEST
        return self.disagreement <= AGREE and self.distance <= near


def press(template: Template, trajectories: Sequence[Trajectory], budget: float) -> Press:
    low, edge, high = np.quantile(edges(template, trajectories, budget), [0.1, 0.5, 0.9])
    bottom, middle, top = np.quantile(critical(template, trajectories), [0.05, 0.5, 0.95])
    spread = max(float(top - bottom), 1e-9 * abs(float(edge)), 1e-300)
    return Press(
        (float(low), float(edge), float(high)),
        float(high - low) / spread,
        abs(float(edge - middle)) / spread,
    )


def saturation(
    template: Template, task: str, trajectories: Sequence[Trajectory], budget: float
) -> Finding:
    """The verdict on one task's demonstrators."""
    where = f"saturation of {task!r}"
    if len(trajectories) < SMALLEST_GROUP:
        word = f"not checked: {len(trajectories)} episodes, {SMALLEST_GROUP} are needed"
        return Finding("note", where, word)
    found = press(template, trajectories, budget)
    said = (
        f"with a budget of {budget:g} per episode, episodes stop at {found.edges[0]:.4g} to "
        f"{found.edges[2]:.4g} ({template.text}); disagreement {found.disagreement:.2f}, distance "
        f"{found.distance:.2f}"
    )
    if found.saturated(budget):
        return Finding("ok", where, f"the experts look saturated: {said}")
    return Finding(
        "warning",
        where,
        f"the experts don't look saturated: {said} (at most {AGREE:g} and "
        f"{NEAR if budget > 0 else NEAR_FARTHEST:g}). Who does not press against a "
        "limit does not show where it is: what is learned says only what they did. Get "
        "demonstrations of a task that pays for going to the limit",
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
    values = critical(template, trajectories)
    slack = 0.05 * float(np.subtract(*np.quantile(values, [0.95, 0.05])))
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
