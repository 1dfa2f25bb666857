"""The occupancy LP, tested by its optimality conditions and against answers found by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.constraints.table import TableConstraint
from ringfence.errors import InfeasibleLimit, InvalidInput, SolverFailed, UnboundedProblem
from ringfence.objects import Array, Feature, Problem
from ringfence.solvers import soft
from ringfence.solvers.lp import OPTIONS, LPSolution, LPSolver, OccupancyLP, reachable
from ringfence.worlds.finite import FiniteMDP, FiniteTask, behaviour, from_tensor, occupancy
from ringfence.worlds.grid import FEATURES, maze, safe_distances

EXACT = 1e-7
random_problems = settings(max_examples=200, derandomize=True, deadline=None, database=None)
fewer_problems = settings(random_problems, max_examples=60)


@dataclass(frozen=True, eq=False)
class ConstrainedMDP:
    mdp: FiniteMDP
    costs: Array
    limits: Array


@st.composite
def constrained_mdps(draw: st.DrawFn) -> ConstrainedMDP:
    """Limits lie between the costs of a careful policy and of the best one, or a bit above."""
    S, A, m = draw(st.integers(2, 6)), draw(st.integers(2, 4)), draw(st.integers(1, 2))
    horizon = draw(st.none() | st.integers(2, 8))
    room = draw(st.floats(0.05, 1.2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    P = rng.dirichlet(np.full(S, 0.4), size=(S, A))
    P[P < 0.1] = 0.0  # so that some states can't be met
    start = np.eye(S)[0] if rng.random() < 0.5 else rng.dirichlet(np.ones(S))
    discount = 1.0 if horizon else rng.uniform(0.5, 0.97)
    P, r = P / P.sum(axis=2, keepdims=True), rng.normal(size=(S, A))
    costs = rng.random((m, S, A))
    if rng.random() < 0.3:
        costs = np.round(costs)
    mdp = from_tensor(P, start, r, horizon, discount)
    best, careful = (policy_costs(mdp, aim, costs) for aim in (r, -costs.sum(axis=0)))
    return ConstrainedMDP(mdp, costs, careful + room * np.maximum(best - careful, 0.0))


def policy_costs(mdp: FiniteMDP, aim: Array, costs: Array) -> Array:
    """J(pi, c_k) of the best policy for the reward `aim`."""
    rho = occupancy(mdp, soft.plan(mdp, aim, 0.0)[0])
    per_pair = rho.sum(axis=0) if rho.ndim == 3 else rho
    return (per_pair * costs).sum(axis=(1, 2))


def layers(mdp: FiniteMDP, x: Array) -> Array:
    """With a time axis of length 1 where there is no horizon."""
    return x[None] if mdp.horizon is None else x


def inflow(mdp: FiniteMDP, rho: Array) -> Array:
    """What the flow rows demand of sum_a rho, [T, S]."""
    into = np.array([mdp.discount * (mdp.transition_t @ x.ravel()) for x in layers(mdp, rho)])
    if mdp.horizon is None:
        return mdp.start + into
    return np.vstack([mdp.start, into[:-1]])


def reduced_costs(mdp: FiniteMDP, costs: Array, found: LPSolution) -> Array:
    """V - (r - lam c + discount * P V), [T, S, A], 0 for states that can't be met."""
    V = layers(mdp, found.V)
    ahead = V if mdp.horizon is None else np.vstack([V[1:], np.zeros(mdp.num_states)])
    Q = (
        mdp.reward
        - np.tensordot(found.lam, costs, axes=1)
        + np.array([mdp.discount * (mdp.transition @ v).reshape(mdp.reward.shape) for v in ahead])
    )
    return np.where(reachable(mdp)[:, :, None], V[:, :, None] - Q, 0.0)


def bytes_of(found: LPSolution) -> bytes:
    arrays = (found.pi, found.rho, found.lam, found.cost, found.V, np.array(found.value))
    return b"".join(x.tobytes() for x in arrays)


def one_state(*costs: list[float], reward: list[float] | None = None) -> tuple[FiniteMDP, Array]:
    """One step in one state: a policy is a distribution over the actions."""
    r = np.array([[0.0] * len(costs[0]) if reward is None else reward])
    mdp = from_tensor(np.ones((1, r.size, 1)), np.ones(1), r, horizon=1)
    return mdp, np.array(costs, dtype=float)[:, None, :]


@random_problems
@given(constrained_mdps())
def test_solutions_satisfy_the_optimality_conditions(problem: ConstrainedMDP) -> None:
    mdp, limits = problem.mdp, problem.limits
    found = OccupancyLP(mdp).solve(problem.costs, limits)
    rho, slack = layers(mdp, found.rho), reduced_costs(mdp, problem.costs, found)
    # primal: flow, signs, limits
    assert np.abs(rho.sum(axis=2) - inflow(mdp, found.rho)).max() < EXACT
    assert rho.min() >= 0
    assert (found.cost <= limits + EXACT).all()
    # dual: signs of multipliers and reduced costs
    assert found.lam.min() >= 0
    assert slack.min() > -EXACT
    # complementary slackness and no gap
    assert np.abs(found.lam * (limits - found.cost)).max() < EXACT
    assert np.abs(rho * slack).max() < EXACT
    dual = mdp.start @ layers(mdp, found.V)[0] + found.lam @ limits
    assert abs(found.value - dual) < EXACT


@fewer_problems
@given(constrained_mdps())
def test_the_policy_realises_the_occupancy(problem: ConstrainedMDP) -> None:
    found = OccupancyLP(problem.mdp).solve(problem.costs, problem.limits)
    np.testing.assert_allclose(found.pi.sum(axis=-1), 1.0, atol=1e-12)
    np.testing.assert_allclose(occupancy(problem.mdp, found.pi), found.rho, atol=EXACT)


@fewer_problems
@given(constrained_mdps())
def test_a_limit_that_does_not_bind_leaves_value_iteration(problem: ConstrainedMDP) -> None:
    mdp = problem.mdp
    found = OccupancyLP(mdp).solve(problem.costs, np.full(len(problem.costs), 1e3))
    V = layers(mdp, soft.plan(mdp, mdp.reward, 0.0)[1])
    assert found.value == pytest.approx(mdp.start @ V[0], abs=EXACT)
    assert (found.lam == 0).all()
    visited = layers(mdp, found.rho).sum(axis=2) > EXACT
    assert np.abs(layers(mdp, found.V) - V)[visited].max() < EXACT


@fewer_problems
@given(constrained_mdps())
def test_the_least_cost_is_a_limit_that_can_be_kept(problem: ConstrainedMDP) -> None:
    cost = problem.costs[:1]
    least = policy_costs(problem.mdp, -cost[0], cost)
    found = OccupancyLP(problem.mdp).solve(cost, least)
    assert found.cost == pytest.approx(least, abs=1e-8)


def test_a_two_step_world_solved_by_hand() -> None:
    # s0: stay (r 1, c 0) or go to s1 (r 2, c 1); s1: rest (0, 0) or work (r 4, c 2). Plans from
    # s0 have (cost, reward) (0, 2), (1, 3), (1, 2), (3, 6): the frontier is 2 + 4/3 cost.
    P = np.array([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], dtype=float)
    mdp = from_tensor(P, np.array([1.0, 0]), np.array([[1.0, 2], [0, 4]]), horizon=2)
    found = OccupancyLP(mdp).solve(np.array([[[0.0, 1], [0, 2]]]), np.array([1.5]))
    assert found.value == pytest.approx(4)
    assert found.cost == pytest.approx([1.5])
    assert found.lam == pytest.approx([4 / 3])
    half = np.array([[[0.5, 0.5], [0, 0]], [[0.5, 0], [0, 0.5]]])
    np.testing.assert_allclose(found.rho, half, atol=1e-12)
    uniform_where_unmet = np.array([[[0.5, 0.5], [0.5, 0.5]], [[1, 0], [0, 1]]])
    np.testing.assert_allclose(found.pi, uniform_where_unmet, atol=1e-12)
    np.testing.assert_allclose(found.V, [[2, 0], [1, 4 / 3]], atol=1e-12)


def test_a_discounted_world_solved_by_hand() -> None:
    # Two visits in all; each of the half visit that the limit allows is worth 1 more.
    one = np.ones((1, 2, 1))
    mdp = from_tensor(one, np.ones(1), np.array([[1.0, 2]]), horizon=None, discount=0.5)
    found = OccupancyLP(mdp).solve(np.array([[[0.0, 1]]]), np.array([0.5]))
    np.testing.assert_allclose(found.rho, [[1.5, 0.5]])
    np.testing.assert_allclose(found.pi, [[0.75, 0.25]])
    assert (found.value, found.lam[0], found.V[0]) == pytest.approx((2.5, 1, 2))


def test_a_total_reward_world_solved_by_hand() -> None:
    # Action 0 ends the episode, action 1 with probability 1/2: rho_0 = 1 - rho_1 / 2.
    P = np.array([[[0.0], [0.5]]])
    mdp = from_tensor(P, np.ones(1), np.array([[1.0, 1]]), horizon=None)
    found = OccupancyLP(mdp).solve(np.array([[[0.0, 1]]]), np.array([1.0]))
    np.testing.assert_allclose(found.rho, [[0.5, 1]])
    assert (found.value, found.lam[0]) == pytest.approx((1.5, 0.5))


def test_two_limits_bind_at_once() -> None:
    mdp, costs = one_state([0, 1, 0], [0, 0, 1], reward=[0, 2, 3])
    found = OccupancyLP(mdp).solve(costs, np.array([0.25, 0.5]))
    np.testing.assert_allclose(found.pi, [[[0.25, 0.25, 0.5]]])
    assert found.value == pytest.approx(2)
    np.testing.assert_allclose(found.lam, [2, 3])


def test_no_cost_at_all_is_a_problem_too() -> None:
    mdp, costs = one_state([0, 1], reward=[1, 2])
    found = OccupancyLP(mdp).solve(costs[:0], np.zeros(0))
    assert found.value == 2
    assert found.lam.shape == found.cost.shape == (0,)


@fewer_problems
@given(constrained_mdps(), constrained_mdps())
def test_an_answer_does_not_depend_on_what_was_solved_before(
    problem: ConstrainedMDP, other: ConstrainedMDP
) -> None:
    program, shape = OccupancyLP(problem.mdp), problem.mdp.reward.shape
    first = program.solve(problem.costs, problem.limits)
    program.solve(problem.costs[:1], problem.limits[:1])
    program.solve(np.resize(other.costs, (3, *shape)), np.full(3, 1e3))
    with pytest.raises(InfeasibleLimit):
        program.solve(problem.costs, problem.limits - 1e3)
    again = program.solve(problem.costs, problem.limits)
    fresh = OccupancyLP(problem.mdp).solve(problem.costs, problem.limits)
    assert bytes_of(first) == bytes_of(again) == bytes_of(fresh)


def test_an_unattainable_limit_is_named_with_the_least_cost() -> None:
    mdp, costs = one_state([0.5, 1])
    with pytest.raises(InfeasibleLimit, match=r"within 0\.3: the least achievable is 0\.5"):
        OccupancyLP(mdp).solve(costs, np.array([0.3]))


def test_among_several_limits_the_unattainable_one_is_named() -> None:
    mdp, costs = one_state([0, 1], [0.5, 1])
    with pytest.raises(InfeasibleLimit, match=r"^no policy keeps cost 1 within 0\.3: .* is 0\.5$"):
        OccupancyLP(mdp).solve(costs, np.array([0.3, 0.3]))


@fewer_problems
@given(constrained_mdps())
def test_limits_that_contradict_each_other_are_named(problem: ConstrainedMDP) -> None:
    mdp, cost = problem.mdp, problem.costs[0]
    length = mdp.horizon or 1 / (1 - mdp.discount)
    both = np.array([cost, 1 - cost])  # their sum is the length, whatever the policy
    least = np.array([policy_costs(mdp, -c, both)[k] for k, c in enumerate(both)])
    room = length - least.sum()
    if room < 1e-6:
        return
    with pytest.raises(InfeasibleLimit, match=r"all of the limits .* though each alone"):
        OccupancyLP(mdp).solve(both, least + 0.45 * room)


def test_reward_without_end_is_unbounded() -> None:
    # Action 0 ends the episode, action 1 never does and pays.
    P = np.array([[[0.0], [1.0]]])
    mdp = from_tensor(P, np.ones(1), np.array([[0.0, 1]]), horizon=None)
    program = OccupancyLP(mdp)
    with pytest.raises(UnboundedProblem, match="without end"):
        program.solve(np.zeros((1, 1, 2)), np.zeros(1))
    # A limit on the paying action gives the problem an optimum again.
    found = program.solve(np.array([[[0.0, 1]]]), np.array([3.0]))
    assert found.value == pytest.approx(3)


@pytest.mark.parametrize("m", [0, 1, 2])
def test_an_episode_that_nothing_ends_is_unbounded(m: int) -> None:
    mdp = from_tensor(np.ones((1, 2, 1)), np.ones(1), np.zeros((1, 2)), horizon=None)
    with pytest.raises(UnboundedProblem, match="no policy ends the episode"):
        OccupancyLP(mdp).solve(np.ones((m, 1, 2)), np.ones(m))


def test_a_ring_that_can_not_be_met_pays_nothing() -> None:
    # State 1 returns to itself for ever with reward 1, but nothing leads there.
    P = np.array([[[0.0, 0]], [[0, 1]]])
    mdp = from_tensor(P, np.array([1.0, 0]), np.array([[2.0], [1]]), horizon=None)
    assert OccupancyLP(mdp).solve(np.zeros((0, 2, 1)), np.zeros(0)).value == 2


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_costs_and_limits_that_are_not_finite_are_refused(wrong: float) -> None:
    mdp, costs = one_state([0, 1])
    with pytest.raises(InvalidInput, match="finite"):
        OccupancyLP(mdp).solve(costs, np.array([wrong]))
    with pytest.raises(InvalidInput, match="finite"):
        OccupancyLP(mdp).solve(np.full_like(costs, wrong), np.ones(1))


def test_arrays_of_wrong_shape_are_refused() -> None:
    mdp, costs = one_state([0, 1])
    for c, limits in ((costs[0], np.ones(1)), (costs, np.ones(2)), (costs, np.array(1.0))):
        with pytest.raises(InvalidInput, match=r"costs \[m, S, A\]"):
            OccupancyLP(mdp).solve(c, limits)


def test_a_solver_that_gives_up_is_a_named_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPTIONS, "simplex_iteration_limit", 0)
    mdp, costs = one_state([0, 1], reward=[1, 2])
    with pytest.raises(SolverFailed, match="Iteration limit"):
        OccupancyLP(mdp).solve(costs, np.array([0.5]))


@pytest.mark.parametrize(("reward_unit", "cost_unit"), [(1e6, 1), (1e-6, 1), (1, 1e6), (1, 1e-6)])
def test_units_do_not_matter(reward_unit: float, cost_unit: float) -> None:
    mdp, costs = one_state([0, 1], reward=[reward_unit, 3 * reward_unit])
    found = OccupancyLP(mdp).solve(costs * cost_unit, np.array([0.25 * cost_unit]))
    np.testing.assert_allclose(found.pi, [[[0.75, 0.25]]])
    assert found.value == pytest.approx(1.5 * reward_unit)
    assert found.lam == pytest.approx([2 * reward_unit / cost_unit])
    with pytest.raises(InfeasibleLimit, match="the least achievable is 0"):
        OccupancyLP(mdp).solve(costs * cost_unit, np.array([-0.01 * cost_unit]))


def test_in_the_maze_the_value_is_the_horizon_minus_the_mean_safe_distance() -> None:
    world = maze()
    walls = TableConstraint(FEATURES, world.truth.walls.astype(float))
    solver = LPSolver()
    for task, goal in zip(world.tasks, world.goals, strict=True):
        solution = solver(Problem(task, walls, delta=0.0, start=None, seed=()))
        away = [safe_distances(world.truth.walls, start)[goal] for start in world.starts]
        assert solution.behaviour.reward == pytest.approx(world.horizon - np.mean(away), abs=EXACT)
        assert world.truth.true_cost(solution.behaviour) == 0
        assert np.isfinite(solution.lam)
        assert solution.env_steps == 0


def test_the_solver_answers_a_problem_as_the_program_does() -> None:
    mdp, costs = one_state([0, 1], reward=[1, 2])
    task = FiniteTask("one step", mdp, (Feature("action", "index"),), np.array([[[0.0], [1.0]]]))
    constraint = TableConstraint(task.features, costs[0, 0])
    problem = Problem(task, constraint, delta=0.25, start=None, seed=())
    solver = LPSolver()
    solution, found = solver(problem), OccupancyLP(mdp).solve(costs, np.array([0.25]))
    assert solution.lam == found.lam[0] == 1
    assert solution.policy["pi"].tobytes() == found.pi.tobytes()
    assert solution.behaviour.reward == behaviour(task, found.rho).reward == 1.25
    np.testing.assert_allclose(solution.behaviour.visits, [0.75, 0.25])
    again = solver(replace(problem, delta=0.5))
    assert again.behaviour.reward == 1.5


def test_a_task_that_is_not_finite_is_refused() -> None:
    class Elsewhere:
        name, features, horizon = "elsewhere", FEATURES, 10

    walls = TableConstraint(FEATURES, np.zeros((1, 1)))
    with pytest.raises(InvalidInput, match="elsewhere"):
        LPSolver()(Problem(Elsewhere(), walls, 0.0, None, ()))
