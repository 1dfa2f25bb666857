"""The discs and boxes that cost the learners most while the experts keep a budget.

A union is found shape by shape: each next one where it adds most to what learners cost, as long as
that is worth a shape; then each again, given the others. Discs: for a given centre the cost grows
with the radius, so the largest that leaves the experts their budget is best; centres are tried on a
grid, then improved by a pattern search. Boxes: from places where learners were, each side is pushed
out as far as the experts' budget lasts; then sides are pulled back and others pushed, while that
helps. No shape reaches beyond where somebody was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from scipy.spatial import KDTree

from ringfence.constraints.regions import Box, Disc, RegionConstraint, RegionForm, Shape
from ringfence.errors import InvalidInput
from ringfence.objects import Array, Behaviour
from ringfence.players.search import LEARNER_POINTS, pattern_search

GRID = {1: 65, 2: 17, 3: 9}  # centres along each axis
EXPERT_POINTS = 5000  # that are looked at where a budget must be bisected
HALVINGS = 30
SEEDS = 12  # places from which boxes grow
PULLS = (0.1, 0.25, 0.5)  # of a box's width
ROUNDS = 4
SAFE = (0.0, 1e-12, 1e-9, 1e-6, *(0.001 * 1.5**n for n in range(16)))  # by how much to shrink
WORTH = 0.02  # of what the first shape adds: less is not worth another one


def fit_region(
    form: RegionForm, experts: Sequence[Behaviour], learners: Sequence[Behaviour], budget: float
) -> RegionConstraint:
    """The region; InvalidInput where none leaves the experts their budget."""
    if form.given:
        return form.region(form.given)
    search = _Search.of(form, experts, learners, budget)
    if form.side == "inside":
        shapes = [search.enclosing_disc() if form.discs or form.either else search.enclosing_box()]
    else:
        shapes = search.union(form.discs, form.boxes, form.either)
    outwards = 1 if form.side == "inside" else -1
    for step in SAFE:  # rounding, and the steps that a search with a budget left out
        c = form.region([_sized(shape, 1 + outwards * step) for shape in shapes])
        if all(float(pi.visits @ c.cost(pi.features)) <= budget for pi in experts):
            return c
    raise InvalidInput(
        f"class {form.text!r}: no region was found that leaves the experts within a budget of "
        f"{budget:g} per episode; give a larger --expert-budget or another class"
    )


@dataclass(frozen=True, eq=False)
class _Group:
    z: Array  # [n, k], in units of the scale
    visits: Array
    taken: Array  # the depth inside the other shapes, where there are some

    def cost(self, shape: Shape | None, one: Array) -> float:
        depth = self.taken if shape is None else np.maximum(self.taken, shape.depth(self.z, one))
        inside = depth > 0
        return float(self.visits[inside] @ np.log1p(depth[inside]))

    def kept_in(self, shape: Shape, one: Array) -> float:
        return float(self.visits @ np.log1p(np.maximum(-shape.depth(self.z, one), 0)))


@dataclass(frozen=True, eq=False)
class _Search:
    """Points in units of the scale; low, high [k]: where anybody was."""

    scale: Array
    experts: tuple[_Group, ...]
    learners: tuple[_Group, ...]
    budget: float
    low: Array
    high: Array

    @classmethod
    def of(
        cls,
        form: RegionForm,
        experts: Sequence[Behaviour],
        learners: Sequence[Behaviour],
        budget: float,
    ) -> _Search:
        every = max(1, sum(len(pi.visits) for pi in learners) // LEARNER_POINTS)
        E, L = (
            tuple(_group(form, pi, n) for pi in group)
            for group, n in ((experts, 1), (learners or experts, every))
        )
        points = np.concatenate([g.z for g in (*E, *L)])
        return cls(form.scale, E, L, budget, points.min(axis=0), points.max(axis=0))

    @cached_property
    def kept(self) -> list[Array]:
        """Where experts were, feature by feature."""
        every = np.concatenate([g.z[g.visits > 0] for g in self.experts])
        return [np.ascontiguousarray(column) for column in every.T]

    @property
    def one(self) -> Array:
        return np.ones(len(self.low))

    def gain(self, shape: Shape) -> float:
        """What a shape adds to the learners' mean cost."""
        return float(
            np.mean([g.cost(shape, self.one) - g.cost(None, self.one) for g in self.learners])
        )

    def admissible(self, shape: Shape) -> bool:
        return all(g.cost(shape, self.one) <= self.budget for g in self.experts)

    # Unions --------------------------------------------------------------------------------------

    def union(self, discs: int, boxes: int, either: int) -> list[Shape]:
        left = {"disc": discs, "box": boxes, "either": either}
        found: list[Shape] = []
        first = 0.0
        while sum(left.values()):
            search = self._beside(found)
            kinds = [k for k in ("disc", "box") if left[k] or left["either"]]
            shape = max((getattr(search, f"best_{k}")() for k in kinds), key=search.gain)
            gain = search.gain(shape)
            if found and gain <= WORTH * first:
                break
            first = first or gain
            kind = "disc" if isinstance(shape, Disc) else "box"
            left[kind if left[kind] else "either"] -= 1
            found.append(shape)
        for n in range(len(found) if len(found) > 1 else 0):
            search = self._beside(found[:n] + found[n + 1 :])
            again = search.improved(found[n])
            found[n] = max([found[n], again], key=search.gain)
        return [self._in_units(shape) for shape in found]

    def _beside(self, shapes: Sequence[Shape]) -> _Search:
        """The same with the points' depth inside other shapes."""

        def beside(g: _Group) -> _Group:
            depths = [shape.depth(g.z, self.one) for shape in shapes]
            return replace(g, taken=np.max([g.taken, *depths], axis=0))

        E, L = (tuple(map(beside, group)) for group in (self.experts, self.learners))
        return replace(self, experts=E, learners=L)

    def _in_units(self, shape: Shape) -> Shape:
        if isinstance(shape, Disc):
            return Disc(shape.centre * self.scale, float(shape.radius * self.scale[0]))
        return Box(shape.low * self.scale, shape.high * self.scale)

    def improved(self, shape: Shape) -> Shape:
        if isinstance(shape, Disc):
            return self._refined(shape.centre, self._tree())
        return self._wiggled(shape)

    # Discs ---------------------------------------------------------------------------------------

    def best_disc(self) -> Disc:
        tree = self._tree()
        sides = [np.linspace(a, b, GRID.get(len(self.low), 5))
                 for a, b in zip(self.low, self.high, strict=True)]  # fmt: skip
        centres = [np.array(place) for place in product(*sides)]
        best = max(centres, key=lambda centre: self.gain(self._disc(centre, tree)))
        return self._refined(best, tree)

    def _refined(self, centre: Array, tree: KDTree) -> Disc:
        span = np.maximum(self.high - self.low, 1e-12)

        def score(u: Array) -> tuple[float, ...]:
            place = self.low + u * span
            if (u < 0).any() or (u > 1).any():
                return (-np.inf,)
            return (self.gain(self._disc(place, tree)),)

        u = pattern_search(score, (centre - self.low) / span)
        return self._disc(self.low + u * span, tree)

    def _tree(self) -> KDTree:
        return KDTree(np.concatenate([g.z[g.visits > 0] for g in self.experts]))

    def _disc(self, centre: Array, tree: KDTree) -> Disc:
        """The largest disc around a place that leaves the experts their budget."""
        nearest = float(tree.query(centre)[0])
        most = float(np.linalg.norm(self.high - self.low)) / 2
        if self.budget == 0 or nearest >= most:
            return Disc(centre, float(np.nextafter(min(nearest, most), 0)))
        thin = self._thinned()
        return Disc(centre, _largest(lambda r: thin.admissible(Disc(centre, r)), nearest, most))

    def _thinned(self) -> _Search:
        every = max(1, sum(len(g.visits) for g in self.experts) // EXPERT_POINTS)
        if every == 1 or self.budget == 0:
            return self
        return replace(self, experts=tuple(
            _Group(g.z[::every], every * g.visits[::every], g.taken[::every]) for g in self.experts
        ))  # fmt: skip

    def enclosing_disc(self) -> Disc:
        """The disc around the experts that costs learners most outside of it."""
        points = np.concatenate([g.z[g.visits > 0] for g in self.experts])
        low, high = points.min(axis=0), points.max(axis=0)
        span = np.maximum(high - low, 1e-12)

        def around(u: Array) -> Disc:
            centre = low + u * span
            away = np.sqrt(np.square(points - centre).sum(axis=1))
            radius = float(np.nextafter(away.max(), np.inf))
            if self.budget > 0:
                radius = -_largest(lambda r: self._keeps_in(Disc(centre, -r)), -radius, 0.0)
            return Disc(centre, radius)

        def score(u: Array) -> tuple[float, ...]:
            disc = around(u)
            costs = [g.kept_in(disc, self.one) for g in self.learners]
            return (float(np.mean(costs)), -disc.radius)

        disc = around(pattern_search(score, np.full(len(low), 0.5)))
        return Disc(disc.centre * self.scale, float(disc.radius * self.scale[0]))

    def _keeps_in(self, shape: Shape) -> bool:
        return all(g.kept_in(shape, self.one) <= self.budget for g in self.experts)

    # Boxes ---------------------------------------------------------------------------------------

    def enclosing_box(self) -> Box:
        """The experts' extremes; with a budget, the same quantiles of each feature."""
        points = np.concatenate([g.z[g.visits > 0] for g in self.experts])

        def at(q: float) -> Box:
            return Box(np.quantile(points, q, axis=0), np.quantile(points, 1 - q, axis=0))

        q = 0.0 if self.budget == 0 else _largest(lambda q: self._keeps_in(at(q)), 0.0, 0.5)
        box = at(q)
        return Box(box.low * self.scale, box.high * self.scale)

    def best_box(self) -> Box:
        return self._wiggled(max(self._grown(), key=self.gain))

    def _grown(self) -> Iterator[Box]:
        """Boxes around places where learners were, from cubes of several sizes, sides in order."""
        k, thin = len(self.low), self._thinned()
        tree = KDTree(np.concatenate([g.z[g.visits > 0] for g in self.experts]))
        for seed in self._seeds():
            free = float(tree.query(seed, p=np.inf)[0])
            for share, first in product((0.5, 0.99), range(k)):
                box = Box(seed - share * free, seed + share * free)
                axes = [(first + n) % k for n in range(k)]
                yield thin._pushed(box, [side for axis in axes for side in ((axis, 0), (axis, 1))])

    def _seeds(self) -> list[Array]:
        """Learners' places that no shape has yet, far from each other."""
        points = np.concatenate([g.z[(g.taken <= 0) & (g.visits > 0)] for g in self.learners])
        if not len(points):
            return [(self.low + self.high) / 2]
        span = np.maximum(self.high - self.low, 1e-12)
        chosen = [points[int(np.argmin(np.square((points - points.mean(axis=0)) / span).sum(1)))]]
        away = np.full(len(points), np.inf)
        while len(chosen) < min(SEEDS, len(points)):
            away = np.minimum(away, np.square((points - chosen[-1]) / span).sum(axis=1))
            chosen.append(points[int(np.argmax(away))])
        return chosen

    def _pushed(self, box: Box, sides: Sequence[tuple[int, int]]) -> Box:
        for axis, upper in sides:
            box = self._push(box, axis, upper)
        return box

    def _push(self, box: Box, axis: int, upper: int) -> Box:
        """The box with one side as far out as the experts' budget lasts."""

        def moved(value: float) -> Box:
            low, high = box.low.copy(), box.high.copy()
            (high if upper else low)[axis] = value
            return Box(low, high)

        here = float((box.high if upper else box.low)[axis])
        end = float((self.high if upper else self.low)[axis])
        if self.budget > 0:
            if not self.admissible(box):
                return box
            share = _largest(lambda t: self.admissible(moved(here + t * (end - here))), 0.0, 1.0)
            return moved(here + share * (end - here))
        wide, inside = moved(end), np.ones(len(self.kept[0]), bool)
        for values, low, high in zip(self.kept, wide.low, wide.high, strict=True):
            inside &= (values > low) & (values < high)
        stops = self.kept[axis][inside]
        if not len(stops):
            return wide
        return moved(float(stops.min() if upper else stops.max()))

    def _wiggled(self, box: Box) -> Box:
        """Sides pulled back and the others pushed out, while that costs learners more."""
        thin, k = self._thinned(), len(self.low)
        sides = [(axis, upper) for axis in range(k) for upper in (0, 1)]
        best, gain = box, self.gain(box)
        for _ in range(ROUNDS):
            before = gain
            for (axis, upper), share in product(sides, PULLS):
                low, high = best.low.copy(), best.high.copy()
                pull = share * (high[axis] - low[axis])
                (high if upper else low)[axis] += -pull if upper else pull
                others = [s for s in sides if s[0] != axis]
                trial = thin._pushed(Box(low, high), [*others, (axis, upper)])
                reached = self.gain(trial)
                if reached > gain and self.admissible(trial):
                    best, gain = trial, reached
            if gain <= before:
                break
        return best


def _sized(shape: Shape, share: float) -> Shape:
    """The same around its middle, larger or smaller."""
    if isinstance(shape, Disc):
        return Disc(shape.centre, share * shape.radius)
    middle, half = (shape.low + shape.high) / 2, share * (shape.high - shape.low) / 2
    return Box(middle - half, middle + half) if share != 1 else shape


def _group(form: RegionForm, pi: Behaviour, every: int) -> _Group:
    z = pi.features[::every][:, list(form.columns)] / form.scale
    return _Group(z, every * pi.visits[::every], np.full(len(z), -np.inf))


def _largest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The largest number of an interval for which something holds that stops holding once."""
    if holds(high):
        return high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
