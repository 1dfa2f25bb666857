"""The constraint player over networks: the paper's regression, and its restricted class.

A network is fitted afresh in every iteration, from the seed path and the number of iterations so
far alone, so that the same game gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from ringfence.constraints.mlp import MLPConstraint, zero_network
from ringfence.errors import InvalidInput, SolverFailed
from ringfence.objects import Array, Behaviour, Feature, J
from ringfence.players.network_regions import forbidden_words
from ringfence.players.patches import Patches, edge_distance
from ringfence.players.player import History

Params = list[tuple[Any, Any]]
Field = Callable[[Array], Array]  # features [n, d] -> [n]

FITTING = 30  # its stream of random numbers
STEPS_AT_ONCE = 500  # minibatches compiled as one scan; their points are drawn before
EVERYWHERE = 200_000  # points that stand for a box


@dataclass
class MLPRegression:
    """Least squares of a network to labels +1 (learner) and -1 (expert), over all iterations.

    Each minibatch is half experts and half learners, drawn by their visits, so both have the same
    total weight. `used` names the features that the network may depend on (None: all). The
    defaults are the paper's for its maze; the batch, which it doesn't state, is ours.

    With `spread` (in the features' units) space is cut into squares of that side and each square
    that experts, or learners, visited has the same weight in its half. In the restricted class
    the best fit over all functions doesn't depend on weights (at most 0 where an expert was, +1
    where only learners were), but a network's does: rare places are otherwise fitted last. The
    learning rate falls linearly to `final_rate` times itself; a constant one leaves spikes at
    experts' points, and the whole output is lowered by the highest.

    With a `tolerance` the class is F~_c = {c : J(pi_E^k, c) <= tolerance for all k}: the loss
    gets `penalty` times the experts' mean activated cost, and the fitted output is then lowered
    by the smallest amount that brings every task's experts within the tolerance. That amount is
    the constraint's `offset`; what the experts pay afterwards is J(pi_E^k, c).

    With `places` the network is fitted to what these forbid instead of to labels: to the distance
    from their edge, positive inside, in usual moves and at most one. Half of a minibatch are
    experts' points, the other half are drawn from the box that they cover.

    T: an episode's length, in which the payoff is measured; seed: the path of its randomness.
    """

    features: tuple[Feature, ...]
    T: float
    seed: tuple[int, ...]
    used: tuple[str, ...] | None = None
    tolerance: float | None = None
    # Of 0, 1, 3 and 10 the one that left learners the largest cost (maze, 50k points each).
    penalty: float = 3.0
    hidden: tuple[int, ...] = (128, 128)
    learning_rate: float = 3e-4
    steps: int = 5_000
    batch: int = 512  # 5,000 steps of [128, 128]: 3.5 s of one core
    final_rate: float = 1.0
    spread: float | None = None
    places: Patches | None = None
    _last: MLPConstraint | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        unknown = set(self.used or ()) - {f.name for f in self.features}
        if unknown or self.used == ():
            raise InvalidInput(
                f"the network can't use {', '.join(sorted(unknown)) or 'no feature at all'}; "
                f"features are {', '.join(f.name for f in self.features)}"
            )
        if self.steps < 1 or self.batch < 2 or min(self.hidden, default=1) < 1:
            raise InvalidInput(
                f"a network needs steps >= 1, a batch >= 2 and hidden layers of units, got "
                f"{self.steps}, {self.batch} and {self.hidden}"
            )
        if self.tolerance is not None and not 0 <= self.tolerance < np.inf:
            raise InvalidInput(f"the experts' tolerance must be >= 0, got {self.tolerance}")

    def initial(self) -> MLPConstraint:
        return zero_network(self.features)

    def update(self, experts: Sequence[Behaviour], history: History) -> MLPConstraint:
        learners = [pi for iteration in history for pi in iteration]
        rng = np.random.default_rng([*self.seed, FITTING, len(history)])
        E, L = (_Points.of(group, self.spread) for group in (experts, learners))
        target = None
        if self.places is not None:
            table = self.places.update(experts, history)
            if not table.forbidden.any():
                return self.initial()
            target = edge_distance(table, self.places.moves)
            L = _Points.everywhere(np.concatenate([E.features, L.features]), rng)
        c = self._fit(E, L, rng, target)
        c = c if self.tolerance is None else within(c, experts, self.tolerance)
        self._last = replace(c, forbids=forbidden_words(c, experts, learners))
        return self._last

    def best_payoff(self, experts: Sequence[Behaviour], learners: Sequence[Behaviour]) -> float:
        """The payoff of the constraint fitted last: a lower bound.

        No exact maximum over networks is known, so a game that stops at a small payoff says
        only that the regression can no longer tell these learners from the experts.
        """
        c = self._last or self.initial()
        gaps = [J(pi, c) - J(pi_E, c) for pi, pi_E in zip(learners, experts, strict=True)]
        return float(np.mean(gaps) / self.T)

    def _fit(
        self, E: _Points, L: _Points, rng: np.random.Generator, target: Field | None
    ) -> MLPConstraint:
        mean, scale = _normalisation(E, L)
        mask = np.array([self.used is None or f.name in self.used for f in self.features])
        params = initial_layers([len(mask), *self.hidden, 1], mask, rng)
        penalty = 0.0 if self.tolerance is None else self.penalty
        half = self.batch // 2
        sides = np.repeat(np.array([-1.0, 1.0], np.float32), half)
        state = optax.scale_by_adam().init(params)
        falling = np.linspace(1.0, self.final_rate, self.steps) * self.learning_rate
        for done in range(0, self.steps, STEPS_AT_ONCE):
            count = min(STEPS_AT_ONCE, self.steps - done)
            phi = np.concatenate([E.draw(rng, (count, half)), L.draw(rng, (count, half))], axis=1)
            x = ((phi - mean) / scale).astype(np.float32)
            label = np.broadcast_to(sides, x.shape[:2])
            if target is not None:
                label = target(phi.reshape(-1, len(mask))).reshape(x.shape[:2]).astype(np.float32)
            rates = falling[done : done + count]
            params, state = _descend(params, state, x * mask, label, penalty, rates)
        layers = [(np.array(w), np.array(b)) for w, b in params]
        if not all(np.isfinite(w).all() and np.isfinite(b).all() for w, b in layers):
            raise SolverFailed("the network's fit did not stay finite: lower its learning rate")
        weights, biases = zip(*layers, strict=True)
        return MLPConstraint(self.features, mean, scale, weights, biases)


@dataclass(frozen=True, eq=False)
class _Points:
    """Features [n, d] with the cumulative probabilities [n] of drawing each."""

    features: Array
    cumulative: Array

    @classmethod
    def of(cls, group: Sequence[Behaviour], spread: float | None = None) -> _Points:
        features = np.concatenate([pi.features for pi in group])
        if not np.isfinite(features).all():
            raise InvalidInput("features must be finite to fit a network to them")
        visits = np.concatenate([pi.visits for pi in group])
        if spread is not None:
            squares = np.floor(features / spread).astype(np.int64)
            _, square = np.unique(squares, axis=0, return_inverse=True)
            visits = visits / np.bincount(square.ravel(), visits)[square.ravel()]
        cumulative = np.cumsum(visits)
        return cls(features, cumulative / cumulative[-1])

    @classmethod
    def everywhere(cls, points: Array, rng: np.random.Generator) -> _Points:
        """Points all over the box that some cover."""
        low, high = points.min(axis=0), points.max(axis=0)
        drawn = rng.uniform(low, high, (EVERYWHERE, len(low)))
        return cls(drawn, np.arange(1, EVERYWHERE + 1) / EVERYWHERE)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        rows = np.searchsorted(self.cumulative, rng.random(shape), side="right")
        return np.asarray(self.features[rows])

    def moments(self) -> tuple[Array, Array]:
        """Means of phi and phi^2."""
        p = np.diff(self.cumulative, prepend=0.0)
        return p @ self.features, p @ np.square(self.features)


def _normalisation(E: _Points, L: _Points) -> tuple[Array, Array]:
    """Mean and standard deviation over experts and learners; 1 for a feature that is constant."""
    (e1, e2), (l1, l2) = E.moments(), L.moments()
    mean = (e1 + l1) / 2
    scale = np.sqrt(np.maximum((e2 + l2) / 2 - mean**2, 0))
    return mean, np.where(scale > 1e-6 * np.maximum(1, np.abs(mean)), scale, 1.0)


def initial_layers(sizes: list[int], mask: NDArray[np.bool_], rng: np.random.Generator) -> Params:
    """Uniform in +-1/sqrt(inputs), as is usual for ReLU layers; zero rows for unused features."""
    layers: Params = []
    for inputs, outputs in pairwise(sizes):
        bound = 1 / np.sqrt(inputs)
        w = rng.uniform(-bound, bound, (inputs, outputs)).astype(np.float32)
        b = rng.uniform(-bound, bound, outputs).astype(np.float32)
        layers.append((w, b))
    layers[0] = (layers[0][0] * mask[:, None].astype(np.float32), layers[0][1])
    return layers


@jax.jit
def _descend(
    params: Params, state: Any, x: jax.Array, label: jax.Array, penalty: float, rates: jax.Array
) -> tuple[Params, Any]:
    """Adam over minibatches x [steps, batch, d], of which the first half are experts.

    label [steps, batch]: what is fitted; rates [steps]: the learning rates.

    An unused feature arrives as 0: its weights get no gradient and stay 0.
    """
    adam = optax.scale_by_adam()
    half = x.shape[1] // 2

    def loss(p: Params, batch: jax.Array, y: jax.Array) -> jax.Array:
        raw = network(p, batch)
        cost = jnp.log1p(jax.nn.relu(raw[:half])).mean()
        return jnp.square(raw - y).mean() + penalty * cost

    def step(
        carry: tuple[Params, Any], now: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[tuple[Params, Any], None]:
        (p, s), (batch, y, rate) = carry, now
        updates, s = adam.update(jax.grad(loss)(p, batch, y), s)
        scaled = jax.tree.map(lambda u: -rate * u, updates)
        return (optax.apply_updates(p, scaled), s), None

    rates = rates.astype(jnp.float32)
    (params, state), _ = jax.lax.scan(step, (params, state), (x, label, rates))
    return params, state


def network(params: Params, x: jax.Array) -> jax.Array:
    """x [n, d] -> [n]."""
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return jnp.squeeze(x @ w + b, axis=1)


def within(c: MLPConstraint, experts: Sequence[Behaviour], tolerance: float) -> MLPConstraint:
    """c with the smallest offset >= 0 for which J(pi_E^k, c) <= tolerance for every k.

    The experts' cost falls with the offset and is 0 at the largest output, so bisection down to
    neighbouring floats finds it, from the safe side.
    """
    outputs = [c.raw(pi.features) for pi in experts]

    def safe(offset: float) -> bool:
        return all(
            float(pi.visits @ np.log1p(np.maximum(raw - offset, 0))) <= tolerance
            for pi, raw in zip(experts, outputs, strict=True)
        )

    if safe(0.0):
        return c
    low = 0.0
    high = max(float(raw[pi.visits > 0].max()) for pi, raw in zip(experts, outputs, strict=True))
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if safe(middle) else (middle, high)
    return replace(c, offset=high)
