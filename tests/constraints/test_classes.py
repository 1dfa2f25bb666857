"""Convex classes: their projections, by brute force and by optimality conditions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from class_cases import (
    PLANE,
    SHAPE,
    T,
    brute_force_cone,
    feasible_points,
    on_cells,
    on_plane,
    table_case,
)
from ringfence.constraints.classes import LinearClass, TableClass, with_constant
from ringfence.objects import J
from ringfence.worlds.grid import FEATURES


@pytest.mark.parametrize("seed", range(30))
def test_linear_projection_is_the_nearest_point_of_cone_and_ball(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = with_constant(rng.normal(size=(int(rng.integers(1, 7)), 2)) + rng.normal(size=2))
    F_c = LinearClass(PLANE, radius=float(rng.uniform(0.2, 3)), feature_bound=4.0, rows=rows)
    x = rng.normal(size=3) * 2
    z = F_c.project(x)
    assert (rows @ z).max() <= 1e-12
    assert np.linalg.norm(z) <= F_c.radius + 1e-12
    # z is the projection iff (x - z) . (y - z) <= 0 for every y of the class; the largest
    # (x - z) . y over the cone and ball is the radius times the length of the cone's part.
    farthest = F_c.radius * np.linalg.norm(brute_force_cone(rows, x - z))
    assert farthest - (x - z) @ z <= 1e-9
    unbounded = replace(F_c, radius=np.inf).project(x)
    np.testing.assert_allclose(unbounded, brute_force_cone(rows, x), atol=1e-9)


@pytest.mark.parametrize("scale", [1e-2, 1.0, 1e3])
def test_linear_projection_copes_with_many_expert_points_of_any_scale(scale: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        points = scale * (rng.normal(size=(300, 2)) + rng.normal(size=2))
        F_c = LinearClass(PLANE, 1.0, 10 * scale, with_constant(points))
        x = rng.normal(size=3)
        z = replace(F_c, radius=np.inf).project(x)
        assert F_c.rows is not None
        assert (F_c.rows @ z).max() <= 1e-11 * max(1.0, scale)
        assert abs(z @ (x - z)) <= 1e-9  # Moreau: the two parts are orthogonal
        others = feasible_points(F_c, rng, 5000)
        assert (others @ (x - z)).max(initial=0.0) <= 1e-9


def test_no_direction_pays_where_the_experts_surround_the_learners() -> None:
    around = with_constant(np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]]))
    F_c = LinearClass(PLANE, 1.0, 2.0, around)
    # theta = (w, -offset) with every expert point safe pays nothing for visits in their midst.
    assert F_c.maximise(np.array([0.1, 0.1, 1.0])) @ np.array([0.1, 0.1, 1.0]) <= 1e-12
    assert F_c.maximise(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]


# Tables


def test_a_table_is_projected_cell_by_cell() -> None:
    F_c = TableClass(FEATURES, SHAPE, zero=np.eye(*SHAPE, dtype=bool))
    x = np.random.default_rng(0).normal(0.5, 1.0, SHAPE)
    expected = np.where(np.eye(*SHAPE, dtype=bool), 0.0, np.clip(x, 0.0, 1.0))
    np.testing.assert_array_equal(F_c.project(x.ravel()), expected.ravel())


def test_the_best_table_forbids_what_pays_and_is_open() -> None:
    F_c, _, _ = table_case(0, restricted=True)
    assert isinstance(F_c, TableClass)
    g = np.random.default_rng(1).normal(size=SHAPE)
    others = feasible_points(F_c, np.random.default_rng(2), 2000)
    assert g.ravel() @ F_c.maximise(g.ravel()) >= (others @ g.ravel()).max() - 1e-12
    assert F_c.zero is not None
    assert not F_c.maximise(g.ravel()).reshape(SHAPE)[F_c.zero].any()


def test_moments_give_the_cost_and_the_bounds_hold() -> None:
    """J(pi, c_theta) = theta . moments(pi); no table is longer than the radius, and no two
    behaviours' moments are further apart, per step, than the bound."""
    rng = np.random.default_rng(3)
    F_c = TableClass(FEATURES, SHAPE)
    for _ in range(20):
        one, two, theta = on_cells(rng, 0.4), on_cells(rng, 0.2), rng.random(SHAPE).ravel()
        assert J(one, F_c.constraint(theta)) == pytest.approx(theta @ F_c.moments(one))
        apart = np.linalg.norm(F_c.moments(one) - F_c.moments(two)) / T
        assert apart <= F_c.moment_bound + 1e-12
        assert np.linalg.norm(theta) <= F_c.radius


def test_linear_moments_give_the_raw_value() -> None:
    rng, F_c = np.random.default_rng(4), LinearClass(PLANE, 1.0, 4.0)
    pi, theta = on_plane(rng), rng.normal(size=3)
    assert J(pi, F_c.constraint(theta)) == pytest.approx(theta @ F_c.moments(pi))
