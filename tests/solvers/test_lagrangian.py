"""Algorithm 1 on finite worlds, against the exact LP."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.constraints.table import TableConstraint
from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.objects import Array, Problem
from ringfence.solvers import soft
from ringfence.solvers.lagrangian import (
    GRADIENT,
    PID,
    STEPS,
    Config,
    Gains,
    LagrangianSolver,
    best_response,
    crl,
    make,
    scaled,
)
from ringfence.solvers.lp import LPSolution, OccupancyLP
from ringfence.worlds.finite import FiniteMDP, from_tensor, occupancy
from ringfence.worlds.grid import FEATURES, maze

random_problems = settings(max_examples=200, derandomize=True, deadline=None, database=None)
fewer_problems = settings(random_problems, max_examples=40)
both_updates = pytest.mark.parametrize("gains", [GRADIENT, PID], ids=["gradient", "pid"])

#: The two policies of this world are worth (cost, reward) (0, 0) and (1, 2).
TWO_POLICIES = from_tensor(np.ones((1, 2, 1)), np.ones(1), np.array([[0.0, 2.0]]), horizon=1)
TWO_COSTS = np.array([[0.0, 1.0]])


@dataclass(frozen=True, eq=False)
class ConstrainedMDP:
    mdp: FiniteMDP
    c: Array
    delta: float

    @property
    def exact(self) -> LPSolution:
        return OccupancyLP(self.mdp).solve(self.c[None], np.array([self.delta]))


@st.composite
def constrained_mdps(draw: st.DrawFn, signed_rewards: bool = False) -> ConstrainedMDP:
    """The limit lies between the least cost and that of the best policy, or a bit above."""
    S, A = draw(st.integers(2, 6)), draw(st.integers(2, 4))
    horizon, seed = draw(st.none() | st.integers(2, 8)), draw(st.integers(0, 2**32 - 1))
    return random_problem(np.random.default_rng(seed), S, A, horizon, signed_rewards)


def random_problem(
    rng: np.random.Generator, S: int, A: int, horizon: int | None, signed_rewards: bool
) -> ConstrainedMDP:
    P, start = rng.dirichlet(np.full(S, 0.5), size=(S, A)), rng.dirichlet(np.ones(S))
    r = rng.normal(size=(S, A)) if signed_rewards else rng.random((S, A))
    c = rng.random((S, A)) if rng.random() < 0.7 else rng.integers(0, 2, size=(S, A)) * 1.0
    mdp = from_tensor(P, start, r, horizon, 1.0 if horizon else rng.uniform(0.5, 0.9))
    least, free = (total(mdp, soft.plan(mdp, aim, 0.0)[0], c) for aim in (-c, r))
    return ConstrainedMDP(mdp, c, least + rng.uniform(0.1, 1.1) * (free - least))


def total(mdp: FiniteMDP, pi: Array, x: Array) -> float:
    """J(pi, x)."""
    return float((occupancy(mdp, pi) * x).sum())


def return_range(mdp: FiniteMDP, x: Array) -> float:
    """The largest J(pi, x) minus the least."""
    most, least = (total(mdp, soft.plan(mdp, aim, 0.0)[0], x) for aim in (x, -x))
    return most - least


@random_problems
@given(constrained_mdps())
def test_the_mixture_is_within_one_percent_of_the_lp(problem: ConstrainedMDP) -> None:
    mdp, c = problem.mdp, problem.c
    exact = problem.exact
    for gains in (GRADIENT, PID):
        mixture = crl(mdp, c, problem.delta, scaled(gains, mdp, c), STEPS)
        assert mixture.value == pytest.approx(exact.value, rel=0.01)
        assert mixture.cost == pytest.approx(exact.cost[0], rel=0.01, abs=1e-9)


@fewer_problems
@given(constrained_mdps(signed_rewards=True))
def test_with_rewards_of_both_signs_it_is_one_percent_of_the_range_of_returns(
    problem: ConstrainedMDP,
) -> None:
    # A return near 0 is no measure of an error, so here the range of returns is one too.
    mdp, c = problem.mdp, problem.c
    exact = problem.exact
    reward_scale = max(abs(exact.value), return_range(mdp, mdp.reward))
    cost_scale = max(abs(exact.cost[0]), return_range(mdp, c))
    for gains in (GRADIENT, PID):
        mixture = crl(mdp, c, problem.delta, scaled(gains, mdp, c), STEPS)
        assert abs(mixture.value - exact.value) <= 0.01 * reward_scale
        assert abs(mixture.cost - exact.cost[0]) <= 0.01 * cost_scale


@fewer_problems
@given(constrained_mdps(), st.floats(0, 10))
def test_a_best_response_is_optimal_on_the_whole_interval_it_claims(
    problem: ConstrainedMDP, lam: float
) -> None:
    mdp, c = problem.mdp, problem.c
    pi, cost, low, high = best_response(mdp, c, lam)
    assert low <= lam <= high
    assert cost == pytest.approx(total(mdp, pi, c), abs=1e-9)
    for mu in (low, lam, (low + min(high, 100.0)) / 2, min(high, 100.0)):
        r = mdp.reward - mu * c
        best = soft.plan(mdp, r, 0.0)[0]
        assert total(mdp, pi, r) == pytest.approx(total(mdp, best, r), abs=1e-7)


@fewer_problems
@given(constrained_mdps())
def test_remembered_best_responses_change_nothing(problem: ConstrainedMDP) -> None:
    """The same course as Algorithm 1 written down naively, with a plan in each step."""
    mdp, c, steps = problem.mdp, problem.c, 20
    gains = scaled(PID, mdp, c)
    course, lam, integral, before, signs = [], 0.0, 0.0, np.inf, [True]
    for _ in range(steps):
        cost = total(mdp, soft.plan(mdp, mdp.reward - lam * c, 0.0)[0], c)
        course.append((lam, cost))
        error = cost - problem.delta
        signs.append(error > 0)
        eta = (1 + np.count_nonzero(np.diff(signs))) ** -gains.fall
        integral = max(0.0, integral + eta * error)
        push = gains.kp * error + gains.kd * max(0.0, cost - before)
        lam, before = max(0.0, gains.ki * integral + eta * push), cost
    mixture = crl(mdp, c, problem.delta, gains, steps)
    np.testing.assert_allclose(mixture.lams, [x for x, _ in course], atol=1e-7)
    np.testing.assert_allclose(mixture.costs, [x for _, x in course], atol=1e-7)
    assert mixture.lam == pytest.approx(lam, abs=1e-7)


@both_updates
def test_the_mixture_is_what_its_policy_does(gains: Gains) -> None:
    problem = random_problem(np.random.default_rng(0), 5, 3, 6, signed_rewards=False)
    mdp, c = problem.mdp, problem.c
    mixture = crl(mdp, c, problem.delta, scaled(gains, mdp, c), 500)
    np.testing.assert_allclose(occupancy(mdp, mixture.pi), mixture.rho, atol=1e-12)
    assert mixture.value == pytest.approx(total(mdp, mixture.pi, mdp.reward))
    assert mixture.cost == pytest.approx(total(mdp, mixture.pi, c))
    assert mixture.cost == pytest.approx(mixture.costs.mean())
    assert mixture.mean_lam == pytest.approx(mixture.lams.mean())
    assert mixture.lams.shape == mixture.costs.shape == (500,)


def test_the_classical_gradient_step_is_the_papers() -> None:
    eta, delta = 0.5, 0.25
    mixture = crl(TWO_POLICIES, TWO_COSTS, delta, Gains(kp=0.0, ki=eta, kd=0.0, fall=0.0), 200)
    assert mixture.lams[0] == 0
    after = np.maximum(0.0, mixture.lams + eta * (mixture.costs - delta))
    np.testing.assert_allclose(after[:-1], mixture.lams[1:], atol=1e-12)
    assert mixture.lam == pytest.approx(after[-1])
    # The best response pays 2 for a cost of 1, so it is taken while lam <= 2.
    np.testing.assert_array_equal(mixture.costs, mixture.lams < 2)


def test_no_single_policy_has_the_mixtures_cost() -> None:
    mixture = crl(TWO_POLICIES, TWO_COSTS, 0.25, scaled(GRADIENT, TWO_POLICIES, TWO_COSTS), STEPS)
    assert set(mixture.costs) == {0.0, 1.0}
    assert mixture.cost == pytest.approx(0.25, rel=0.01)
    assert mixture.value == pytest.approx(0.5, rel=0.01)
    assert mixture.lam == pytest.approx(2, rel=0.05)


@both_updates
def test_a_loose_limit_leaves_the_multiplier_at_0(gains: Gains) -> None:
    mixture = crl(TWO_POLICIES, TWO_COSTS, 1.0, gains, 50)
    assert (mixture.lams == 0).all()
    assert (mixture.value, mixture.cost, mixture.plans) == (2.0, 1.0, 1)


def test_equal_rewards_give_the_multiplier_a_unit_too() -> None:
    mdp = from_tensor(np.ones((1, 2, 1)), np.ones(1), np.zeros((1, 2)), horizon=1)
    costs = 1 - TWO_COSTS  # the tie at lam = 0 goes to the first action, the costly one
    mixture = crl(mdp, costs, 0.1, scaled(GRADIENT, mdp, costs), STEPS)
    assert mixture.cost <= 0.1


@both_updates
def test_the_same_problem_gives_the_same_bytes(gains: Gains) -> None:
    problem = random_problem(np.random.default_rng(1), 4, 3, None, signed_rewards=True)
    runs = [crl(problem.mdp, problem.c, problem.delta, gains, 300) for _ in range(2)]
    for name in ("rho", "pi", "lams", "costs"):
        assert getattr(runs[0], name).tobytes() == getattr(runs[1], name).tobytes()


@both_updates
def test_in_the_maze_the_solver_comes_within_one_percent_of_the_lp(gains: Gains) -> None:
    world = maze()
    walls = TableConstraint(FEATURES, world.truth.walls.astype(float))
    task = world.tasks[9]
    problem = Problem(task, walls, delta=1.0, start=None, seed=())
    solution = LagrangianSolver(gains)(problem)
    exact = OccupancyLP(task.mdp).solve(soft.pair_costs(task, problem)[None], np.array([1.0]))
    assert solution.behaviour.reward == pytest.approx(exact.value, rel=0.01)
    assert world.truth.true_cost(solution.behaviour) == pytest.approx(1.0, rel=0.01)
    assert solution.lam == pytest.approx(exact.lam[0], rel=0.05)
    assert solution.env_steps == 0


def test_an_infeasible_limit_is_named_with_the_least_cost() -> None:
    with pytest.raises(InfeasibleLimit, match=r"within 0\.5: the least achievable is 1$"):
        crl(TWO_POLICIES, 1 + TWO_COSTS, 0.5, GRADIENT, 10)


def test_what_can_not_be_used_is_refused() -> None:
    for c, delta, steps, word in (
        (TWO_COSTS, np.nan, 10, "finite"),
        (TWO_COSTS * np.nan, 0.5, 10, "finite"),
        (TWO_COSTS[0], 0.5, 10, "shape"),
        (TWO_COSTS, 0.5, 0, "at least one step"),
    ):
        with pytest.raises(InvalidInput, match=word):
            crl(TWO_POLICIES, c, delta, GRADIENT, steps)


def test_a_task_that_is_not_finite_is_refused() -> None:
    class Elsewhere:
        name, features, horizon = "elsewhere", FEATURES, 10

    walls = TableConstraint(FEATURES, np.zeros((1, 1)))
    with pytest.raises(InvalidInput, match="elsewhere"):
        LagrangianSolver()(Problem(Elsewhere(), walls, 0.0, None, ()))


def test_the_settings_choose_the_multipliers_step() -> None:
    for kind, gains in (("gradient", GRADIENT), ("pid", PID)):
        solver = make(Config(multiplier=kind, steps=7)).solve
        assert (solver.gains, solver.steps) == (gains, 7)
