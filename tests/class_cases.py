"""Classes of constraints with what a player over them has seen, for tests."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product

import numpy as np
import pytest
from scipy.linalg import null_space

from ringfence.constraints.classes import ConstraintClass, LinearClass, TableClass
from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.table import TableConstraint
from ringfence.objects import Array, Behaviour, Constraint, Feature
from ringfence.worlds.grid import FEATURES

SHAPE = (3, 4)
PLANE = (Feature("x", "m"), Feature("y", "m"))
T = 20.0

Seen = tuple[ConstraintClass, list[Behaviour], list[list[Behaviour]]]
Case = Callable[[int, bool], Seen]


def on_cells(rng: np.random.Generator, share: float) -> Behaviour:
    """Visits to a random share of the cells."""
    cells = np.argwhere(rng.random(SHAPE) < share).astype(float)
    if not len(cells):
        cells = np.zeros((1, 2))
    return with_visits(cells, rng)


def on_plane(rng: np.random.Generator, centre: Array | float = 0.0) -> Behaviour:
    return with_visits(rng.uniform(-1, 1, (6, 2)) + centre, rng)


def with_visits(features: Array, rng: np.random.Generator) -> Behaviour:
    visits = T * rng.dirichlet(np.ones(len(features)))
    return Behaviour(features, visits, 0.0, 0.0, T, None)


def table_case(seed: int, restricted: bool) -> Seen:
    rng = np.random.default_rng(seed)
    experts = [on_cells(rng, 0.25) for _ in range(3)]
    history = [[on_cells(rng, 0.5) for _ in experts] for _ in range(4)]
    F_c = TableClass(FEATURES, SHAPE)
    return F_c.restricted(experts) if restricted else F_c, experts, history


def linear_case(seed: int, restricted: bool) -> Seen:
    rng = np.random.default_rng(seed)
    experts = [on_plane(rng) for _ in range(2)]
    away = rng.normal(size=2)
    history = [[on_plane(rng, away * rng.uniform(0, 3)) for _ in experts] for _ in range(4)]
    F_c = LinearClass(PLANE, radius=1.5, feature_bound=8.0)
    return F_c.restricted(experts) if restricted else F_c, experts, history


def theta_of(c: Constraint) -> Array:
    if isinstance(c, TableConstraint):
        return c.values.ravel()
    assert isinstance(c, LinearConstraint)
    return np.append(c.weights, -c.offset)


def feasible_points(F_c: ConstraintClass, rng: np.random.Generator, count: int) -> Array:
    """Points of the class by rejection, without the class's own projection, [n, parameters]."""
    if isinstance(F_c, TableClass):
        points = rng.random((count, int(np.prod(F_c.shape))))
        points[: count // 2] = points[: count // 2] > 0.5
        return points if F_c.zero is None else points * ~F_c.zero.ravel()
    points = rng.normal(size=(count, len(F_c.features) + 1))
    points *= F_c.radius * rng.random((count, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    return points if F_c.rows is None else points[(points @ F_c.rows.T <= 0).all(axis=1)]


CASES = [
    pytest.param(
        case, restricted, seed, id=f"{name}-{'restricted' if restricted else 'full'}-{seed}"
    )
    for (name, case), restricted, seed in product(
        [("table", table_case), ("linear", linear_case)], [False, True], range(8)
    )
]


def brute_force_cone(rows: Array | None, x: Array) -> Array:
    """The nearest point of {rows @ z <= 0} to x: the best over all sets of active rows."""
    if rows is None:
        return x
    nearest, distance = np.zeros_like(x), float(np.linalg.norm(x))
    for size in range(len(x)):
        for active in combinations(range(len(rows)), size):
            basis = null_space(rows[list(active)]) if active else np.eye(len(x))
            z = basis @ (basis.T @ x)
            if (rows @ z <= 1e-9).all() and np.linalg.norm(x - z) < distance:
                nearest, distance = z, float(np.linalg.norm(x - z))
    return nearest
