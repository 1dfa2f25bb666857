"""Constraint players, tested by optimality conditions and against brute force."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import nnls

from ringfence.constraints.classes import ConstraintClass, LinearClass, TableClass, with_constant
from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.table import TableConstraint
from ringfence.game import Rules, play
from ringfence.objects import Array, Behaviour, Constraint, Feature, J, Problem, Solution
from ringfence.players.ftrl import FTRL, ftrl
from ringfence.players.base import ConstraintPlayer, payoff_gradient
from ringfence.players.regression import Regression, least_squares_under
from ringfence.solvers import soft
from ringfence.worlds.finite import behaviour, occupancy
from ringfence.worlds.grid import FEATURES, maze

SHAPE = (3, 4)
PLANE = (Feature("x", "m"), Feature("y", "m"))
T = 20.0


# A class with what a player over it has seen

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


PLAYERS = [
    pytest.param(lambda F_c: ftrl(F_c, T, 5), id="ftrl"),
    pytest.param(lambda F_c: Regression(F_c, T), id="regression"),
]


# FTRL


@pytest.mark.parametrize(("case", "restricted", "seed"), CASES)
@pytest.mark.parametrize("eta", [0.05, 1.0, 50.0])
def test_ftrl_update_is_the_argmax_of_its_objective(
    case: Case, restricted: bool, seed: int, eta: float
) -> None:
    F_c, experts, history = case(seed, restricted)
    total = np.sum([payoff_gradient(F_c, experts, pi, T) for pi in history], axis=0)
    theta = theta_of(FTRL(F_c, T, eta).update(experts, history))

    def objective(points: Array) -> Array:
        return np.asarray(points @ total - (points**2).sum(axis=-1) / (2 * eta))

    others = feasible_points(F_c, np.random.default_rng(99), 20_000)
    assert objective(theta) >= objective(others).max() - 1e-12
    # The optimality condition: the objective's gradient points out of the class.
    assert ((others - theta) @ (total - theta / eta)).max() <= 1e-10


@pytest.mark.parametrize(("case", "restricted", "seed"), CASES)
def test_payoff_is_linear_in_the_parameters(case: Case, restricted: bool, seed: int) -> None:
    F_c, experts, history = case(seed, restricted)
    c = ftrl(F_c, T, 4).update(experts, history)
    for learners in history:
        gap = [J(pi, c) - J(pi_E, c) for pi, pi_E in zip(learners, experts, strict=True)]
        g = payoff_gradient(F_c, experts, learners, T)
        assert g @ theta_of(c) == pytest.approx(np.mean(gap) / T, abs=1e-12)
        assert np.linalg.norm(g) <= F_c.moment_bound + 1e-12


@pytest.mark.parametrize(("case", "restricted", "seed"), CASES)
def test_best_payoff_is_the_class_s_maximum(case: Case, restricted: bool, seed: int) -> None:
    F_c, experts, history = case(seed, restricted)
    g = payoff_gradient(F_c, experts, history[0], T)
    best = ftrl(F_c, T, 4).best_payoff(experts, history[0])
    assert best == Regression(F_c, T).best_payoff(experts, history[0])
    assert (
        best >= max(0.0, (feasible_points(F_c, np.random.default_rng(5), 20_000) @ g).max()) - 1e-12
    )
    if isinstance(F_c, TableClass):
        open_ = np.ones(g.shape, bool) if F_c.zero is None else ~F_c.zero.ravel()
        assert best == pytest.approx(np.maximum(g, 0)[open_].sum(), abs=1e-12)
    else:
        cone = brute_force_cone(F_c.rows, g)
        assert best == pytest.approx(F_c.radius * np.linalg.norm(cone), abs=1e-9)


@pytest.mark.parametrize(("case", "restricted", "seed"), CASES)
def test_ftrl_s_rate_holds_against_an_adversary(case: Case, restricted: bool, seed: int) -> None:
    """Learners that change sides each round, the worst for a player that follows the leader."""
    F_c, experts, history = case(seed, restricted)
    N = 30
    rounds = [history[0] if i % 2 else experts[::-1] for i in range(N)]
    for scale in (0.1, 1.0, 10.0):
        best_for_N = ftrl(F_c, T, N)
        player = replace(best_for_N, eta=scale * best_for_N.eta)
        iterates = [player.initial()]
        iterates += [player.update(experts, rounds[:i]) for i in range(1, N)]
        gradients = np.array([payoff_gradient(F_c, experts, pi, T) for pi in rounds])
        own = np.cumsum([g @ theta_of(c) for g, c in zip(gradients, iterates, strict=True)])
        best = np.array([g @ F_c.maximise(g) for g in gradients.cumsum(axis=0)])
        rate = np.array([player.rate(n) for n in range(1, N + 1)])
        assert (best - own <= rate + 1e-9).all()


def test_ftrl_starts_from_nothing_forbidden() -> None:
    assert not theta_of(ftrl(TableClass(FEATURES, SHAPE), T, 5).initial()).any()
    assert not theta_of(ftrl(LinearClass(PLANE, 1.0, 2.0), T, 5).initial()).any()


def test_best_step_size_gives_the_rate_D_G_sqrt_N() -> None:
    F_c = TableClass(FEATURES, SHAPE)
    player = ftrl(F_c, T, 50)
    assert player.rate(50) == pytest.approx(F_c.radius * F_c.moment_bound * np.sqrt(50))
    assert player.rate(50) < min(replace(player, eta=k * player.eta).rate(50) for k in (0.9, 1.1))


# The restricted class


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("player_of", PLAYERS)
def test_restricted_tables_are_exactly_zero_where_an_expert_went(
    player_of: Callable[[ConstraintClass], ConstraintPlayer], seed: int
) -> None:
    F_c, experts, history = table_case(seed, restricted=True)
    player = player_of(F_c)
    iterates = [player.initial()]
    iterates += [player.update(experts, history[: i + 1]) for i in range(len(history))]
    for c in iterates:
        for pi_E in experts:
            assert not c.cost(pi_E.features).any()
            assert J(pi_E, c) == 0.0
    assert theta_of(iterates[-1]).any()  # and it still forbids something


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("player_of", PLAYERS)
def test_restricted_linear_constraints_call_every_expert_point_safe(
    player_of: Callable[[ConstraintClass], ConstraintPlayer], seed: int
) -> None:
    F_c, experts, history = linear_case(seed, restricted=True)
    player = player_of(F_c)
    for i in range(len(history)):
        c = player.update(experts, history[: i + 1])
        for pi_E in experts:
            assert c.raw(pi_E.features).max() <= 1e-12


# Projections of the linear class


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


# Least squares under inequalities


@pytest.mark.parametrize("seed", range(30))
def test_least_squares_under_rows_meets_the_optimality_conditions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(20, 4)), rng.normal(size=20)
    rows = rng.normal(size=(int(rng.integers(1, 12)), 4))
    x = least_squares_under(A, b, rows)
    spare = rows @ x
    assert spare.max() <= 1e-10
    # -gradient = rows^T y with y >= 0 on the active rows and 0 elsewhere.
    gradient = A.T @ (A @ x - b)
    active = rows[spare > -1e-8]
    unexplained = nnls(active.T, -gradient)[1] if len(active) else np.linalg.norm(gradient)
    assert unexplained <= 1e-8


@pytest.mark.parametrize("seed", range(10))
def test_inactive_rows_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(15, 3)), rng.normal(size=15)
    free = np.linalg.lstsq(A, b)[0]
    rows = rng.normal(size=(5, 3))
    rows *= -np.sign(rows @ free)[:, None]  # all satisfied, none at its edge
    np.testing.assert_allclose(least_squares_under(A, b, None), free, atol=1e-10)
    np.testing.assert_allclose(least_squares_under(A, b, rows), free, atol=1e-10)


def test_directions_without_data_stay_zero() -> None:
    A = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    x = least_squares_under(A, np.array([3.0, 4.0]), np.array([[1.0, 0.0, 5.0]]))
    np.testing.assert_allclose(x, [0.0, 2.0, 0.0], atol=1e-10)


# The paper's regression


@pytest.mark.parametrize("seed", range(20))
def test_table_regression_is_the_least_squares_fit_above_one_half(seed: int) -> None:
    F_c, experts, history = table_case(seed, restricted=False)
    learners = [pi for iteration in history for pi in iteration]
    # One row per visited point: its cell's indicator, the label, half of the weight each side.
    indicator, label, weight = [], [], []
    for group, sign in ((experts, -1.0), (learners, 1.0)):
        total = sum(pi.length for pi in group)
        for pi in group:
            cells = np.ravel_multi_index(tuple(pi.features.astype(int).T), SHAPE)
            indicator.append(np.eye(F_c.moments(pi).size)[cells])
            label.append(np.full(len(cells), sign))
            weight.append(pi.visits / total)
    root = np.sqrt(np.concatenate(weight))
    fit = np.linalg.lstsq(root[:, None] * np.vstack(indicator), root * np.concatenate(label))[0]
    c = Regression(F_c, T).update(experts, history)
    assert isinstance(c, TableConstraint)
    np.testing.assert_array_equal(c.forbidden.ravel(), fit > 0.5)


@pytest.mark.parametrize("seed", range(10))
def test_linear_regression_is_the_weighted_least_squares_fit(seed: int) -> None:
    F_c, experts, history = linear_case(seed, restricted=False)
    learners = [pi for iteration in history for pi in iteration]
    c = Regression(F_c, T).update(experts, history)
    # Equal total weight on either side, labels -1 and +1: the normal equations.
    normal, right = np.zeros((3, 3)), np.zeros(3)
    for group, sign in ((experts, -1.0), (learners, 1.0)):
        for pi in group:
            psi, w = with_constant(pi.features), pi.visits / (T * len(group))
            normal += psi.T @ (w[:, None] * psi)
            right += sign * (w @ psi)
    np.testing.assert_allclose(theta_of(c), np.linalg.solve(normal, right), atol=1e-9)


def test_threshold_regression_has_the_midpoint_closed_form() -> None:
    """Two clouds of equal spread on one feature: the fit is 0 halfway between their means."""
    speed = (Feature("speed", "m/s"),)
    slow = Behaviour(np.array([[0.4], [0.6]]), np.array([10.0, 10.0]), 0.0, 0.0, T, None)
    fast = Behaviour(np.array([[0.9], [1.1]]), np.array([10.0, 10.0]), 0.0, 0.0, T, None)
    c = Regression(LinearClass(speed, 10.0, 2.0), T).update([slow], [[fast]])
    assert isinstance(c, LinearConstraint)
    assert c.offset / c.weights[0] == pytest.approx((0.5 + 1.0) / 2)


def test_regression_reproduces_the_anchor_curve_on_the_maze() -> None:
    world = maze()
    walls = world.truth.walls
    cost = np.repeat(walls.reshape(-1, 1).astype(float), 5, axis=1)
    experts = [
        behaviour(task, occupancy(task.mdp, soft.solve(task.mdp, cost, 0.0, 0.05)[0]))
        for task in world.tasks
    ]
    solver = soft.SoftSolver()

    def solve_all(problems: Sequence[Problem]) -> list[Solution]:
        return [solver(problem) for problem in problems]

    player = Regression(TableClass(FEATURES, world.shape), 30.0)
    curve, violations = [], []
    for record in play(world.tasks, experts, solve_all, player, Rules(iterations=5)):
        assert isinstance(record.c_next, TableConstraint)
        found = record.c_next.forbidden
        curve.append((found & walls).sum() / (found | walls).sum())
        violations.append(np.mean([world.truth.true_cost(pi) for pi in record.learners]))
    assert np.round(curve, 3).tolist() == [0.837, 0.9, 0.947, 0.947, 0.973]
    assert np.round(violations, 1).tolist() == [5.2, 0, 0, 0, 0]
