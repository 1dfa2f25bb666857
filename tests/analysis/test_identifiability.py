"""What saturating experts determine: the tangent component, and what no one can recover."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest

from ringfence.analysis.identifiability import (
    identify,
    lemma_counterexample,
    mixture_margin,
    never_recovered,
    tangent_space,
)
from ringfence.errors import InvalidInput
from ringfence.objects import Array
from ringfence.solvers.lp import OccupancyLP
from ringfence.worlds.finite import from_tensor, occupancy
from ringfence.worlds.grid import read_map


@dataclass(frozen=True, eq=False)
class Saturated:
    """A discounted world with c*, a limit through the uniform policy, and experts that bind."""

    P: Array
    start: Array
    discount: float
    c_star: Array
    limit: float
    experts: Array
    unsafe: Array
    rng: np.random.Generator

    @property
    def tangent(self) -> Array:
        S, A = self.c_star.shape
        return tangent_space(self.P.reshape(S * A, S), self.start, None, self.discount)

    def rho(self, pi: Array) -> Array:
        mdp = from_tensor(self.P, self.start, self.c_star, None, self.discount)
        return occupancy(mdp, pi).ravel()


def saturated(seed: int) -> Saturated:
    """LP-optimal experts for random rewards, those whose multiplier says that the limit binds."""
    rng = np.random.default_rng(seed)
    S, A = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    P, start = rng.dirichlet(np.ones(S), size=(S, A)), rng.dirichlet(np.ones(S))
    c_star, discount = rng.uniform(0, 1, (S, A)), float(rng.choice([0.5, 0.8, 0.9]))
    blank = from_tensor(P, start, c_star, None, discount)
    limit = float((occupancy(blank, np.full((S, A), 1 / A)) * c_star).sum())
    experts: list[Array] = []
    unsafe = OccupancyLP(blank).solve(c_star[None], np.array([1e6])).rho.ravel()
    while len(experts) < 4 * S * (A - 1):
        program = OccupancyLP(replace(blank, reward=rng.normal(size=(S, A))))
        found = program.solve(c_star[None], np.array([limit]))
        if found.lam[0] > 1e-6:
            experts.append(found.rho.ravel())
    return Saturated(P, start, discount, c_star, limit, np.array(experts), unsafe, rng)


@pytest.mark.parametrize("seed", range(20))
def test_tangent_component_is_recovered_and_classifies_policies(seed: int) -> None:
    world = saturated(seed)
    S, A = world.c_star.shape
    found = identify(world.experts, world.tangent, world.unsafe)
    assert (found.status, found.rank, found.needed) == ("determined",) + 2 * (S * (A - 1) - 1,)
    component = world.tangent.T @ world.tangent @ world.c_star.ravel()
    assert found.direction is not None
    np.testing.assert_allclose(found.direction, component / np.linalg.norm(component), atol=1e-6)

    policies = world.rng.dirichlet(np.full(A, 0.5), size=(1000, S))
    rho = np.array([world.rho(pi) for pi in policies])
    excess = rho @ world.c_star.ravel() - world.limit
    clear = np.abs(excess) > 1e-9
    assert 100 < (excess > 0).sum() < 900  # both kinds are there to be told apart
    np.testing.assert_array_equal(found.safe(rho)[clear], excess[clear] <= 0)


@pytest.mark.parametrize("seed", range(5))
def test_too_few_or_duplicate_experts_leave_it_not_determined(seed: int) -> None:
    world = saturated(seed)
    enough = identify(world.experts, world.tangent, world.unsafe).needed
    few = world.experts[:enough]
    for experts in (few, np.tile(few, (10, 1)), world.experts[:1]):
        found = identify(experts, world.tangent, world.unsafe)
        assert found.status == "not determined"
        assert found.rank < found.needed == enough
        assert len(found.undetermined) == enough + 1 - found.rank
        # The truth's tangent component is among the directions that remain.
        component = world.tangent @ world.c_star.ravel() @ world.tangent
        left = component - found.undetermined.T @ (found.undetermined @ component)
        np.testing.assert_allclose(left, 0, atol=1e-9)
        with pytest.raises(InvalidInput, match="not determined"):
            found.safe(world.experts)


def test_experts_on_no_common_boundary_are_contradicted() -> None:
    world = saturated(0)
    S, A = world.c_star.shape
    inside = world.rho(world.rng.dirichlet(np.ones(A), size=S))
    found = identify(np.vstack([world.experts, inside]), world.tangent, world.unsafe)
    assert found.status == "contradicted"
    assert "don't saturate one shared limit" in found.describe()


def test_unsafe_policy_on_the_boundary_can_not_fix_the_sign() -> None:
    world = saturated(0)
    with pytest.raises(InvalidInput, match="can't fix the sign"):
        identify(world.experts, world.tangent, world.experts.mean(axis=0))


def test_constants_and_potential_shaping_are_never_recovered() -> None:
    for seed in range(10):
        world = saturated(seed)
        S, A = world.c_star.shape
        never = never_recovered(world.tangent)
        assert never.shape == (S, S * A)
        potential = world.rng.normal(size=S)
        shaping = np.repeat(potential, A) - world.discount * world.P.reshape(-1, S) @ potential
        for vector in (np.ones(S * A), shaping):
            np.testing.assert_allclose(never.T @ (never @ vector), vector, atol=1e-9)
            # Added to the constraint it shifts every policy's cost alike.
            np.testing.assert_allclose(np.ptp(world.experts @ vector), 0, atol=1e-9)


@pytest.mark.parametrize("horizon", [1, 3, 6, None])
def test_tangent_space_is_what_policies_span(horizon: int | None) -> None:
    # A deterministic map: state 3 is met at step 2 at the earliest, state 4 never.
    P = np.zeros((5, 2, 5))
    for s, (left, right) in enumerate([(0, 1), (2, 3), (0, 2), (3, 1), (4, 4)]):
        P[s, 0, left] = P[s, 1, right] = 1.0
    start = np.array([1.0, 0, 0, 0, 0])
    discount = 1.0 if horizon else 0.7
    mdp = from_tensor(P, start, np.zeros((5, 2)), horizon, discount)
    tangent = tangent_space(mdp.transition, start, horizon, discount)
    rng = np.random.default_rng(0)
    policies = rng.dirichlet(np.ones(2), size=(300, horizon, 5) if horizon else (300, 5))
    rho = np.array([occupancy(mdp, pi).reshape(-1, 10).sum(axis=0) for pi in policies])
    differences = rho[1:] - rho[0]
    np.testing.assert_allclose(differences @ tangent.T @ tangent, differences, atol=1e-12)
    assert np.linalg.matrix_rank(differences, tol=1e-9) == len(tangent)
    assert not tangent[:, 8:].any()  # nothing can be learned about a state that is never met


def test_constraint_on_features_is_recovered_with_fewer_experts() -> None:
    # A 2 x 3 grid with a horizon: one feature per cell, whatever the move.
    world = read_map("S..\n..0\n", horizon=5)
    mdp, cells = world.tasks[0].mdp, 6
    phi = np.repeat(np.eye(cells), 5, axis=0)
    tangent = tangent_space(mdp.transition, mdp.start, mdp.horizon, phi=phi)
    assert tangent.shape == (cells - 1, cells)  # visits sum to T: the constant is lost
    rng = np.random.default_rng(1)
    c_star = rng.uniform(0, 1, cells)
    cost = np.repeat(c_star[:, None], 5, axis=1)
    uniform = occupancy(mdp, np.full((5, cells, 5), 0.2)).sum(axis=0)
    limit = float((uniform * cost).sum())
    experts: list[Array] = []
    while len(experts) < 60:
        reward = np.repeat(rng.normal(size=(cells, 1)), 5, axis=1)
        found = OccupancyLP(replace(mdp, reward=reward)).solve(cost[None], np.array([limit]))
        if found.lam[0] > 1e-6:
            experts.append(found.rho.sum(axis=(0, 2)))
    worst = OccupancyLP(replace(mdp, reward=cost)).solve(cost[None], np.array([1e6]))
    result = identify(np.array(experts), tangent, worst.rho.sum(axis=(0, 2)))
    component = c_star - c_star.mean()
    assert result.direction is not None
    np.testing.assert_allclose(result.direction, component / np.linalg.norm(component), atol=1e-6)


def test_endless_world_without_discount_has_no_tangent_space() -> None:
    with pytest.raises(InvalidInput, match="no finite sum"):
        tangent_space(np.ones((2, 1)), np.ones(1), None, 1.0)


@pytest.mark.parametrize("planar", [False, True])
def test_lemma_as_stated_is_false(planar: bool) -> None:
    example = lemma_counterexample(planar)
    pairs = len(example.c_star)
    # Its conditions: |S||A| distinct occupancies of this world, in the relative interior ...
    assert example.experts.shape == (pairs, pairs)
    assert example.experts.min() > 0.1
    flow = np.repeat(np.eye(2), 3, axis=1) - example.discount * example.transition.T
    np.testing.assert_allclose(example.experts @ flow.T, example.start + np.zeros((6, 2)))
    # ... none a mixture of the others, all saturating, all optimal for the reward c_star: with
    # <rho, c_star> <= limit nothing earns more than the limit, and without it something does.
    assert mixture_margin(example.experts) > 0.1
    np.testing.assert_allclose(example.experts @ example.c_star, example.limit)
    assert best_unconstrained(example.transition, example.start, example.c_star) > example.limit
    # Its conclusion: c_star is not alone in the null space.
    differences = np.diff(example.experts, axis=0)
    witnesses = np.stack([example.c_star, example.impostor])
    np.testing.assert_allclose(differences @ witnesses.T, 0, atol=1e-12)
    assert np.linalg.matrix_rank(witnesses) == 2
    assert len(example.null_space) == (4 if planar else 3)


def best_unconstrained(P: Array, start: Array, r: Array) -> float:
    """max_pi J(pi, r) over the nine deterministic policies, discount 0.5."""
    values = []
    for actions in product(range(3), repeat=2):
        rows = [3 * s + a for s, a in enumerate(actions)]
        values.append(float(start @ np.linalg.solve(np.eye(2) - 0.5 * P[rows], r[rows])))
    return max(values)


def test_what_can_hold_tells_the_two_counterexamples_apart() -> None:
    for planar, status in ((False, "determined"), (True, "not determined")):
        example = lemma_counterexample(planar)
        tangent = tangent_space(example.transition, example.start, None, example.discount)
        unsafe = example.experts.mean(axis=0) + 0.01 * tangent.T @ tangent @ example.c_star
        assert identify(example.experts, tangent, unsafe).status == status


def test_a_mixture_has_no_margin() -> None:
    square = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]])
    assert mixture_margin(square) > 0.5
    assert mixture_margin(np.vstack([square, [[0.25, 0.5]]])) == pytest.approx(0, abs=1e-9)
