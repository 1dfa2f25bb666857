"""The entropy-regularised solver, against the exact LP and its own promises."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringfence.constraints.table import TableConstraint
from ringfence.errors import InfeasibleLimit, InvalidInput
from ringfence.objects import Array, Problem
from ringfence.solvers import soft
from ringfence.solvers.lp import OccupancyLP
from ringfence.worlds.finite import FiniteMDP, from_tensor, occupancy
from ringfence.worlds.grid import FEATURES, MOVES, maze, read_map, safe_distances

random_problems = settings(max_examples=30, derandomize=True, deadline=None, database=None)
fewer_problems = settings(random_problems, max_examples=15)


@dataclass(frozen=True, eq=False)
class ConstrainedMDP:
    """`least` and `free`: the costs of the most careful policy and of the best one."""

    mdp: FiniteMDP
    cost: Array
    least: float
    free: float

    def limit(self, room: float) -> float:
        return self.least + room * (self.free - self.least)


@st.composite
def constrained_mdps(draw: st.DrawFn) -> ConstrainedMDP:
    S, A = draw(st.integers(2, 5)), draw(st.integers(2, 3))
    horizon = draw(st.none() | st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    P, start = rng.dirichlet(np.ones(S), size=(S, A)), rng.dirichlet(np.ones(S))
    cost = rng.random((S, A))
    mdp = from_tensor(P, start, rng.random((S, A)), horizon, 1.0 if horizon else 0.5)
    careful, best = (soft.plan(mdp, aim, 0.0)[0] for aim in (-cost, mdp.reward))
    return ConstrainedMDP(mdp, cost, total(mdp, careful, cost), total(mdp, best, cost))


def total(mdp: FiniteMDP, pi: Array, x: Array) -> float:
    """J(pi, x)."""
    return float((occupancy(mdp, pi) * x).sum())


def most_entropy(mdp: FiniteMDP) -> float:
    """No policy's (discounted) entropy is larger."""
    return float(np.log(mdp.num_actions) * (mdp.horizon or 1 / (1 - mdp.discount)))


@random_problems
@given(constrained_mdps(), st.floats(0.1, 1.0))
def test_the_value_approaches_the_lps_as_the_temperature_falls(
    problem: ConstrainedMDP, room: float
) -> None:
    mdp, delta = problem.mdp, problem.limit(room)
    exact = OccupancyLP(mdp).solve(problem.cost[None], np.array([delta])).value
    for temperature in (1.0, 0.1, 0.01, 0.001):
        pi, _ = soft.solve(mdp, problem.cost, delta, temperature)
        # J + temperature * H is at least the LP's J, and the limit keeps J from being larger.
        below = exact - total(mdp, pi, mdp.reward)
        assert -1e-7 < below < temperature * most_entropy(mdp) + 1e-7


@random_problems
@given(constrained_mdps(), st.floats(0.1, 1.0), st.sampled_from([0.0, 0.01, 0.1, 1.0]))
def test_the_limit_is_kept(problem: ConstrainedMDP, room: float, temperature: float) -> None:
    delta = problem.limit(room)
    pi, lam = soft.solve(problem.mdp, problem.cost, delta, temperature)
    assert total(problem.mdp, pi, problem.cost) <= delta + 1e-9
    assert lam >= 0
    np.testing.assert_allclose(pi.sum(axis=-1), 1.0)


@random_problems
@given(constrained_mdps(), st.floats(0.1, 0.9), st.sampled_from([0.01, 0.1, 1.0]))
def test_a_multiplier_above_0_means_that_the_limit_is_used_up(
    problem: ConstrainedMDP, room: float, temperature: float
) -> None:
    delta = problem.limit(room)
    pi, lam = soft.solve(problem.mdp, problem.cost, delta, temperature)
    cost = total(problem.mdp, pi, problem.cost)
    assert lam == 0 or cost == pytest.approx(delta, abs=1e-7)


@random_problems
@given(constrained_mdps(), st.sampled_from([0.0, 0.01, 0.1, 1.0]))
def test_a_loose_limit_leaves_the_multiplier_at_0(
    problem: ConstrainedMDP, temperature: float
) -> None:
    free, _ = soft.plan(problem.mdp, problem.mdp.reward, temperature)
    pi, lam = soft.solve(problem.mdp, problem.cost, 1e3, temperature)
    assert lam == 0
    assert pi.tobytes() == free.tobytes()


@random_problems
@given(constrained_mdps(), st.sampled_from([0.0, 0.01, 0.1, 1.0]))
def test_the_least_cost_as_limit_is_kept_exactly_with_an_infinite_multiplier(
    problem: ConstrainedMDP, temperature: float
) -> None:
    if problem.free < problem.least + 1e-6:
        return  # the best policy is the most careful one, and the multiplier rightly 0
    pi, lam = soft.solve(problem.mdp, problem.cost, problem.least, temperature)
    assert lam == np.inf
    assert total(problem.mdp, pi, problem.cost) == pytest.approx(problem.least, abs=1e-7)


@random_problems
@given(constrained_mdps())
def test_an_infeasible_limit_is_named_with_the_least_cost(problem: ConstrainedMDP) -> None:
    with pytest.raises(InfeasibleLimit, match="the least achievable is") as caught:
        soft.solve(problem.mdp, problem.cost, problem.least - 0.01, 0.1)
    assert float(str(caught.value).split()[-1]) == pytest.approx(problem.least, rel=1e-5)


@fewer_problems
@given(constrained_mdps())
def test_temperature_0_is_deterministic(problem: ConstrainedMDP) -> None:
    mdp = problem.mdp
    pi, V = soft.plan(mdp, mdp.reward, 0.0)
    assert set(np.unique(pi)) <= {0.0, 1.0}
    assert total(mdp, pi, mdp.reward) == pytest.approx(mdp.start @ np.atleast_2d(V)[0], abs=1e-9)
    answers = [soft.solve(mdp, problem.cost, problem.limit(0.5), 0.0) for _ in range(2)]
    assert answers[0][0].tobytes() == answers[1][0].tobytes()
    assert set(np.unique(answers[0][0])) <= {0.0, 1.0}


@fewer_problems
@given(constrained_mdps())
def test_the_multiplier_is_the_price_of_the_limit(problem: ConstrainedMDP) -> None:
    temperature, width = 0.1, 1e-4 * (problem.free - problem.least)
    delta = problem.limit(0.4)

    def objective(limit: float) -> float:
        """J(pi, r) + temperature * H(pi) at the optimum: its Lagrangian's value."""
        _, lam = soft.solve(problem.mdp, problem.cost, limit, temperature)
        V = soft.plan(problem.mdp, problem.mdp.reward - lam * problem.cost, temperature)[1]
        return float(problem.mdp.start @ np.atleast_2d(V)[0] + lam * limit)

    _, lam = soft.solve(problem.mdp, problem.cost, delta, temperature)
    if width < 1e-6:
        return
    slope = (objective(delta + width) - objective(delta - width)) / (2 * width)
    assert slope == pytest.approx(lam, rel=1e-3, abs=1e-3)


def test_all_shortest_ways_through_an_open_grid_are_equally_likely() -> None:
    task = read_map("S..\n...\n..0\n", horizon=6).tasks[0]
    pi, _ = soft.solve(task.mdp, np.zeros(task.mdp.reward.shape), 0.0, temperature=0.02)
    ways = set(permutations((1, 1, 3, 3)))  # two moves down and two to the right, in any order
    assert len(ways) == 6
    for way in ways:
        probability, (row, col) = 1.0, (0, 0)
        for t, move in enumerate(way):
            probability *= pi[t, 3 * row + col, move]
            row, col = row + MOVES[move][0], col + MOVES[move][1]
        assert probability == pytest.approx(1 / 6, abs=1e-9)


def test_in_the_maze_the_walls_are_avoided_at_next_to_no_loss() -> None:
    world = maze()
    walls = TableConstraint(FEATURES, world.truth.walls.astype(float))
    solver = soft.SoftSolver(temperature=0.02)
    for task, goal in zip(world.tasks, world.goals, strict=True):
        solution = solver(Problem(task, walls, delta=0.0, start=None, seed=()))
        away = [safe_distances(world.truth.walls, start)[goal] for start in world.starts]
        assert solution.behaviour.reward == pytest.approx(world.horizon - np.mean(away), abs=1e-3)
        assert world.truth.true_cost(solution.behaviour) == 0


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_costs_and_limits_that_are_not_finite_are_refused(wrong: float) -> None:
    mdp = from_tensor(np.ones((1, 2, 1)), np.ones(1), np.zeros((1, 2)), horizon=1)
    with pytest.raises(InvalidInput, match="finite"):
        soft.solve(mdp, np.zeros((1, 2)), wrong, 0.1)
    with pytest.raises(InvalidInput, match="finite"):
        soft.solve(mdp, np.full((1, 2), wrong), 0.0, 0.1)


def test_a_problem_without_an_end_is_left_to_the_lp() -> None:
    mdp = from_tensor(np.full((1, 2, 1), 0.5), np.ones(1), np.zeros((1, 2)), horizon=None)
    with pytest.raises(InvalidInput, match="the LP can solve it"):
        soft.solve(mdp, np.zeros((1, 2)), 0.0, 0.1)


def test_a_task_that_is_not_finite_is_refused() -> None:
    class Elsewhere:
        name, features, horizon = "elsewhere", FEATURES, 10

    walls = TableConstraint(FEATURES, np.zeros((1, 1)))
    with pytest.raises(InvalidInput, match="elsewhere"):
        soft.SoftSolver()(Problem(Elsewhere(), walls, 0.0, None, ()))


@random_problems
@given(constrained_mdps(), st.sampled_from([0.0, 0.1]))
def test_a_plan_acts_as_the_policy_that_is_written_down(
    problem: ConstrainedMDP, temperature: float
) -> None:
    mdp = problem.mdp
    pi, V = soft.plan(mdp, mdp.reward, temperature)
    plan = soft.best(mdp, temperature)
    assert soft.whole(plan).tobytes() == pi.tobytes()
    if isinstance(plan, soft.Plan):
        assert plan.V[:-1].tobytes() == V.tobytes()
        assert plan[0, 1].tobytes() == pi[0, 1].tobytes()


def test_steps_that_change_no_value_are_not_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cost to go settles after some steps; what lies before is the same to the byte."""
    world = read_map("S.#.\n..#0\n....\n", horizon=40)
    mdp, asked = world.tasks[0].mdp, []
    cost = np.repeat(world.truth.walls.reshape(-1, 1).astype(float), len(MOVES), axis=1)
    in_full = FiniteMDP.expected
    monkeypatch.setattr(
        FiniteMDP, "expected", lambda self, *given: asked.append(1) or in_full(self, *given)
    )
    V = soft.values(mdp, -cost)
    assert 0 < len(asked) < 5
    ahead = np.zeros(mdp.num_states)
    for t in reversed(range(40)):
        ahead = (-cost + in_full(mdp, ahead).T).max(axis=1)
        assert np.array_equal(V[t], ahead)
