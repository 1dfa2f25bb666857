"""Demonstrators of known kind, simulated: what the saturation check has to tell apart.

A step's raw value under the true limit is z: above 0 it violates, and costs log(1 + z). The z of an
episode is a noise around a pace, with a run-up from rest and slow passages; paces are set so that
an episode costs a given share of the budget in expectation. The features are then such that the
class has these raw values: a speed, a height, a sum, an absolute value, a slope.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtr

from ringfence.analysis.saturation import CONVENTION
from ringfence.constraints.template import Template, parse_template
from ringfence.objects import Array, Feature, Trajectory

#: Episodes of a data set, and their steps.
EPISODES, STEPS = (5, 20), (60, 300)
#: Episodes from which the expected cost of a pace is found.
REFERENCE = 64
#: Where the true limit is; for slopes it is a slope.
LIMIT = 3.0

SIMPLE = ("speed <= ?", "height >= ?")
SEVERAL = ("x + y <= ?", "|y| <= ?", "? x - y <= 0", "x - y >= ?")


@dataclass(frozen=True, eq=False)
class DataSet:
    """What the check is given, and the answer. budget: that it goes by, per episode; true_cost: of
    an episode, where it is recorded; saturated: None where either answer would do."""

    template: Template
    trajectories: tuple[Trajectory, ...]
    budget: float
    true_cost: float | None
    saturated: bool | None


@dataclass(frozen=True)
class Way:
    """How an episode's values move. scale: of the noise; shape: "sway" is normal, "pile" the same
    folded below the pace, "even" evenly spread below it; memory: of one step for the last; slow:
    the share of steps in passages that are no place to press; rising: that of the run-up."""

    steps: int
    scale: float
    shape: str
    memory: float
    slow: float
    rising: float

    def values(self, episodes: int, rng: np.random.Generator) -> Array:
        """z [episodes, steps] of demonstrators whose pace is the limit."""
        noise = rng.normal(size=(episodes, self.steps + 50))
        noise = lfilter([np.sqrt(1 - self.memory**2)], [1.0, -self.memory], noise)[:, 50:]
        folded = {"sway": noise, "pile": -np.abs(noise), "even": -3 * ndtr(noise)}
        z = self.scale * folded[self.shape]
        for row in z:
            length = round(self.slow * self.steps)
            begin = int(rng.integers(self.steps - length + 1))
            row[begin : begin + length] -= self.scale * rng.uniform(2.0, 6.0)
        ramp = round(self.rising * self.steps)
        if ramp:
            z[:, :ramp] -= 8 * self.scale * (1 - np.arange(ramp) / ramp)
        return np.asarray(z)


def cost(z: Array) -> float:
    """Of an episode, on average over z [episodes, steps]."""
    return float(np.log1p(np.maximum(z, 0)).sum(axis=1).mean())


def pace(way: Way, wanted: float, rng: np.random.Generator) -> float:
    """What to add to z for an expected cost of `wanted`; for 0 so much that no step violates."""
    z = way.values(REFERENCE, rng)
    if wanted <= 0:
        return -float(z.max())
    low, high = -float(z.max()), float(np.expm1(wanted / way.steps) - z.min())
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if cost(z + middle) < wanted else (low, middle)
    return low


def draw_way(rng: np.random.Generator) -> Way:
    return Way(
        int(rng.integers(STEPS[0], STEPS[1] + 1)),
        float(10 ** rng.uniform(-1.5, 0)),
        str(rng.choice(["sway", "pile", "even"])),
        float(rng.uniform(0, 0.9)),
        float(rng.uniform(0, 0.4)),
        float(rng.choice([0.0, rng.uniform(0.02, 0.1)])),
    )


def per_scale(way: Way, low: float, high: float, rng: np.random.Generator) -> float:
    """A budget of `low` to `high` scales of the noise per step."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high)))) * way.scale * way.steps


def usual_budget(way: Way, rng: np.random.Generator) -> float:
    """For demonstrators who sway at the limit a budget is a good part of the noise; who never
    cross it may have none."""
    if way.shape != "sway" and rng.random() < 0.5:
        return 0.0
    return per_scale(way, 0.15, 2.0, rng)


def count(rng: np.random.Generator) -> int:
    return int(rng.integers(EPISODES[0], EPISODES[1] + 1))


def shown(z: Array, text: str, rng: np.random.Generator) -> tuple[Template, tuple[Trajectory, ...]]:
    """Episodes whose raw values under the class's true limit are z [episodes, steps]."""
    n, T = z.shape
    x = 2.0 + np.cumsum(rng.normal(0, 0.05, (n, T)), axis=1)
    far = LIMIT + float(np.abs(z).max())  # |y| stays on its side
    columns = {
        "speed <= ?": {"speed": LIMIT + z},
        "height >= ?": {"height": LIMIT - z},
        "x + y <= ?": {"x": x, "y": LIMIT + z - x},
        "x - y >= ?": {"x": x, "y": x + z - LIMIT},
        "|y| <= ?": {"x": x, "y": rng.choice([-1.0, 1.0], (n, 1)) * (far + z)},
        "? x - y <= 0": {"x": np.abs(x) + 1, "y": LIMIT * (np.abs(x) + 1) - z},
    }[text]
    template = parse_template(text, [Feature(name, "1") for name in columns])
    phi = np.stack(list(columns.values()), axis=-1)
    nothing = np.zeros((T + 1, 1))
    episodes = (Trajectory(nothing, nothing[1:], np.zeros(T), own, False) for own in phi)
    return template, tuple(episodes)


def at_limit(
    rng: np.random.Generator, budget: Callable[[Way, np.random.Generator], float] = usual_budget
) -> tuple[Way, float, Array]:
    """Their way, their budget, and z of demonstrators who use it up."""
    way = draw_way(rng)
    allowed = budget(way, rng)
    lift = pace(way, allowed * rng.uniform(0.9, 1.0), rng)
    return way, allowed, way.values(count(rng), rng) + lift


# The kinds ---------------------------------------------------------------------------------------


def pressing(rng: np.random.Generator, texts: tuple[str, ...] = SIMPLE) -> DataSet:
    _, budget, z = at_limit(rng)
    return DataSet(*shown(z, str(rng.choice(texts)), rng), budget, None, True)


def large_budget(rng: np.random.Generator) -> DataSet:
    """Nearly every step violates, and their edges lie far to one side of their values."""
    _, budget, z = at_limit(rng, lambda way, rng: per_scale(way, 2.0, 30.0, rng))
    return DataSet(*shown(z, str(rng.choice(SIMPLE)), rng), budget, None, True)


def unstated(rng: np.random.Generator) -> DataSet:
    """The check goes by the paper's budget, which is not theirs."""
    way = replace(draw_way(rng), scale=CONVENTION / float(10 ** rng.uniform(-0.8, 0.3)))
    own = per_scale(way, 0.15, 2.0, rng)
    z = way.values(count(rng), rng) + pace(way, own, rng)
    template, episodes = shown(z, str(rng.choice(SIMPLE)), rng)
    return DataSet(template, episodes, CONVENTION * way.steps, None, True)


def one_slow(rng: np.random.Generator) -> DataSet:
    way, budget, z = at_limit(rng)
    z[int(rng.integers(len(z)))] -= way.scale * rng.uniform(4.0, 12.0)
    return DataSet(*shown(z, str(rng.choice(SIMPLE)), rng), budget, None, True)


def budget_used(share: float, saturated: bool) -> Callable[[np.random.Generator], DataSet]:
    """Their cost is recorded, as `demos make` does."""

    def make(rng: np.random.Generator) -> DataSet:
        way = draw_way(rng)
        budget = per_scale(way, 0.15, 2.0, rng)
        z = way.values(count(rng), rng) + pace(way, share * budget, rng)
        template, episodes = shown(z, str(rng.choice(SIMPLE)), rng)
        return DataSet(template, episodes, budget, cost(z), saturated)

    return make


def own_paces(rng: np.random.Generator, texts: tuple[str, ...] = SIMPLE) -> DataSet:
    """Each below the limit, at a pace of their own."""
    way, n = draw_way(rng), count(rng)
    spread = way.scale * rng.uniform(8.0, 30.0)
    z = way.values(n, rng) - rng.uniform(0, spread, (n, 1)) - 3 * way.scale
    budget = usual_budget(way, rng)
    return DataSet(*shown(z, str(rng.choice(texts)), rng), budget, None, False)


def free_sway(rng: np.random.Generator) -> DataSet:
    """All alike, far below the limit; a budget is small beside their sway."""
    way = replace(draw_way(rng), shape="sway", slow=0.0)
    budget = 0.0 if rng.random() < 0.3 else per_scale(way, 0.001, 0.02, rng)
    z = way.values(count(rng), rng) - way.scale * rng.uniform(8, 30)
    return DataSet(*shown(z, str(rng.choice(SIMPLE)), rng), budget, None, False)


def leaving(rng: np.random.Generator) -> DataSet:
    """They begin at one place and go away from the limit: the edge that shows is their start."""
    way, n = replace(draw_way(rng), shape="sway", slow=0.0, rising=0.0), count(rng)
    t = np.arange(way.steps) / way.steps
    far = way.scale * rng.uniform(15, 60, (n, 1)) * t ** rng.uniform(0.7, 2.0)
    z = way.values(n, rng) - far - way.scale * rng.uniform(10, 40)
    budget = 0.0 if rng.random() < 0.5 else per_scale(way, 0.001, 0.05, rng)
    return DataSet(*shown(z, str(rng.choice(SIMPLE)), rng), budget, None, False)


def mixed(rng: np.random.Generator) -> DataSet:
    """A part of them at the limit, the others slow."""
    way, budget, z = at_limit(rng)
    slow = rng.random(len(z)) < rng.uniform(0.2, 0.8)
    z[slow] -= way.scale * rng.uniform(4.0, 12.0, (int(slow.sum()), 1))
    return DataSet(*shown(z, str(rng.choice(SIMPLE)), rng), budget, None, None)


KINDS: dict[str, Callable[[np.random.Generator], DataSet]] = {
    "at the limit": pressing,
    "at the limit, a large budget": large_budget,
    "at the limit, budget not stated": unstated,
    "at the limit, several features": lambda rng: pressing(rng, SEVERAL),
    "at the limit, one slow": one_slow,
    "budget used: 100%": budget_used(1.0, True),
    "budget used: 50%": budget_used(0.5, False),
    "budget used: 25%": budget_used(0.25, False),
    "budget used: 0%": budget_used(0.0, False),
    "slack: paces of their own": own_paces,
    "slack: paces of their own, several features": lambda rng: own_paces(rng, SEVERAL),
    "slack: sways freely": free_sway,
    "slack: goes away from its start": leaving,
    "mixed": mixed,
}
