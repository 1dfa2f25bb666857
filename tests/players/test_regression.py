"""Constraint players, tested by optimality conditions and against brute force."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from class_cases import (
    CASES,
    SHAPE,
    Case,
    T,
    brute_force_cone,
    feasible_points,
    linear_case,
    table_case,
    theta_of,
)
from ringfence.constraints.classes import ConstraintClass, LinearClass, TableClass, with_constant
from ringfence.constraints.family import make_family
from ringfence.constraints.linear import LinearConstraint
from ringfence.constraints.table import TableConstraint
from ringfence.constraints.template import linear_template, parse_template
from ringfence.errors import InvalidInput
from ringfence.game import Rules, play
from ringfence.objects import Behaviour, Feature, J, Problem, Solution
from ringfence.players.ftrl import ftrl
from ringfence.players.network import MLPRegression
from ringfence.players.player import ConstraintPlayer, Ground, payoff_gradient
from ringfence.players.regression import (
    Config,
    Regression,
    TemplateRegression,
    make,
    regress,
    regress_restricted,
)
from ringfence.solvers import soft
from ringfence.worlds.finite import behaviour, occupancy
from ringfence.worlds.grid import FEATURES, maze
from speed_groups import EXPERT, LEARNER, OTHER
from speed_groups import FEATURES as SPEED_FEATURES
from speed_groups import T as SPEED_T

PLAYERS = [
    pytest.param(lambda F_c: ftrl(F_c, T, 5), id="ftrl"),
    pytest.param(lambda F_c: Regression(F_c, T), id="regression"),
]


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


# Least squares under inequalities


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


# Over a template


def loss(c, experts, learners) -> float:
    """The regression's loss: experts and learners with weight 1 each."""
    total = 0.0
    for side, label in ((experts, -1.0), (learners, 1.0)):
        steps = sum(pi.length for pi in side)
        total += sum(pi.visits @ (c.raw(pi.features) - label) ** 2 / steps for pi in side)
    return float(total)


def test_a_threshold_is_the_middle_of_both_means() -> None:
    template = parse_template("speed <= ?", SPEED_FEATURES)
    learners = [LEARNER, OTHER]
    theta = regress(template, [EXPERT], learners)
    expert = EXPERT.visits @ EXPERT.features[:, 2] / SPEED_T
    learner = sum(pi.visits @ pi.features[:, 2] for pi in learners) / (2 * SPEED_T)
    assert theta == pytest.approx([(expert + learner) / 2])


@pytest.mark.parametrize("text", ["speed <= ?", "? x - y <= 0", "? x + ? y <= ?", "? speed <= 1"])
def test_no_other_parameters_have_a_smaller_loss(text: str) -> None:
    template, rng = parse_template(text, SPEED_FEATURES), np.random.default_rng(1)
    theta = regress(template, [EXPERT], [LEARNER, OTHER])
    least = loss(template.constraint(theta), [EXPERT], [LEARNER, OTHER])
    for size in (1e-3, 0.1, 1.0):
        for _ in range(20):
            other = template.constraint(theta + size * rng.normal(size=len(theta)))
            assert loss(other, [EXPERT], [LEARNER, OTHER]) > least


RESTRICTED = ["speed <= ?", "? speed <= 1", "? x + ? y <= ?", "|y| <= ?", "speed >= ?"]


@pytest.mark.parametrize("text", RESTRICTED)
def test_restricted_regression_is_safe_and_nothing_safe_has_a_smaller_loss(text: str) -> None:
    template, rng = parse_template(text, SPEED_FEATURES), np.random.default_rng(2)
    experts, learners = [EXPERT, OTHER], [LEARNER]
    theta = regress_restricted(template, experts, learners)
    c = template.constraint(theta)
    assert max(J(pi, c) for pi in experts) == 0
    least = loss(c, experts, learners)
    tried = 0
    for size in (1e-3, 0.1, 1.0):
        for _ in range(400):
            other = template.constraint(theta + size * rng.normal(size=len(theta)))
            if all(J(pi, other) == 0 for pi in experts):
                tried += 1
                assert loss(other, experts, learners) > least - 1e-6
    assert tried > 20


def test_a_restricted_threshold_is_the_highest_expert_or_the_middle() -> None:
    template = parse_template("speed <= ?", SPEED_FEATURES)
    highest = EXPERT.features[:, 2].max()
    far = Behaviour(
        EXPERT.features + np.array([0, 0, 50]), EXPERT.visits, 0.0, 0.0, EXPERT.length, None
    )
    near = regress_restricted(template, [EXPERT], [LEARNER])
    assert near == pytest.approx([highest], rel=1e-6)
    middle = regress(template, [EXPERT], [far])
    assert regress_restricted(template, [EXPERT], [far]) == pytest.approx(middle)


def test_a_class_that_forbids_some_expert_s_step_whatever_is_learned_is_refused() -> None:
    template = parse_template("? x - y <= 0", SPEED_FEATURES)
    corners = np.array([[1.0, 1.0, 0.0], [-1.0, -2.0, 0.0], [0.0, -1.0, 0.0]])
    expert = Behaviour(corners, np.ones(3), 0.0, 0.0, 3.0, None)
    with pytest.raises(InvalidInput, match="forbids a step of some expert"):
        regress_restricted(template, [expert], [LEARNER])


def test_collinear_features_are_regressed_without_blowing_up() -> None:
    def doubled(pi: Behaviour) -> Behaviour:
        phi = pi.features.copy()
        phi[:, 1] = 2 * phi[:, 0]
        return Behaviour(phi, pi.visits, 0.0, 0.0, pi.length, None)

    theta = regress(
        linear_template(SPEED_FEATURES, ["x", "y"]), [doubled(EXPERT)], [doubled(LEARNER)]
    )
    assert np.abs(theta).max() < 10


# As a kind of player


def ground(text: str, multi_task: bool, on: tuple[str, ...] = ()) -> Ground:
    family = make_family(text, on, SPEED_FEATURES, None, None)
    return Ground(family, SPEED_T, [EXPERT], multi_task, 5, seed=3)


@pytest.mark.parametrize(
    ("multi_task", "asked", "restricted"),
    [(False, True, False), (True, False, False), (True, True, True)],
)
def test_a_template_s_experts_are_safe_in_the_multi_task_game(
    multi_task: bool, asked: bool, restricted: bool
) -> None:
    player = make(Config(restricted=asked), ground("speed <= ?", multi_task))
    assert isinstance(player, TemplateRegression)
    assert player.restricted == restricted
    cost = J(EXPERT, player.update([EXPERT], [[LEARNER]]))
    assert (cost == 0) == restricted


def test_a_table_is_restricted_unless_told_otherwise() -> None:
    _, experts, _ = table_case(0, restricted=False)
    cells = Ground(make_family("table", (), FEATURES, SHAPE, None), T, experts, True, 5, 0)
    for restricted in (True, False):
        player = make(Config(restricted=restricted), cells)
        assert isinstance(player, Regression)
        assert isinstance(player.F_c, TableClass)
        assert (player.F_c.zero is not None) == restricted


@pytest.mark.parametrize(
    ("config", "multi_task", "tolerance"),
    [
        (Config(), True, 0.0),
        (Config(tolerance=0.5), True, 0.5),
        (Config(), False, None),
        (Config(tolerance=0.5), False, 0.5),
        (Config(restricted=False, tolerance=0.5), True, None),
    ],
)
def test_a_networks_experts_are_safe_in_the_multi_task_game(
    config: Config, multi_task: bool, tolerance: float | None
) -> None:
    player = make(config, ground("mlp", multi_task, ("x", "y")))
    assert isinstance(player, MLPRegression)
    assert player.tolerance == tolerance
    assert player.used == ("x", "y")
    assert player.seed == (3, *Config().network.stream)


def test_a_tolerance_is_for_networks() -> None:
    with pytest.raises(InvalidInput, match="tolerance is for the class 'mlp'"):
        make(Config(tolerance=0.5), ground("speed <= ?", multi_task=False))
